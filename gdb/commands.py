"""The commands, each a class whose docstring is its help. None runs code in the target or reads Python itself."""

from __future__ import annotations

import contextlib

import gdb

from .engine import Engine


class PmCommand(gdb.Command):
    """A command that prints the child's answer, or fails with one sentence."""

    name = ""

    def __init__(self) -> None:
        super().__init__(self.name, gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print the child's answer. Raises gdb.GdbError."""
        self.dont_repeat()
        try:
            with contextlib.closing(Engine.get().ask(self.name, gdb.string_to_argv(argument))) as lines:
                for line in lines:
                    gdb.write(f"{line}\n")  # through gdb, so that its pager and `set logging` apply
        except gdb.GdbError as exc:
            raise gdb.GdbError(f"{self.name}: {exc}") from None
        except gdb.error as exc:
            raise gdb.GdbError(f"{self.name}: {exc}") from None


class Threads(PmCommand):
    """List the threads: what each waits for, whether it holds the GIL, and its innermost Python frame.

    Usage: pm-threads

    The first column is gdb's number, for `thread N`; `*` marks the selected thread. GIL: holds, waits, detached
    (neither), unknown."""

    name = "pm-threads"


class Backtrace(PmCommand):
    """Show the Python stack of the selected thread, of one with a given TID, or of all.

    Usage: pm-bt [--native] [all | TID]

    --native   show C frames too, merged with the Python ones
    The most recent call comes first. A recursion is shown once and counted."""

    name = "pm-bt"


class Locals(PmCommand):
    """Show the local variables of a Python frame of the selected thread.

    Usage: pm-locals [FRAME]

    FRAME is a number that pm-bt shows, by default 0. Values are read from memory and cut to a line; what looks
    like a secret is masked."""

    name = "pm-locals"


class GilRecord(PmCommand):
    """Show each interpreter's own record of its GIL: locked or not, the holder, the switch interval, the waiters.

    Usage: pm-gil"""

    name = "pm-gil"


class LockTable(PmCommand):
    """Show the locks that threads hold or wait for, each with its holder and waiters.

    Usage: pm-locks

    Locks of Python, locks of native code (mutexes, rwlocks, conditions), and the GIL when a thread waits for it, as in a
    report. BY says how the holder is known: the lock's own record, the `with` statement that a frame is in, the code
    that acquired it, or a join of the thread."""

    name = "pm-locks"


class Tasks(PmCommand):
    """List asyncio's tasks with their stacks, innermost await first, what each awaits and which task holds that.

    Usage: pm-tasks [NAME]

    NAME shows only the task of that name."""

    name = "pm-tasks"


class Objects(PmCommand):
    """Count the objects that the garbage collector knows, by type, most frequent first.

    Usage: pm-objects [COUNT]

    COUNT types are shown, by default 20. Strings, numbers and other objects without references are not counted."""

    name = "pm-objects"


class Why(PmCommand):
    """Show the diagnosis: what the program waits for, whose fault that is, and which line to change.

    Usage: pm-why

    It is the report of `postmortem analyze`, for a core or for a live process that gdb has stopped."""

    name = "pm-why"


def register() -> None:
    """Register the commands with gdb; drop the child whenever the target changes."""
    Engine.forget()
    for command in (Threads, Backtrace, Locals, GilRecord, LockTable, Tasks, Objects, Why):
        command()
    for event in ("stop", "cont", "exited", "new_objfile", "memory_changed", "inferior_deleted"):
        registry = getattr(gdb.events, event, None)
        if registry is not None:
            registry.connect(Engine.forget)
    Engine.begin_early()
