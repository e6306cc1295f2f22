"""Every error for users: what is wrong, what to do next, and the exit status.

One tree in one file. ``slug`` is the error's code, ``path`` the file that it is about; ``str(error)`` is the one sentence
that is printed, and is only shown, never read; ``next`` is the command or step that helps. Only ``cli`` and ``__main__``
turn these into output and exit statuses.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes milliseconds to import, and `capture` must start fast
if TYPE_CHECKING:
    from typing import Optional, Sequence, Union


class PostmortemError(Exception):
    """The base class; ``slug`` is stable, for scripts and tests."""

    slug = "error"
    status = 1

    def __init__(self, message: str, next: str = "", path: Optional[Union[str, os.PathLike[str]]] = None) -> None:
        """``{path}`` in the message stands for ``path``, so that a caller may give the file the name that users know."""
        super().__init__(message)
        self.message = message
        self.next = next
        self.path = os.fspath(path) if path is not None else None

    def __str__(self) -> str:
        return self.message if self.path is None else self.message.replace("{path}", self.path)

    def sentence(self) -> str:
        """Return the message and the next step as one sentence."""
        return f"{self}; {self.next}" if self.next else str(self)


class UsageError(PostmortemError):
    """The command line is wrong; `capture` exits with 125 as timeout(1) does, other commands with 2."""

    slug = "usage"
    status = 2


class CaptureFailed(PostmortemError):
    """postmortem itself failed under `capture`."""

    slug = "capture-failed"
    status = 125


class CommandNotRunnable(PostmortemError):
    """The command under capture cannot be executed."""

    slug = "command-not-runnable"
    status = 126


class CommandNotFound(PostmortemError):
    """The command under capture was not found."""

    slug = "command-not-found"
    status = 127


class NotACore(PostmortemError):
    """The file is not an ELF core, or one that cannot be read at all."""

    slug = "not-a-core"


class NotABundle(PostmortemError):
    """The target is no bundle, or one that cannot be read at all."""

    slug = "not-a-bundle"


class TargetNotFound(PostmortemError):
    """The target of a command does not exist."""

    slug = "target-not-found"


class CoreGone(PostmortemError):
    """A store of cores (systemd's, apport's, abrt's) has a record of a core, but not the core.

    ``known``: lines with what the store still has about it.
    """

    slug = "core-gone"

    def __init__(self, message: str, next: str = "", known: Sequence[str] = ()) -> None:
        super().__init__(message, next)
        self.known = tuple(known)


class ToolMissing(PostmortemError):
    """A program that a step needs (gdb, py-spy) is not installed."""

    slug = "tool-missing"


class ToolFailed(PostmortemError):
    """gdb or py-spy ran, and failed or ran out of time."""

    slug = "tool-failed"


class PermissionRefused(PostmortemError):
    """The kernel refused ptrace or /proc."""

    slug = "permission-refused"
