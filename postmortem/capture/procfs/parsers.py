"""The kernel's text files about processes: one small parser each (proc(5)).

Names that a process chose (argv, comm, paths) are bytes without an encoding; ``text`` makes them Unicode that any
JSON reader takes, with what is no UTF-8 written as ``\\xNN``.
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH208

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...arch import syscalls
from ...foreign.numbers import is_decimal

_CHUNK = 1 << 16
_LARGEST = 64 << 20


def read(path: str, limit: int = _LARGEST) -> bytes:
    """A whole /proc file, up to ``limit`` bytes. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_all(descriptor, limit)
    finally:
        os.close(descriptor)


def read_all(descriptor: int, limit: int = _LARGEST) -> bytes:
    """A /proc file from its current position to its end."""
    block = os.read(descriptor, _CHUNK)
    if len(block) < _CHUNK // 16:  # /proc ends short files with the first read; the next one says so for sure
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
    return data.decode("utf-8", "backslashreplace")


def lines(path: str) -> Optional[List[str]]:
    """A file's lines; None where it may not be read."""
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
    foreground: int  # the process group in that terminal's foreground, -1 without one

    @property
    def is_kernel_thread(self) -> bool:
        return bool(self.flags & _KERNEL_THREAD)

    @property
    def has_memory(self) -> bool:
        """Is it a program that has not ended? Others have neither memory nor descriptors."""
        return not self.is_kernel_thread and self.state not in "ZX"


def stat(path: str) -> Stat:
    """``path`` is /proc/PID or /proc/PID/task/TID. Raises OSError; ValueError for what is no stat line."""
    return parse_stat(read(f"{path}/stat"))


def parse_stat(line: bytes) -> Stat:
    # the name may hold spaces and parentheses: the last one ends it
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
        number[4],
    )


def status(path: str) -> Dict[str, str]:
    """/proc/PID/status as a dict. Raises OSError."""
    rows = (line.partition(":") for line in text(read(f"{path}/status")).splitlines())
    return {key: value.strip() for key, _colon, value in rows}


def threads(pid: int) -> List[int]:
    """The thread ids, the leader first. Raises OSError when the process is gone."""
    tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task") if is_decimal(name))
    if pid in tids:
        tids.remove(pid)
        tids.insert(0, pid)
    return tids


def living_thread(pid: int) -> int:
    """A thread that still has the process's memory: the leader, or another one when it has exited (zombie leader)."""
    tids = threads(pid)
    for tid in tids:
        try:
            if stat(f"/proc/{pid}/task/{tid}").state not in "ZX":
                return tid
        except (OSError, ValueError):
            continue
    return pid


class SystemCall(NamedTuple):
    """/proc/PID/task/TID/syscall of a thread that waits in the kernel. ``number`` is -1 outside a system call."""

    number: int
    name: str
    args: Tuple[int, ...]
    sp: int
    pc: int


def parse_syscall(line: bytes) -> Optional[SystemCall]:
    """None for a thread that runs."""
    fields = line.split()
    if not fields or fields[0] == b"running":
        return None
    number = int(fields[0])
    numbers = tuple(int(f, 16) for f in fields[1:])
    name = syscalls.name(number) if number >= 0 else "none"
    return SystemCall(number, name, numbers[:-2] if number >= 0 else (), numbers[-2], numbers[-1])


class Mapping(NamedTuple):
    """A line of /proc/PID/maps. ``offset`` in bytes; ``name`` is a path, a label in brackets, or empty."""

    start: int
    end: int
    perms: str
    offset: int
    device: str
    inode: int
    name: bytes

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def shared(self) -> bool:
        return self.perms[3:4] == "s"


def parse_maps(data: bytes) -> List[Mapping]:
    """All lines that are whole."""
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
                # the kernel writes a newline in a path as \012, and nothing else so
                fields[5].replace(b"\\012", b"\n") if len(fields) > 5 else b"",
            )
        )
    return found
