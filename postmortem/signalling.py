"""Signals that reach the process they are meant for, or nobody: the only module that sends any to a process by its number.

A process id is given anew once its process has ended and been waited for. So a process is named by its id *and* the time
at which it began (``begun``), noted when it was found. ``send`` opens a descriptor for whoever has the id now
(pidfd_open(2)), compares the start time of that process, and signals through the descriptor: whatever happens in between,
the signal goes to the process that was compared, or nowhere. Where the kernel (before 5.3) or a seccomp filter has no
pidfds, the start time is compared right before kill(2); what is left of the race are some microseconds.

The start time has the unit of a clock tick, 10 ms: two processes with one id and one start time need all ids to be handed
out within a tick. /proc must belong to our own pid namespace; where it does not, a number in it names another process
than the same number in a system call, and nothing is sent: what the descriptor is of is read from /proc/self/fdinfo.

*Our own children* keep their ids until we wait for them. ``send_to_child`` and ``send_to_group`` rely on it and check
nothing: they are for children that nobody has waited for, and for groups led by such a child, whose ids are taken as
long as theirs are.

Sources: pidfd_open(2), pidfd_send_signal(2), proc(5) (field 22 of stat), kernel/fork.c (pidfd_show_fdinfo),
kernel/pid.c (free_pid: an id is free once no process, group or session bears it). The numbers of the system calls are the
same on every architecture but alpha.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    import signal
else:
    try:  # what `signal` wraps in enumerations
        import _signal as signal
    except ImportError:
        import signal

_PIDFD_SEND_SIGNAL, _PIDFD_OPEN = 424, 434


def begun(pid: int, proc: str = "/proc") -> int | None:
    """When a process began, in clock ticks since the machine's start; None when there is none, or it is hidden from us."""
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            line = os.read(descriptor, 4096)  # the kernel makes it with the first read, and it is shorter
        finally:
            os.close(descriptor)
        return int(line[line.rindex(b")") + 2 :].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def send(pid: int, start: int | None, *numbers: int) -> bool:
    """Sends signals, in order, to the process that has had the id ``pid`` since ``start``. None: unknown, nothing is sent.

    False when that process is gone. Raises PermissionError.
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
        except OSError:  # refused, or a filter knows no such call: kill(2) has the last word
            return _compare_and_kill(pid, start, numbers)
        finally:
            os.close(descriptor)
    except ProcessLookupError:
        return False
    return True


def send_to_child(pid: int, number: int) -> None:
    """To a child of ours that nobody has waited for, or may wait for meanwhile. Raises PermissionError, ProcessLookupError."""
    os.kill(pid, number)


def send_to_group(leader: int, number: int) -> None:
    """To the process group that such a child leads. Raises PermissionError, ProcessLookupError."""
    os.killpg(leader, number)


def send_to_ourselves(number: int) -> None:
    os.kill(os.getpid(), number)


def _opened(pid: int) -> int | None:
    """A pidfd; None where there are none. Raises ProcessLookupError."""
    try:
        if hasattr(os, "pidfd_open"):
            return os.pidfd_open(pid)
        return _call(_PIDFD_OPEN, pid, 0)
    except ProcessLookupError:
        raise
    except (OSError, ImportError):  # no such call, a filter, no descriptor left; a thread has the id, which began later
        return None


def _is_of(descriptor: int, pid: int) -> bool:
    """Whether /proc, where start times are read, knows the descriptor's process by the same number. True where the kernel
    does not tell."""
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
    import ctypes  # noqa: PLC0415 - Python 3.8 alone needs it, and builds of Python without it have it not

    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
