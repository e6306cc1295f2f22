"""Waits of threads, from the registers of system calls, the interpreter's locks and descriptors.

No symbol is needed; native function names only refine the result (a mutex, a join in C). System call numbers and
arguments: Linux x86-64, and ``aarch64_calls``; futex operations: <linux/futex.h>.
"""

from __future__ import annotations

import struct
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...arch import syscalls
from ...arch.registersets import is_aarch64
from ...cpython.frames.frame import Frame
from ...evidence import Wait
from ...evidence.vocabulary import WaitKind, WaitVerb
from ...frameworks.processpools import multiprocessing
from ...libc.futexes import FutexCall
from ...memory import Fault, Memory
from . import aarch64_calls
from .descriptors import Descriptor, DescriptorKind, Descriptors

_READS = {"read", "pread64", "readv", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4", "connect"}
_WRITES = {"write", "pwrite64", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile"}
_SOCKET_CALLS = {"recvfrom", "recvmsg", "recvmmsg", "accept", "accept4", "connect", "sendto", "sendmsg", "sendmmsg"}
_SELECTS = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"}
#: Only a parent stays in these: it lends its memory to a child until the child has run another program or ended
#: (CLONE_VFORK: posix_spawn, and subprocess from Python 3.10 on). Source: wait_for_vfork_done in kernel/fork.c.
_FORKS = {"vfork", "clone", "clone3"}
#: Flag without which the caller returns at once; a thread that has not run yet still has the registers of such a call.
_CLONE_VFORK = 0x4000
_SIGNALS = {"pause", "rt_sigtimedwait", "rt_sigsuspend"}
#: Modules whose selectors wait for children's pipes rather than an event loop's events.
_PIPE_USERS = ("/subprocess.py", *multiprocessing("connection"))
_MOST_POLLED = 4096
_MOST_SECONDS = 1 << 40
_RESTART = "restart_syscall"
#: Calls that the kernel restarts through restart_syscall(2): do_poll, hrtimer_nanosleep and futex_wait set
#: restart_block (fs/select.c, kernel/time/hrtimer.c, kernel/futex/waitwake.c).
_RESTARTED = (7, 35, 202, 230)
#: The instruction ``syscall``; ``mov $number, %eax`` (the byte b8 and the number) closely precedes it.
_SYSCALL, _MOV_EAX, _LOADED_WITHIN = b"\x0f\x05", b"\xb8", 32
#: From glibc 2.41 on one function makes all cancellable calls (__syscall_cancel_arch). The number is the seventh
#: argument of its caller and lies on the stack directly above the return address of a ``call`` (e8), within some words.
_CALL, _CALLERS_WORDS = 0xE8, 16


#: Kind of a descriptor → kind of a wait for it.
_KINDS: Dict[DescriptorKind, WaitKind] = {"socket": "socket", "pipe": "pipe", "terminal": "file", "file": "file"}


class SystemCall(NamedTuple):
    """A thread's current system call; arguments are unsigned 64-bit words."""

    name: str
    args: Tuple[int, int, int, int, int, int]


class FutexFacts(NamedTuple):
    """The interpreter's facts about a futex word."""

    kind: WaitKind
    resource: Optional[str]
    detail: Optional[str]  # as in evidence.Wait
    verb: Optional[WaitVerb] = None
    over: Optional[bool] = None  # the signal has come, and the thread is about to wake


def in_core(
    regs: Dict[str, int], before: Optional[SystemCall], memory: Optional[Memory] = None
) -> Optional[SystemCall]:
    """Return the current system call of a thread in a core; None if it was running code.

    ``orig_rax`` is -1 outside system calls. A call that was interrupted before, by a debugger, a capture or Ctrl-Z,
    appears as restart_syscall with its original arguments. Its number is then taken from:

    - the code that made it (``memory``)
    - else ``/proc`` before the stop (``before``)

    If neither says it, the call is returned as restart_syscall (see ``is_known``). Raises Untold on aarch64.
    """
    if is_aarch64(regs) and memory is not None:
        return _in_core_of_aarch64(regs, before, memory)
    number = regs.get("orig_rax")
    if number is None or number >> 31:
        return None
    name = syscalls.name(number)
    args = tuple(regs.get(r, 0) for r in ("rdi", "rsi", "rdx", "r10", "r8", "r9"))
    if name == _RESTART:
        made = _made_at(regs.get("rip", 0), regs.get("rsp", 0), memory) if memory is not None else None
        if made is None:
            return before if before is not None and before.name != _RESTART else SystemCall(name, args)  # type: ignore[arg-type]
        name = syscalls.name(made)
    return SystemCall(name, args)  # type: ignore[arg-type]


def _in_core_of_aarch64(regs: Dict[str, int], before: Optional[SystemCall], memory: Memory) -> Optional[SystemCall]:
    made = aarch64_calls.made(regs, memory)
    if made is not None and made[0] == _RESTART and before is not None:
        return before
    return SystemCall(*made) if made is not None else None


def is_known(call: Optional[SystemCall]) -> bool:
    """Return False for a restarted call whose original number is unknown."""
    return call is None or call.name != _RESTART


def _made_at(rip: int, rsp: int, memory: Memory) -> Optional[int]:
    """Return the number loaded for the ``syscall`` before ``rip``; None unless it is a restartable call's."""
    for within in range(_LOADED_WITHIN, 6, -1):  # readable memory may begin close before the call
        try:
            code = memory.read(rip - within, within)
        except Fault:
            continue
        if not code.endswith(_SYSCALL):
            return None
        return _loaded(code[:-2]) or _passed(rsp, memory)
    return None


def _passed(rsp: int, memory: Memory) -> Optional[int]:
    """Return the number passed on the stack next to a return address; None if not found."""
    for at in range(rsp, rsp + 8 * _CALLERS_WORDS, 8):
        try:
            returns_to, number = memory.words(at, 2)
            if number in _RESTARTED and memory.read(returns_to - 5, 1)[0] == _CALL:
                return number
        except Fault:
            continue
    return None


def _loaded(code: bytes) -> Optional[int]:
    at = code.rfind(_MOV_EAX, 0, max(0, len(code) - 4))
    while at >= 0:
        number: int = struct.unpack_from("<I", code, at + 1)[0]
        if number in _RESTARTED:
            return number
        at = code.rfind(_MOV_EAX, 0, at)
    return None


def describe(
    call: SystemCall,
    memory: Memory,
    descriptors: Optional[Descriptors],
    futex: Callable[[int], Optional[FutexFacts]],
    frames: Sequence[Frame],
) -> Wait:
    """Return the wait behind a system call."""
    name, args = call
    if name == "futex":
        return _futex(args, futex)
    if name in _SELECTS:
        return _select(name, args, memory, descriptors, frames)
    if name in _READS or name in _WRITES:
        return _descriptor_wait(name, args[0] & 0xFFFFFFFF, descriptors, frames)
    if name in ("nanosleep", "clock_nanosleep"):
        return _sleep(name, args, memory)
    if name in ("wait4", "waitid"):
        pid = args[0] if name == "wait4" else args[1] if args[0] & 0xFFFFFFFF == 1 else 0
        pid = pid & 0xFFFFFFFF
        return Wait("process", name, pid=pid if 0 < pid < 1 << 31 else None, endless=True)
    if name in _FORKS and _lends_memory(name, args, memory):
        return Wait(
            "process", name, endless=True, verb="waits", detail="until its child has started its program (vfork)"
        )
    if name in ("flock", "fcntl"):
        return Wait("file", name, fd=args[0] & 0xFFFFFFFF, endless=True, verb="waits", detail="for a lock on a file")
    timed = name == "rt_sigtimedwait" and args[2] != 0
    given = timespec(memory, args[2]) if timed else None
    return Wait("signal" if name in _SIGNALS else "other", name, timeout_s=given, endless=False if timed else None)


def _lends_memory(name: str, args: Sequence[int], memory: Memory) -> bool:
    """Return whether the caller waits for its child; True if the flags (struct clone_args for clone3) cannot be read."""
    try:
        return name == "vfork" or bool((memory.u64(args[0]) if name == "clone3" else args[0]) & _CLONE_VFORK)
    except Fault:
        return True


def _futex(args: Sequence[int], facts: Callable[[int], Optional[FutexFacts]]) -> Wait:
    call = FutexCall.of(args)
    endless = call.timeout == 0
    if not call.sleeps:
        return Wait("other", "futex")
    known = facts(call.word)
    if known is not None:
        # a thread that waits for the GIL asks again whenever its timer expires, and never gives up
        endless = endless or known.kind == "gil"
        return Wait(
            known.kind,
            "futex",
            resource=known.resource,
            endless=endless,
            detail=known.detail,
            over=known.over,
            verb=known.verb,
        )
    if not call.private:
        return Wait("semaphore", "futex", endless=endless, detail="a semaphore that processes share")
    return Wait("futex", "futex", endless=endless)


def _sleep(name: str, args: Sequence[int], memory: Memory) -> Wait:
    """Return the wait of a sleep.

    Relative sleeps leave their length in memory; absolute ones (Python 3.11+) only their deadline.
    """
    request = args[0] if name == "nanosleep" else args[2]
    if name == "clock_nanosleep" and args[1] & 1:
        return Wait("sleep", name, endless=False)
    return Wait("sleep", name, timeout_s=timespec(memory, request), endless=False)


def timespec(memory: Memory, address: int, unit: int = 10**9) -> Optional[float]:
    """Return a struct timespec in seconds; None if unreadable or implausible.

    ``unit``: fractions in a second, 10**6 for a struct timeval.
    """
    try:
        seconds, fraction = struct.unpack("<qq", memory.read(address, 16))
    except Fault:
        return None
    return seconds + fraction / unit if 0 <= seconds < _MOST_SECONDS and 0 <= fraction < unit else None


def _select(
    name: str, args: Sequence[int], memory: Memory, descriptors: Optional[Descriptors], frames: Sequence[Frame]
) -> Wait:
    timeout = _select_timeout(name, args, memory)
    endless = None if timeout is None else timeout < 0
    seconds = timeout if timeout is not None and timeout >= 0 else None
    if name in ("select", "pselect6") and args[0] & 0xFFFFFFFF == 0:
        return Wait("sleep", name, timeout_s=seconds, endless=endless)
    if name in ("poll", "ppoll") and args[1] == 1:
        try:
            fd = memory.i32(args[0])
        except Fault:
            fd = -1
        if fd >= 0:
            found = _descriptor_wait(name, fd, descriptors, frames)
            return Wait(
                found.kind, name, fd=fd, timeout_s=seconds, endless=endless, detail=found.detail, verb=found.verb
            )
    if name in ("select", "pselect6"):
        fds = polled(SystemCall(name, (args[0], args[1], args[2], args[3], args[4], args[5])), memory)
        kinds = [what.kind for fd in fds for what in [descriptors.get(fd) if descriptors else None] if what]
        if fds and (kinds.count("socket") == len(fds) or (len(fds) == 1 and kinds in (["terminal"], ["pipe"]))):
            found = _descriptor_wait(name, fds[0], descriptors, frames)
            return Wait(
                found.kind, name, fd=fds[0], timeout_s=seconds, endless=endless, detail=found.detail, verb=found.verb
            )
    if any(f.code.filename.endswith(_PIPE_USERS) for f in frames[:3]):
        return Wait("pipe", name, timeout_s=seconds, endless=endless)
    if any(f.function == "select" and f.code.filename.endswith("selectors.py") for f in frames[:2]) or not frames:
        return Wait("event-loop", name, timeout_s=seconds, endless=endless)
    return Wait("event-loop" if name.startswith("epoll") else "other", name, timeout_s=seconds, endless=endless)


def polled(call: SystemCall, memory: Memory) -> List[int]:
    """Return the descriptors that a poll or select waits for; empty if unknown and for other calls.

    The first one that is ready ends the wait. struct pollfd: an int, two shorts; negative descriptors are ignored.
    """
    name, args = call
    if name in ("poll", "ppoll"):
        count = args[1] & 0xFFFFFFFF
        try:
            rows = memory.read(args[0], 8 * min(count, _MOST_POLLED))
        except Fault:
            return []
        fds = [fd for fd, _events, _found in struct.iter_unpack("<ihh", rows)]
        return [fd for fd in fds if fd >= 0] if count <= _MOST_POLLED else []
    if name in ("select", "pselect6"):
        return sorted({fd for number in (1, 2, 3) for fd in _select_descriptors(args, memory, number)})
    return []


def _select_descriptors(args: Sequence[int], memory: Memory, number: int = 1) -> List[int]:
    """Return the descriptors of one of select's sets (fd_set: 1024 bits).

    ``number``: the set's argument; 1 read, 2 written, 3 exceptions.
    """
    count, pointer = min(args[0] & 0xFFFFFFFF, 1024), args[number]
    try:
        bits = int.from_bytes(memory.read(pointer, 128), "little") if pointer else 0
    except Fault:
        return []
    return [fd for fd in range(count) if bits >> fd & 1]


def _select_timeout(name: str, args: Sequence[int], memory: Memory) -> Optional[float]:
    """Return the timeout in seconds; -1.0: none, None: unknown."""
    if name in ("epoll_wait", "epoll_pwait"):
        milliseconds = _signed32(args[3])
        return -1.0 if milliseconds < 0 else milliseconds / 1e3
    if name == "poll":
        milliseconds = _signed32(args[2])
        return -1.0 if milliseconds < 0 else milliseconds / 1e3
    pointer = {"ppoll": args[2], "pselect6": args[4], "select": args[4], "epoll_pwait2": args[3]}[name]
    if not pointer:
        return -1.0
    try:
        seconds, fraction = struct.unpack("<qq", memory.read(pointer, 16))
    except Fault:
        return None
    return float(seconds + fraction / (1e6 if name == "select" else 1e9))


def _signed32(word: int) -> int:
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word


def _descriptor_wait(name: str, fd: int, descriptors: Optional[Descriptors], frames: Sequence[Frame]) -> Wait:
    """Return the wait of a read, write, connect or accept on one descriptor."""
    what = descriptors.get(fd) if descriptors else None
    if what is not None:
        kind: WaitKind = _KINDS.get(what.kind, "other")
        peer = f" {what.local or ''} → {what.remote}" if what.remote else f" {what.local}" if what.local else ""
        limit = _socket_timeout(name, what) if kind == "socket" else 0.0
        return Wait(
            kind,
            name,
            fd=fd,
            timeout_s=limit or None,
            endless=None if limit is None else not limit,
            verb="call",
            detail=f"{what.kind}{peer}",
        )
    kind = "socket" if name in _SOCKET_CALLS else _kind_by_frames(frames)
    endless = None if kind == "socket" else True  # SO_RCVTIMEO limits sockets
    return Wait(kind, name, fd=fd, endless=endless, verb="call")


def _socket_timeout(name: str, what: Descriptor) -> Optional[float]:
    """Return the timeout in seconds of a blocking socket call, 0 for none; None if unknown.

    Source: socket(7), SO_RCVTIMEO.
    """
    if what.timeouts is None:
        return None
    return what.timeouts[1 if name in _WRITES or name == "connect" else 0]


def _kind_by_frames(frames: Sequence[Frame]) -> WaitKind:
    """Return the kind of a descriptor according to the standard library's frame above the call, without /proc."""
    for frame in frames[:3]:
        file = frame.code.filename
        if file.endswith(("/socket.py", "/ssl.py")):
            return "socket"
        if file.endswith(_PIPE_USERS):
            return "pipe"
    return "other"
