"""The ptrace(2) requests that a freeze needs, through ctypes.

SEIZE and INTERRUPT, not ATTACH: no SIGSTOP is sent, a stopped job stays stopped, and the end of the tracer leaves no
thread stopped. Constants: <linux/ptrace.h>; register sets: <linux/elf.h>.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
from typing import Dict, NamedTuple, Optional, Tuple

from ..procfs import parsers

_GETREGSET, _SEIZE, _INTERRUPT, _DETACH = 0x4204, 0x4206, 0x4207, 17
_EVENT_STOP = 128
_WALL = 0x40000000
_ENDED = (1, 2, 3)  # CLD_EXITED, CLD_KILLED, CLD_DUMPED: os has all of them from Python 3.9 on
_STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

NT_PRSTATUS, NT_FPREGSET = 1, 2
NT_X86_XSTATE, NT_ARM_TLS = 0x202, 0x401

#: machine → (bytes of its general registers, further register sets that debuggers read).
REGISTER_SETS: Dict[str, Tuple[int, Tuple[int, ...]]] = {
    "x86_64": (27 * 8, (NT_FPREGSET, NT_X86_XSTATE)),  # user_regs_struct
    "aarch64": (34 * 8, (NT_FPREGSET, NT_ARM_TLS)),  # user_pt_regs
}

_libc = ctypes.CDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


class _IoVec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_SCRATCH_SIZE = 1 << 16  # more than any register set (AMX tiles: 11 KB)
_scratch = ctypes.create_string_buffer(_SCRATCH_SIZE)


class Stop(NamedTuple):
    """The outcome of stopping a traced thread.

    - ``signal``: a signal that was about to be delivered, to be passed on at detach; 0 if none
    - ``gone``: whether the thread has ended
    - ``stopped_by``: the signal that had stopped its process before the freeze; 0 if it was running
    """

    signal: int
    gone: bool
    stopped_by: int = 0


def seize(tid: int) -> None:
    """Attach to a thread without stopping it; raise PermissionError, ProcessLookupError."""
    _request(_SEIZE, tid, 0)


def interrupt(tid: int) -> None:
    """Ask a seized thread to stop; raise ProcessLookupError when it is gone."""
    _request(_INTERRUPT, tid, 0)


def detach(tid: int, signal: int) -> None:
    """Let a stopped thread continue and deliver ``signal`` (0: none); one that has ended meanwhile is ignored."""
    with contextlib.suppress(ProcessLookupError):
        _request(_DETACH, tid, signal)


def poll_stop(tid: int) -> Optional[Stop]:
    """Return how a thread stopped; None while it has not."""
    try:
        found = os.waitid(os.P_PID, tid, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT | _WALL)
        if found is None:
            return None
        if found.si_code in _ENDED and _is_our_child(tid):
            return Stop(0, True)
        pid, status = os.waitpid(tid, _WALL | os.WNOHANG)
    except ChildProcessError:
        return Stop(0, True)
    if pid == 0:
        return None
    if not os.WIFSTOPPED(status):
        return Stop(0, True)
    event = status >> 16
    number = os.WSTOPSIG(status)
    # ptrace(2), "Group-stop": PTRACE_EVENT_STOP of a seized thread carries the stopping signal, else SIGTRAP
    stopped_by = number if event == _EVENT_STOP and number in _STOPPING else 0
    return Stop(0 if event else number, False, stopped_by)


def _is_our_child(pid: int) -> bool:
    """Return whether the process is our child, whose status and pid only the code that started it may reap."""
    try:
        status = parsers.status(f"/proc/{pid}")
    except OSError:
        return False
    return status.get("Tgid") == str(pid) and status.get("PPid") == str(os.getpid())


def register_set(tid: int, kind: int) -> bytes:
    """Return one register set of a stopped thread; raise OSError when this CPU lacks it, or the thread is gone."""
    vector = _IoVec(ctypes.addressof(_scratch), _SCRATCH_SIZE)
    if _ptrace(_GETREGSET, tid, kind, ctypes.addressof(vector)) < 0:
        _raise()
    return _scratch.raw[: vector.length] if vector.length > 4096 else ctypes.string_at(vector.base, vector.length)


def _request(request: int, tid: int, data: int) -> None:
    if _ptrace(request, tid, 0, data) < 0:
        _raise()


def _raise() -> None:
    number = ctypes.get_errno()
    if number == errno.EIO:  # SEIZE fails so for a thread that is exiting
        number = errno.ESRCH
    raise OSError(number, os.strerror(number))
