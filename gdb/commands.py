"""The commands, each a class whose docstring is its help. None runs anything in the target."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import gdb
from postmortem.cpython.frames import Frame
from postmortem.cpython.locks import LockState
from postmortem.cpython.objects import NotThat
from postmortem.cpython.secrets import MASK, is_secret
from postmortem.cpython.tasks import Asyncio, TaskState
from postmortem.cpython.tracked import counts
from postmortem.cpython.values import Values
from postmortem.memory import Fault

from .session import Row, Session
from .show import clean, place, stack, styled, table, write

MAX_LOCALS, MAX_VALUE = 100, 200
MAX_TASKS, MAX_TASK_FRAMES = 100, 20
MAX_SEARCHED = 400  # frames of one thread that are looked through for locks, as in a report
#: Where `postmortem debug` writes its diagnosis, ended by a NUL; it is made while gdb already runs.
WHY, WHY_DEADLINE_S = "POSTMORTEM_WHY", 180.0
_GIL_STYLES = {"holds": "green", "waits": "yellow"}


class Store:
    """The session of the target as it stands; forgotten when it moves."""

    session: Optional[Session] = None

    @classmethod
    def get(cls) -> Session:
        if cls.session is None:
            cls.session = Session()
        return cls.session

    @classmethod
    def forget(cls, *_event: object) -> None:
        cls.session = None


class PmCommand(gdb.Command):
    """A command that fails with one sentence."""

    name = ""

    def __init__(self) -> None:
        super().__init__(self.name, gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        try:
            write(self.run(gdb.string_to_argv(argument)))
        except (gdb.GdbError, KeyboardInterrupt):
            raise
        except (Fault, NotThat) as exc:
            raise gdb.GdbError(f"{self.name}: this memory cannot be read: {exc}") from None
        except gdb.error as exc:
            raise gdb.GdbError(f"{self.name}: {exc}") from None
        except Exception as exc:  # a core is hostile input
            raise gdb.GdbError(f"{self.name}: {type(exc).__name__}: {exc}; this is a defect of postmortem") from None

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        raise NotImplementedError


class Threads(PmCommand):
    """List the threads: what each waits for, whether it holds the GIL, and its innermost Python frame.

    Usage: pm-threads

    The first column is gdb's number, for `thread N`; `*` marks the selected thread. GIL: holds, waits, detached
    (neither), unknown."""

    name = "pm-threads"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        session = Store.get()
        selected = gdb.selected_thread()
        rows, styles = [], []
        for row in session.rows():
            mark = "*" if selected is not None and selected.num == row.number else " "
            rows.append((
                f"{mark}{row.number}", str(row.tid), clean(row.name, 30), row.gil, clean(_waiting(row), 50),
                place(row.frames[0]) if row.frames else "(no Python frame)",
            ))  # fmt: skip
            styles.append(_GIL_STYLES.get(row.gil))
        runtime = session.python.runtime
        yield f"CPython {runtime.version_text}, {len(rows)} threads"
        yield from table((" N", "TID", "NAME", "GIL", "WAITS FOR", "PYTHON"), rows, styles)
        yield from _problems(session)


class Backtrace(PmCommand):
    """Show the Python stack of the selected thread, of one with a given TID, or of all.

    Usage: pm-bt [--native] [all | TID]

    --native   show C frames too, merged with the Python ones
    The most recent call comes first. A recursion is shown once and counted."""

    name = "pm-bt"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        native = "--native" in arguments
        words = [word for word in arguments if word != "--native"]
        if len(words) > 1 or any(word.startswith("-") for word in words):
            raise gdb.GdbError("Usage: pm-bt [--native] [all | TID]")
        session = Store.get()
        for index, row in enumerate(_chosen(session, words[0] if words else None)):
            if index:
                yield ""
            yield styled(_title(row), "bold")
            yield from self._merged(session, row) if native else self._python(row)

    @staticmethod
    def _python(row: Row) -> Iterator[str]:
        state = row.state
        if state is None or not state.frames:
            yield (
                "  (no Python frame)" if state is None or not state.cut else f"  (no Python frame: {clean(state.cut)})"
            )
            return
        chain = state.chain
        lines = [f"  #{index:<3} {place(frame)}" for index, frame in enumerate(state.frames)]
        yield from stack(lines, chain.recursion if chain else None, chain.depth if chain else len(lines))
        if state.cut:
            yield f"  (ends early: {clean(state.cut)})"

    @staticmethod
    def _merged(session: Session, row: Row) -> Iterator[str]:
        frames, cut = session.merged(row)
        lines = []
        for frame in frames:
            if isinstance(frame, Frame):
                lines.append(f"  py  {styled(place(frame), 'green')}")
            else:
                where = f" at {clean(frame.file)}:{frame.line}" if frame.file else f" in {clean(frame.module or '?')}"
                lines.append(f"  C   {clean(frame.function or hex(frame.address))}{where}")
        yield from stack(lines, None, len(lines))
        if cut:
            yield f"  (C frames end early: {clean(cut)})"


class Locals(PmCommand):
    """Show the local variables of a Python frame of the selected thread.

    Usage: pm-locals [FRAME]

    FRAME is a number that pm-bt shows, 0 without one. Values are read from memory and cut to a line; what looks
    like a secret is masked."""

    name = "pm-locals"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        if len(arguments) > 1 or not all(word.isdigit() for word in arguments):
            raise gdb.GdbError("Usage: pm-locals [FRAME]")
        session = Store.get()
        row = session.current()
        index = int(arguments[0]) if arguments else 0
        if index >= len(row.frames):
            raise gdb.GdbError(f"thread {row.tid} has {len(row.frames)} Python frames; `pm-bt` numbers them from 0")
        frame = row.frames[index]
        yield styled(f"#{index} {place(frame)}", "bold")
        names = {r.state.ident: r.name for r in session.rows() if r.state and r.name}
        values = Values(session.python.frames, names)
        found = list(session.python.frames.locals(frame))
        for name, address in found[:MAX_LOCALS]:
            text = MASK if is_secret(name) else values.describe(address, MAX_VALUE)
            yield f"  {clean(name, 60)} = {clean(text, MAX_VALUE)}"
        if not found:
            yield "  (no local variable is bound)"
        if len(found) > MAX_LOCALS:
            yield f"  … {len(found) - MAX_LOCALS} more"


class GilRecord(PmCommand):
    """Show each interpreter's own record of its GIL: locked or not, the holder, the interval, who waits.

    Usage: pm-gil"""

    name = "pm-gil"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        session = Store.get()
        rows = session.rows()
        for interpreter in session.python.interpreters:
            gil = interpreter.gil
            yield styled(f"Interpreter {interpreter.id}", "bold")
            if gil is None:
                yield "  its GIL's record cannot be read, or this build has none"
                continue
            waiting = [r.tid for r in rows if r.gil == "waits" and r.state and r.state.interpreter == interpreter.id]
            holder = session.tid_of(gil.holder) if gil.holder else None
            locked = {True: "yes", False: "no", None: "unknown"}[gil.locked]
            interval = "unknown" if gil.interval_s is None else f"{gil.interval_s * 1000:g} ms"
            yield f"  locked: {locked}"
            yield f"  holder: {holder if holder is not None else 'none' if gil.locked is False else 'unknown'}"
            yield f"  switch interval: {interval}"
            yield f"  changes of holder: {'unknown' if gil.switches is None else gil.switches}"
            yield f"  waiters: {_tids(waiting)}"
        yield from _problems(session)


class LockTable(PmCommand):
    """Show the locks that threads hold or wait for: who holds each, and who waits.

    Usage: pm-locks

    BY says how the holder is known: the lock's own record (RLock), or the `with` statement that a frame is in. Locks
    that plain acquire() took show no holder here; `pm-why` infers more from the source."""

    name = "pm-locks"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        session = Store.get()
        known: Dict[int, LockState] = {}
        users: Dict[int, List[Frame]] = {}
        holders: Dict[int, List[int]] = {}
        waiters: Dict[int, List[int]] = {}
        for row in session.rows():
            lock = row.wait.lock if row.wait else None
            if lock is not None:
                known[lock.address] = lock
                waiters.setdefault(lock.address, []).append(row.tid)
                users.setdefault(lock.address, []).extend(row.frames[:4])
            for frame in row.frames[:MAX_SEARCHED]:
                for held in session.locks.held(frame):
                    if held.lock.locked:
                        known.setdefault(held.lock.address, held.lock)
                        holders.setdefault(held.lock.address, []).append(row.tid)
                        users.setdefault(held.lock.address, []).append(frame)
        rows = []
        for address, lock in known.items():
            holder, basis = self._holder(session, lock, holders.get(address, ()))
            name = session.locks.name(address, users.get(address, ())) or f"{address:#x}"
            rows.append((clean(name, 60), lock.kind, holder, basis, _tids(waiters.get(address, ()))))
        if rows:
            yield from table(("LOCK", "KIND", "HOLDER", "BY", "WAITERS"), rows)
        else:
            yield "No thread holds a lock by `with`, or waits for one that is known."

    @staticmethod
    def _holder(session: Session, lock: LockState, claims: Sequence[int]) -> Tuple[str, str]:
        if lock.owner_ident is not None:
            owner = next((r.tid for r in session.rows() if r.state and r.state.ident == lock.owner_ident), None)
            return (str(owner) if owner is not None else "a thread that is gone"), "record"
        distinct = sorted(set(claims))
        return (str(distinct[0]), "with") if len(distinct) == 1 else ("unknown", "-")


class Tasks(PmCommand):
    """List asyncio's tasks with their stacks, innermost await first.

    Usage: pm-tasks [NAME]

    NAME shows only the task of that name."""

    name = "pm-tasks"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        if len(arguments) > 1:
            raise gdb.GdbError("Usage: pm-tasks [NAME]")
        session = Store.get()
        shown = total = 0
        for interpreter in session.python.interpreters:
            asyncio = Asyncio(session.python, interpreter)
            for task in asyncio.tasks():
                if arguments and task.name != arguments[0]:
                    continue
                total += 1
                if shown < MAX_TASKS:
                    shown += 1
                    yield from self._task(task)
            yield from (f"({clean(problem)})" for problem in asyncio.problems)
        if total > shown:
            yield f"… {total - shown} more tasks; `pm-tasks NAME` shows one"
        if not total:
            yield f"No task is named {clean(arguments[0])}." if arguments else "There are no asyncio tasks."

    @staticmethod
    def _task(task: TaskState) -> Iterator[str]:
        awaiting = f", awaits {clean(task.awaiting)}" if task.awaiting else ", ready to run" if task.ready else ""
        yield styled(f"{clean(task.name or 'a task')} ({task.state}{awaiting})", "bold")
        yield from (f"  #{index:<3} {place(frame)}" for index, frame in enumerate(task.frames[:MAX_TASK_FRAMES]))
        if len(task.frames) > MAX_TASK_FRAMES:
            yield f"      … {len(task.frames) - MAX_TASK_FRAMES} frames are not shown"


class Objects(PmCommand):
    """Count the objects that the garbage collector knows, by type, most frequent first.

    Usage: pm-objects [COUNT]

    COUNT types are shown, 20 without it. Strings, numbers and other objects without references are not among them."""

    name = "pm-objects"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        if len(arguments) > 1 or not all(word.isdecimal() for word in arguments):
            raise gdb.GdbError("Usage: pm-objects [COUNT]")
        session = Store.get()
        for interpreter in session.python.interpreters:
            try:
                found = counts(session.python, interpreter)
            except NotThat as exc:
                yield f"Interpreter {interpreter.id}: {exc}"
                continue
            rows = sorted(found.items(), key=lambda item: (-item[1], item[0]))[: int(arguments[0]) if arguments else 20]
            yield styled(f"Interpreter {interpreter.id}: {sum(found.values())} objects of {len(found)} types", "bold")
            yield from table(("COUNT", "TYPE"), [(str(number), clean(name)) for name, number in rows])


class Why(PmCommand):
    """Show the diagnosis: what the program waits for, whose fault that is, and which line to change.

    Usage: pm-why

    `postmortem debug` makes it while gdb starts; this command waits for it. In a gdb started by hand there is none:
    run `postmortem analyze CORE`."""

    name = "pm-why"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        path = os.environ.get(WHY)
        if not path:
            raise gdb.GdbError("there is no diagnosis in a gdb started by hand: `postmortem analyze CORE` makes one")
        until = time.monotonic() + WHY_DEADLINE_S
        while True:
            try:
                data = Path(path).read_bytes()
            except OSError:
                raise gdb.GdbError("the diagnosis is gone with the `postmortem debug` that made it") from None
            if data.endswith(b"\0"):
                break
            if time.monotonic() > until:
                raise gdb.GdbError("the diagnosis is not ready yet: ask again, or run `postmortem analyze`")
            time.sleep(0.05)
        yield from data[:-1].decode("utf-8", "replace").splitlines()


def _waiting(row: Row) -> str:
    if row.wait is not None:
        return row.wait.text
    return "(runs)" if row.gil in ("holds", "unknown") else ""


def _title(row: Row) -> str:
    name = f' "{clean(row.name, 60)}"' if row.name else ""
    wait = f", waits for {clean(row.wait.text, 80)}" if row.wait else ""
    gil = ", holds the GIL" if row.gil == "holds" else ""
    return f"Thread {row.number} (TID {row.tid}){name}{gil}{wait}"


def _chosen(session: Session, word: Optional[str]) -> List[Row]:
    if word is None:
        return [session.current()]
    if word == "all":
        return session.rows()
    found = [row for row in session.rows() if str(row.tid) == word]
    if not found:
        raise gdb.GdbError(f"there is no thread with TID {clean(word, 40)}: `pm-threads` lists them")
    return found


def _tids(tids: Sequence[int], most: int = 20) -> str:
    more = f" and {len(tids) - most} more" if len(tids) > most else ""
    return (", ".join(map(str, tids[:most])) + more) or "none"


def _problems(session: Session) -> Iterator[str]:
    for problem in session.python.problems[:10]:
        yield f"({clean(problem)})"


def register() -> None:
    """Makes the commands known to gdb, and forgets what was read whenever the target moves."""
    Store.forget()
    for command in (Threads, Backtrace, Locals, GilRecord, LockTable, Tasks, Objects, Why):
        command()
    for event in ("stop", "cont", "exited", "new_objfile", "memory_changed", "inferior_deleted"):
        registry = getattr(gdb.events, event, None)
        if registry is not None:
            registry.connect(Store.forget)
