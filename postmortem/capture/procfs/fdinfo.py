"""What /proc/PID/fdinfo/FD tells of a descriptor beside its link: how it was opened, and what its kind has to say.

Sources: Documentation/filesystems/proc.rst, section 3.8; fs/eventpoll.c (tfd), fs/eventfd.c, fs/timerfd.c, fs/signalfd.c,
fs/notify/fdinfo.c, kernel/fork.c (Pid, of a pidfd), fs/locks.c (lock), net/unix/af_unix.c (scm_fds).
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...foreign.numbers import is_decimal
from . import parsers

_MOST_WATCHED = 4096  # descriptors of one epoll
#: What the link in /proc/PID/fd begins with → what it is. A pidfd has had both names. Not io_uring: the kernel takes its
#: lock to answer, and has hung over that.
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
    """One file below fdinfo: names that occur once in ``values``, the rest as lists."""

    values: Dict[str, str]
    watched: List[Tuple[int, int]]  # of an epoll: (descriptor, events)
    locks: List[str]  # the lines of /proc/locks for what is held through it

    @property
    def mode(self) -> Optional[str]:
        """``r`` or ``w``; ``rw`` for an end opened for both."""
        try:
            flags = int(self.values["flags"], 8)
        except (KeyError, ValueError):
            return None
        return {os.O_RDONLY: "r", os.O_WRONLY: "w"}.get(flags & os.O_ACCMODE, "rw")

    @property
    def is_own(self) -> bool:
        """Is it closed on exec? Then its process did not get it by one."""
        try:
            return bool(int(self.values["flags"], 8) & os.O_CLOEXEC)
        except (KeyError, ValueError):
            return False

    @property
    def in_flight(self) -> Optional[int]:
        """Of a Unix socket: descriptors that were sent to it and wait to be received; None before Linux 5.6."""
        return _number(self.values.get("scm_fds"), 10)


def read(pid: int, fd: str) -> FdInfo:
    """Raises OSError."""
    return parse(parsers.text(parsers.read(f"/proc/{pid}/fdinfo/{fd}")))


def parse(text: str) -> FdInfo:
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
    """None for what has nothing more to tell."""
    return next((kind for prefix, kind in _KINDS if target.startswith(prefix)), None)


def special(pid: int, fd: str, target: str) -> Optional[Dict[str, Any]]:
    """An eventfd's count, an epoll's set, a pidfd's process, a timer's rest; None for anything else, or what is gone."""
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
    ):  # the end that a terminal emulator, sshd or pexpect has; drivers/tty/pty.c, pty_show_fdinfo, Linux 4.14
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
    """``(0, 0)``: seconds and nanoseconds until it is due, none for a timer that is not set."""
    return None if text is None else any(part.strip("() ").strip("0") for part in text.split(","))
