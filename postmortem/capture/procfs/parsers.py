r"""Parsers of the kernel's text files about processes, one for each (proc(5)).

Names chosen by a process (argv, comm, paths) are bytes without an encoding; ``text`` decodes them to Unicode that any
JSON reader accepts, with invalid UTF-8 as ``\xNN``.
"""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH208

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...arch import syscalls
from ...foreign.numbers import is_decimal

_CHUNK = 1 << 16
_LARGEST = 64 << 20


def read(path: str, limit: int = _LARGEST) -> bytes:
    """Read a whole /proc file, up to ``limit`` bytes. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_all(descriptor, limit)
    finally:
        os.close(descriptor)


def read_all(descriptor: int, limit: int = _LARGEST) -> bytes:
    """Read a /proc file from its current position to its end."""
    block = os.read(descriptor, _CHUNK)
    if len(block) < _CHUNK // 16:  # /proc returns a short file with one read; only an empty read marks its end for sure
        rest = os.read(descriptor, _CHUNK)
        if not rest:
            return block
        block += rest
    blocks = [block]
    size = len(block)
    while block and size < limit:
        block = os.read(descriptor, _CHUNK)
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


def text(data: bytes) -> str:
    """Decode bytes from the kernel, see the module."""
    return data.decode("utf-8", "backslashreplace")


def lines(path: str) -> Optional[List[str]]:
    """Return a file's lines; None where it cannot be read."""
    try:
        return text(read(path)).splitlines()
    except OSError:
        return None


#: PF_KTHREAD, <linux/sched.h>
_KERNEL_THREAD = 0x00200000


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are used; times in clock ticks."""

    comm: bytes
    state: str
    ppid: int
    pgid: int
    sid: int
    utime: int
    stime: int
    start: int
    flags: int
    nice: int
    minor_faults: int
    major_faults: int
    io_delay: Optional[int]  # delayacct_blkio_ticks
    terminal: int  # device number of the controlling terminal, 0 for none
    exit_code: Optional[int]  # wait status of a process that has ended; 0 also where it may not be read
    foreground: int  # the process group in that terminal's foreground, -1 without one

    @property
    def is_kernel_thread(self) -> bool:
        """Whether the process is a kernel thread."""
        return bool(self.flags & _KERNEL_THREAD)

    @property
    def has_memory(self) -> bool:
        """Whether it is a program that has not ended; others have neither memory nor descriptors."""
        return not self.is_kernel_thread and self.state not in "ZX"


def stat(path: str) -> Stat:
    """Parse the stat file of /proc/PID or /proc/PID/task/TID. Raises OSError; ValueError for a malformed line."""
    return parse_stat(read(f"{path}/stat"))


def parse_stat(line: bytes) -> Stat:
    """Parse a line of /proc/PID/stat. Raises ValueError."""
    # the name may contain spaces and parentheses; the last parenthesis ends it
    first, last = line.index(b"("), line.rindex(b")")
    fields = line[last + 2 :].split()
    number = [int(f) for f in fields[1:20]]
    return Stat(
        line[first + 1 : last],
        fields[0].decode("ascii"),
        number[0],
        number[1],
        number[2],
        number[10],
        number[11],
        number[18],
        number[5],
        number[15],
        number[6],
        number[8],
        int(fields[39]) if len(fields) > 39 else None,
        number[3],
        int(fields[49]) if len(fields) > 49 else None,
        number[4],
    )


def status(path: str) -> Dict[str, str]:
    """Return /proc/PID/status as a dict. Raises OSError."""
    rows = (line.partition(":") for line in text(read(f"{path}/status")).splitlines())
    return {key: value.strip() for key, _colon, value in rows}


def threads(pid: int) -> List[int]:
    """Return the thread ids, the leader first. Raises OSError when the process is gone."""
    tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task") if is_decimal(name))
    if pid in tids:
        tids.remove(pid)
        tids.insert(0, pid)
    return tids


def living_thread(pid: int) -> int:
    """Return a thread that still has the process's memory: the leader, or another one when the leader has exited."""
    tids = threads(pid)
    for tid in tids:
        try:
            if stat(f"/proc/{pid}/task/{tid}").state not in "ZX":
                return tid
        except (OSError, ValueError):
            continue
    return pid


class SystemCall(NamedTuple):
    """The system call that a thread waits in, from /proc/PID/task/TID/syscall; ``number`` is -1 outside of one."""

    number: int
    name: str
    args: Tuple[int, ...]
    sp: int
    pc: int


def parse_syscall(line: bytes, machine: str = os.uname().machine) -> Optional[SystemCall]:
    """Parse /proc/PID/task/TID/syscall; return None for a running thread.

    ``machine``: the kernel's name of the machine, which numbers system calls.
    """
    fields = line.split()
    if not fields or fields[0] == b"running":
        return None
    number = int(fields[0])
    numbers = tuple(int(f, 16) for f in fields[1:])
    name = syscalls.name(number, machine.replace("x86_64", "x86-64")) if number >= 0 else "none"
    return SystemCall(number, name, numbers[:-2] if number >= 0 else (), numbers[-2], numbers[-1])


class Mapping(NamedTuple):
    """A line of /proc/PID/maps; ``offset`` in bytes, ``name`` a path, a label in brackets, or empty."""

    start: int
    end: int
    perms: str
    offset: int
    device: str
    inode: int
    name: bytes

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.end - self.start

    @property
    def shared(self) -> bool:
        """Whether the mapping is shared (MAP_SHARED)."""
        return self.perms[3:4] == "s"


def parse_maps(data: bytes) -> List[Mapping]:
    """Parse the complete lines of /proc/PID/maps."""
    found = []
    for line in data.split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) < 5:
            continue
        start, _dash, end = fields[0].partition(b"-")
        found.append(
            Mapping(
                int(start, 16),
                int(end, 16),
                fields[1].decode("ascii"),
                int(fields[2], 16),
                fields[3].decode("ascii"),
                int(fields[4]),
                # the kernel escapes only newlines in a path, as \012
                fields[5].replace(b"\\012", b"\n") if len(fields) > 5 else b"",
            )
        )
    return found
