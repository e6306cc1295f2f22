"""Signals that reach the intended process or none: the only module that signals a process by its pid.

A pid is reused once its process has ended and was waited for. So a process is identified by its pid *and* its start
time (``begun``), recorded when it was found. ``send`` opens a pidfd for the current owner of the pid (pidfd_open(2)),
compares that process's start time, and signals through the pidfd: whatever happens in between, the signal goes to the
process that was compared, or nowhere. Where the kernel (before 5.3) or a seccomp filter has no pidfds, the start time
is compared right before kill(2), which leaves a race of some microseconds.

The start time counts clock ticks of 10 ms: two processes can share pid and start time only if all pids are used up
within a tick. /proc must belong to our own pid namespace; otherwise a pid in it denotes another process than in a
system call, and nothing is sent: which process a pidfd refers to is read from /proc/self/fdinfo.

*Our own children* keep their pids until we wait for them. ``send_to_child`` and ``send_to_group`` rely on that and
check nothing: they are for children that were not waited for yet, and for groups led by such a child, whose ids are in
use as long.

Sources: pidfd_open(2), pidfd_send_signal(2), proc(5) (field 22 of stat), kernel/fork.c (pidfd_show_fdinfo),
kernel/pid.c (free_pid: an id is free once no process, group or session has it). The numbers of the system calls are the
same on every architecture but alpha.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    import signal
else:
    try:  # the module that `signal` wraps in enumerations
        import _signal as signal
    except ImportError:
        import signal

_PIDFD_SEND_SIGNAL, _PIDFD_OPEN = 424, 434


def begun(pid: int, proc: str = "/proc") -> int | None:
    """Return the start of a process in clock ticks since boot; None when there is none, or it is hidden from us."""
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            line = os.read(descriptor, 4096)  # the kernel formats it at the first read, and it is shorter
        finally:
            os.close(descriptor)
        return int(line[line.rindex(b")") + 2 :].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def send(pid: int, start: int | None, *numbers: int) -> bool:
    """Send signals, in order, to the process that has had ``pid`` since ``start``; None: unknown, nothing is sent.

    Returns False when that process is gone. Raises PermissionError.
    """
    if start is None:
        return False
    try:
        descriptor = _opened(pid)
        if descriptor is None:
            return _compare_and_kill(pid, start, numbers)
        try:
            if not _is_of(descriptor, pid) or begun(pid) != start:
                return False
            for number in numbers:
                _send_through(descriptor, number)
        except ProcessLookupError:
            raise
        except OSError:  # refused, or the call is filtered: kill(2) decides
            return _compare_and_kill(pid, start, numbers)
        finally:
            os.close(descriptor)
    except ProcessLookupError:
        return False
    return True


def send_to_child(pid: int, number: int) -> None:
    """Signal a child of ours that was not waited for, by any thread. Raises PermissionError, ProcessLookupError."""
    os.kill(pid, number)


def send_to_group(leader: int, number: int) -> None:
    """Signal the process group led by such a child. Raises PermissionError, ProcessLookupError."""
    os.killpg(leader, number)


def send_to_ourselves(number: int) -> None:
    """Signal this process."""
    os.kill(os.getpid(), number)


def _opened(pid: int) -> int | None:
    """Return a pidfd; None where there are none. Raises ProcessLookupError."""
    try:
        if hasattr(os, "pidfd_open"):
            return os.pidfd_open(pid)
        return _call(_PIDFD_OPEN, pid, 0)
    except ProcessLookupError:
        raise
    except (OSError, ImportError):  # no such call, a filter, no free descriptor; or the pid is a later thread's
        return None


def _is_of(descriptor: int, pid: int) -> bool:
    """Return whether a pidfd's process has the same pid in /proc, where start times are read.

    True if the kernel does not show it.
    """
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", "rb") as stream:
            rows = [line.split() for line in stream if line.startswith(b"Pid:")]
    except OSError:
        return False
    return not rows or rows[0][1:] == [b"%d" % pid]


def _send_through(descriptor: int, number: int) -> None:
    if hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(descriptor, number)
    else:
        _call(_PIDFD_SEND_SIGNAL, descriptor, number, 0, 0)


def _compare_and_kill(pid: int, start: int, numbers: tuple[int, ...]) -> bool:
    for number in numbers:
        if begun(pid) != start:
            return False
        os.kill(pid, number)
    return True


def _call(number: int, *arguments: int) -> int:
    import ctypes  # noqa: PLC0415 - only Python 3.8 needs it, and some builds lack it

    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
