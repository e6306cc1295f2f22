"""Every error that a user can meet: what is wrong, what to do next, and the exit status.

One tree in one file. ``str(error)`` is the one sentence that is printed; ``next`` is the command or step
that helps. Only ``cli`` and ``__main__`` turn these into output and exit statuses.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import, and `capture` is to cost nothing
if TYPE_CHECKING:
    from typing import Sequence


class PostmortemError(Exception):
    """Base of all. ``slug`` is stable, for scripts and tests."""

    slug = "error"
    status = 1

    def __init__(self, message: str, next: str = "") -> None:
        super().__init__(message)
        self.next = next

    def sentence(self) -> str:
        return f"{self}; {self.next}" if self.next else str(self)


class UsageError(PostmortemError):
    """The command line is wrong. `capture` ends with 125 as timeout(1) does, the others with 2."""

    slug = "usage"
    status = 2


class CaptureFailed(PostmortemError):
    """postmortem itself failed under `capture`."""

    slug = "capture-failed"
    status = 125


class CommandNotRunnable(PostmortemError):
    slug = "command-not-runnable"
    status = 126


class CommandNotFound(PostmortemError):
    slug = "command-not-found"
    status = 127


class NotACore(PostmortemError):
    """The file is not an ELF core, or one that cannot be read at all."""

    slug = "not-a-core"


class NotABundle(PostmortemError):
    slug = "not-a-bundle"


class TargetNotFound(PostmortemError):
    slug = "target-not-found"


class CoreGone(PostmortemError):
    """A store of cores (systemd's, apport's, abrt's) knows of a core and has it no more, or never kept it. ``known``:
    lines that tell what the store still has of it."""

    slug = "core-gone"

    def __init__(self, message: str, next: str = "", known: Sequence[str] = ()) -> None:
        super().__init__(message, next)
        self.known = tuple(known)


class ToolMissing(PostmortemError):
    """A program that a step needs (gdb, py-spy) is not there."""

    slug = "tool-missing"


class ToolFailed(PostmortemError):
    """gdb or py-spy ran, and failed or ran out of time."""

    slug = "tool-failed"


class PermissionRefused(PostmortemError):
    """The kernel refused ptrace or /proc."""

    slug = "permission-refused"
