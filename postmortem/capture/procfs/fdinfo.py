"""/proc/PID/fdinfo/FD: how a descriptor was opened, and what is specific to its kind.

Sources: Documentation/filesystems/proc.rst, section 3.8; fs/eventpoll.c (tfd), fs/eventfd.c, fs/timerfd.c,
fs/signalfd.c, fs/notify/fdinfo.c, kernel/fork.c (Pid, of a pidfd), fs/locks.c (lock), net/unix/af_unix.c (scm_fds).
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...foreign.numbers import is_decimal
from . import parsers

_MOST_WATCHED = 4096  # descriptors of one epoll
#: Prefix of the link in /proc/PID/fd → kind. A pidfd has had two names. io_uring is left out on purpose: the kernel
#: takes its lock to answer, and has hung on it.
_KINDS = (
    ("anon_inode:[eventfd]", "eventfd"),
    ("anon_inode:[eventpoll]", "epoll"),
    ("anon_inode:[timerfd]", "timerfd"),
    ("anon_inode:[signalfd]", "signalfd"),
    ("anon_inode:inotify", "inotify"),
    ("anon_inode:[pidfd]", "pidfd"),
    ("pidfd:[", "pidfd"),
    ("/dev/ptmx", "pty"),
    ("/dev/pts/ptmx", "pty"),
)


class FdInfo(NamedTuple):
    """One file below fdinfo; names that occur once are in ``values``, the others are lists."""

    values: Dict[str, str]
    watched: List[Tuple[int, int]]  # of an epoll: (descriptor, events)
    locks: List[str]  # the lines of /proc/locks for locks held through it

    @property
    def mode(self) -> Optional[str]:
        """``r``, ``w`` or ``rw``; None if unknown."""
        try:
            flags = int(self.values["flags"], 8)
        except (KeyError, ValueError):
            return None
        return {os.O_RDONLY: "r", os.O_WRONLY: "w"}.get(flags & os.O_ACCMODE, "rw")

    @property
    def is_own(self) -> bool:
        """Whether it is closed on exec, so that its process cannot have inherited it through one."""
        try:
            return bool(int(self.values["flags"], 8) & os.O_CLOEXEC)
        except (KeyError, ValueError):
            return False

    @property
    def in_flight(self) -> Optional[int]:
        """Number of descriptors sent to a Unix socket and not yet received; None before Linux 5.6."""
        return _number(self.values.get("scm_fds"), 10)


def read(pid: int, fd: str) -> FdInfo:
    """Read the fdinfo of a descriptor. Raises OSError."""
    return parse(parsers.text(parsers.read(f"/proc/{pid}/fdinfo/{fd}")))


def parse(text: str) -> FdInfo:
    """Parse the content of a fdinfo file."""
    values: Dict[str, str] = {}
    watched: List[Tuple[int, int]] = []
    locks: List[str] = []
    for row in text.splitlines():
        key, _colon, value = row.partition(":")
        if key == "tfd":
            words = value.split()
            if len(words) >= 3 and is_decimal(words[0]) and len(watched) < _MOST_WATCHED:
                watched.append((int(words[0]), int(words[2], 16)))
        elif key == "lock":
            locks.append(value.strip())
        else:
            values[key.strip()] = value.strip()
    return FdInfo(values, watched, locks)


def kind_of(target: str) -> Optional[str]:
    """Return the kind of a descriptor whose fdinfo has more to show; None for others."""
    return next((kind for prefix, kind in _KINDS if target.startswith(prefix)), None)


def special(pid: int, fd: str, target: str) -> Optional[Dict[str, Any]]:
    """Return an eventfd's count, an epoll's set, a pidfd's process, a timer's state and the like.

    None for other kinds, and for descriptors that are gone.
    """
    kind = kind_of(target)
    if kind is None:
        return None
    try:
        info = read(pid, fd)
    except OSError:
        return None
    found: Dict[str, Any] = {"kind": kind}
    if kind == "eventfd":
        found["count"] = _number(info.values.get("eventfd-count"), 16)
        found["id"] = _number(info.values.get("eventfd-id"), 10)  # Linux 5.2
    elif kind == "epoll":
        found["watches"] = info.watched
    elif kind == "pidfd":
        found["pid"] = _number(info.values.get("Pid"), 10)
    elif kind == "signalfd":
        found["signals"] = _number(info.values.get("sigmask"), 16)
    elif (
        kind == "pty"
    ):  # the master end, of a terminal emulator, sshd or pexpect; drivers/tty/pty.c, pty_show_fdinfo, Linux 4.14
        found["index"] = _number(info.values.get("tty-index"), 10)
    elif kind == "timerfd":
        found["ticks"] = _number(info.values.get("ticks"), 10)
        found["armed"] = _armed(info.values.get("it_value"))
    return found


def _number(text: Optional[str], base: int) -> Optional[int]:
    try:
        return int(text, base) if text is not None else None
    except ValueError:
        return None


def _armed(text: Optional[str]) -> Optional[bool]:
    """Return whether a timer is set, from ``(seconds, nanoseconds)`` until it is due; (0, 0) if not set."""
    return None if text is None else any(part.strip("() ").strip("0") for part in text.split(","))
