"""A core written by the kernel: a signal ends the process; the file is found, checked and moved into the bundle.

The last resort for a process that is to be ended anyway and cannot be traced. Never used with --pid.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from typing import BinaryIO, Callable, ContextManager

from ... import signalling
from ...errors import CaptureFailed, TargetNotFound
from ...memory import ElfCore, NotElf
from ..procfs import parsers, tree
from ..procfs.tree import Member
from ..run.command import Command
from . import corepattern

#: Signals whose default action is a core (signal(7)); those first that programs hardly ever use.
_DUMPING = (
    signal.SIGABRT, signal.SIGQUIT, signal.SIGSYS, signal.SIGXCPU, signal.SIGTRAP, signal.SIGXFSZ, signal.SIGBUS,
    signal.SIGFPE, signal.SIGILL, signal.SIGSEGV,
)  # fmt: skip
#: Seconds that the dump may take; and that a process may keep running after the signal without a dump.
_PATIENCE_S = 10.0
_NO_ANSWER_S = 1.0
_KILLED_S = 3.0
_POLL_S = 0.01
_SPARE_DISK = 16 << 20
_BLOCK = 1 << 20

Opener = Callable[[], ContextManager[BinaryIO]]


def take(command: Command, member: Member, open_core: Opener, room: int) -> None:
    """End the process with a core by the kernel, and move the core into the file that ``open_core`` opens.

    ``room``: bytes free there. No file is left elsewhere. Raises CaptureFailed, TargetNotFound, OSError.
    """
    pid = member.pid
    expected = _size(pid)
    place = corepattern.place(pid)
    try:
        number = _signal_for(pid)
        free = min(room, place.folder.free) - _SPARE_DISK
        if expected > free:
            raise CaptureFailed(
                f"the kernel's core of process {pid} needs {expected >> 20} MB, but only {max(free, 0) >> 20} MB are free",
                "free space where core_pattern points, and where the bundle is",
            )
        _allow(member, free)
        ended = _end(command, member, number)
        _fetch(place, pid, open_core)
        if not ended:
            raise CaptureFailed(f"the kernel did not complete the core of process {pid} in time: it is truncated")
    finally:
        place.folder.close()


def _size(pid: int) -> int:
    """Return the bytes of a dump with the default coredump_filter: private memory and anonymous shared memory."""
    status = parsers.status(f"/proc/{pid}")
    rows = (status.get(key, "0 kB").split()[0] for key in ("RssAnon", "RssShmem", "VmSwap"))
    return sum(int(row) << 10 for row in rows)


def _allow(member: Member, free: int) -> None:
    """Raise the process's RLIMIT_CORE to what is free.

    prlimit(2) takes no pidfd: the start time is compared right before the call. Raises CaptureFailed; TargetNotFound
    when the pid has been reused.
    """
    pid = member.pid
    if signalling.begun(pid) != member.start:
        raise TargetNotFound(f"process {pid} ended before the kernel could write its core")
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
        most = free if hard == resource.RLIM_INFINITY else min(hard, free)
        if most < 1 << 16:
            raise CaptureFailed(
                f"process {pid} is not allowed to dump core (RLIMIT_CORE)",
                "run ulimit -Hc unlimited before the command",
            )
        resource.prlimit(pid, resource.RLIMIT_CORE, (most, hard))
    except OSError as exc:
        raise CaptureFailed(
            f"process {pid} cannot be allowed to dump core: {exc.strerror}", "run the same command as root"
        ) from None


def _signal_for(pid: int) -> int:
    """Return a signal that the program neither catches, ignores nor blocks; raise CaptureFailed if there is none."""
    status = parsers.status(f"/proc/{pid}")
    taken = 0
    for key in ("SigBlk", "SigIgn", "SigCgt"):
        taken |= int(status.get(key, "0"), 16)
    for number in _DUMPING:
        if not taken >> (number - 1) & 1:
            return int(number)
    raise CaptureFailed(f"process {pid} handles every signal that would make it dump core", "run gcore as root")


def _end(command: Command, member: Member, number: int) -> bool:
    """Send the signal and wait until the process is gone; return False when that took a SIGKILL.

    Raises PermissionError.
    """
    signalling.send(member.pid, member.start, number, signal.SIGCONT)
    began = time.monotonic()
    while _lives(command, member):
        waited = time.monotonic() - began
        if waited > (_PATIENCE_S if _is_dumping(member.pid) else _NO_ANSWER_S) or command.interrupted is not None:
            break
        command.pause(_POLL_S)
    else:
        return True
    signalling.send(member.pid, member.start, signal.SIGKILL)
    until = time.monotonic() + _KILLED_S
    while _lives(command, member) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return False


def _lives(command: Command, member: Member) -> bool:
    command.reap()
    found = tree.look(member.pid)
    return found is not None and found.start == member.start and found.alive


def _is_dumping(pid: int) -> bool:
    try:
        return parsers.status(f"/proc/{pid}").get("CoreDumping") != "0"  # Linux before 4.15 lacks the row
    except OSError:
        return False


def _fetch(place: corepattern.Place, pid: int, open_core: Opener) -> None:
    """Move the core into the bundle; raise CaptureFailed when there is none of this process, OSError."""
    for name in place.appeared():
        with contextlib.suppress(OSError):
            descriptor = corepattern.open_plain(place.folder, name, place.users)
            try:
                if place.names_process or _is_of(descriptor, name, place.pid):
                    with open_core() as sink:
                        _copy(descriptor, sink)
                    place.folder.remove(name)
                    return
            finally:
                os.close(descriptor)
    raise CaptureFailed(
        f"the kernel wrote no core of process {pid}",
        "is the disk full, or the folder not writable for the user of the process?",
    )


def _is_of(descriptor: int, name: str, pid: int) -> bool:
    """Return whether a file is a core of this process: another one may have crashed meanwhile."""
    try:
        core = ElfCore(name, descriptor=os.dup(descriptor))
    except (OSError, NotElf, ValueError):
        return False
    try:
        return core.pid == pid
    finally:
        core.close()


def _copy(source: int, sink: BinaryIO) -> None:
    """Copy a sparse file, keeping its holes."""
    size = os.fstat(source).st_size
    os.ftruncate(sink.fileno(), size)
    position = 0
    while position < size:
        try:
            start = os.lseek(source, position, os.SEEK_DATA)
        except OSError:
            return  # nothing but a hole is left
        position = os.lseek(source, start, os.SEEK_HOLE)
        while start < position:
            block = os.pread(source, min(_BLOCK, position - start), start)
            if not block:
                return
            start += os.pwrite(sink.fileno(), block, start)
