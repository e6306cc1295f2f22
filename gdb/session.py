"""What the commands show: gdb's threads, each with its Python thread state, what it waits for and its stacks."""

from __future__ import annotations

import contextlib
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import gdb
from postmortem.arch import syscalls
from postmortem.arch.registersets import is_aarch64
from postmortem.cpython.frames.frame import Frame
from postmortem.cpython.runtime.discovery import NoInterpreter
from postmortem.cpython.state.interpreter import Python, ThreadState
from postmortem.cpython.sync.freethreading import FreeThreading
from postmortem.cpython.sync.locks import Locks, LockState
from postmortem.extract.waits import aarch64_calls
from postmortem.extract.waits.joins import joined_thread
from postmortem.libc import ABOVE, FutexCall, NativeWait, Threads, Wanted, awaited, describe, program_frame
from postmortem.memory import ElfCore
from postmortem.native.merge import merge

from .memory import GdbMemory

MAX_NATIVE = 1024  # frames of one thread
_REGISTERS = ("orig_rax", "rdi", "rsi", "rdx", "r10", "fs_base")
_FUTEX_WAITS = (0, 6, 9, 11, 13)  # <linux/futex.h>: WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2
_WITH_FD = {
    "read", "readv", "pread64", "write", "writev", "pwrite64", "recvfrom", "recvmsg", "sendto", "sendmsg", "accept",
    "accept4", "connect", "epoll_wait", "epoll_pwait", "flock", "fcntl",
}  # fmt: skip
_SLEEPS = ("nanosleep", "clock_nanosleep")
#: gdb has nothing better than RuntimeError for most failures.
FAILURES = (gdb.error, RuntimeError, ValueError, OverflowError)


class Wait(NamedTuple):
    text: str
    gil: bool = False
    lock: Optional[LockState] = None
    native: Optional[NativeWait] = None


class Row(NamedTuple):
    """A thread. ``number`` is gdb's, for `thread N`."""

    number: int
    tid: int
    state: Optional[ThreadState]
    gil: str  # as report.json has it
    wait: Optional[Wait]  # None: it runs, or nobody knows
    joins: Optional[int] = None  # TID of the thread whose end it waits for

    @property
    def name(self) -> str:
        return (self.state.name if self.state else None) or ""

    @property
    def frames(self) -> Sequence[Frame]:
        return self.state.frames if self.state else ()


class Native(NamedTuple):
    function: Optional[str]
    module: Optional[str]
    address: int
    file: Optional[str]
    line: Optional[int]


class Session:
    """All of it, read once per stop of the target."""

    def __init__(self) -> None:
        self.memory = GdbMemory(gdb.selected_inferior())
        try:
            self.python = Python(self.memory)
        except NoInterpreter as exc:
            raise gdb.GdbError(f"no Python interpreter can be read here: {exc}") from None
        self.locks = Locks(self.python.frames)
        self._free = FreeThreading(self.python)
        self._rows: Optional[List[Row]] = None
        self._pointers: Dict[int, int] = {}  # thread pointer → TID

    def rows(self) -> List[Row]:
        """By gdb's numbers."""
        if self._rows is None:
            states = [t for i in self.python.interpreters for t in i.threads]
            by_ident = {t.ident: t for t in reversed(states)}
            by_native = {t.native_id: t for t in reversed(states) if t.native_id}
            threads = self._threads()
            self._pointers = {regs["fs_base"]: tid for _thread, tid, regs in threads if regs.get("fs_base")}
            pointers = {tid: regs.get("fs_base", 0) for _thread, tid, regs in threads}
            known = Threads.of(self.memory, pointers, True, self.memory.files)
            found = []
            for thread, tid, registers in threads:
                state = by_ident.get(registers.get("fs_base", -1)) or by_native.get(tid)
                wait = self._wait(registers, state, thread.num, known)
                joins = self._joined(state, wait)
                found.append(Row(thread.num, tid, state, self._gil(state, wait), wait, joins))
            self._rows = sorted(found, key=lambda row: row.number)
        return self._rows

    def _joined(self, state: Optional[ThreadState], wait: Optional[Wait]) -> Optional[int]:
        if wait is None or state is None:
            return None
        if wait.native is not None and wait.native.kind == "thread":
            return wait.native.owner
        return self._pointers.get(joined_thread(self.python, state.frames) or -1)

    def current(self) -> Row:
        """The selected thread."""
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError("no thread is selected: `pm-threads` lists them, `thread N` selects one")
        return next(row for row in self.rows() if row.number == thread.num)

    def _threads(self) -> List[Tuple[gdb.InferiorThread, int, Dict[str, int]]]:
        """Each thread with its TID and the registers that tell what it waits for."""
        threads = [(thread, thread.ptid[1] or thread.ptid[0]) for thread in gdb.selected_inferior().threads()]
        if isinstance(self.memory.about, ElfCore):
            known = {thread.tid: thread.regs for thread in self.memory.about.threads}
            return [(thread, tid, known.get(tid, {})) for thread, tid in threads]
        with Selection():
            return [(thread, tid, _registers(thread)) for thread, tid in threads]

    # ------------------------------------------------------------------ waits

    def _wait(
        self, registers: Dict[str, int], state: Optional[ThreadState], number: int, threads: Threads
    ) -> Optional[Wait]:
        found = self._call(registers)
        if found is None:
            return None
        name, args = found
        if name == "futex" and args[1] & 0x7F in _FUTEX_WAITS:
            futex = FutexCall.of(args)
            return self._futex(futex.word, state) or self._native_wait(futex, number, threads)
        if name in _WITH_FD and not args[0] & 0x80000000:
            return Wait(f"{name} (fd {args[0] & 0xFFFFFFFF})")
        return Wait("sleep" if name in _SLEEPS else name)

    def _call(self, registers: Dict[str, int]) -> Optional[Tuple[str, Sequence[int]]]:
        """(name, arguments) of the system call that a thread is in; None when it is in none, or that cannot be told."""
        if is_aarch64(registers):
            try:
                return aarch64_calls.made(registers, self.memory)
            except aarch64_calls.Untold:
                return None
        call = registers.get("orig_rax")
        if call is None or call >> 31:  # -1: in no system call
            return None
        return syscalls.name(call), [registers.get(each, 0) for each in ("rdi", "rsi", "rdx", "r10")]

    def _futex(self, word: int, state: Optional[ThreadState]) -> Optional[Wait]:
        """The GIL, or a lock of Python."""
        if any(i.gil and i.gil.word_is_wait(word) for i in self.python.interpreters):
            return Wait("GIL", gil=True)
        frames = state.frames if state else []
        lock = (self.locks.awaited(frames, word) if frames else None) or self._free.awaited(word)
        if lock is None:
            return None
        name = self.locks.name(lock.address, frames[:4])
        return Wait(f"{lock.kind} {name}" if name else f"a {lock.what or lock.kind}", lock=lock)

    def _native_wait(self, futex: FutexCall, number: int, threads: Threads) -> Wait:
        native, _cut = _native(number, 2 * ABOVE)
        found = awaited(self.memory, futex, threads, [frame.function for frame in native])
        if found is None:
            return Wait("futex")
        at = program_frame([(frame.function, frame.module) for frame in native])
        wanted = Wanted(native[at].function, native[at].module, native[at].address) if at is not None else None
        return Wait(describe(self.memory, found, wanted), native=found)

    def _gil(self, state: Optional[ThreadState], wait: Optional[Wait]) -> str:
        if state is None:
            return "detached"
        if any(i.gil and i.gil.holder == state.address for i in self.python.interpreters):
            return "holds"
        if wait is not None:
            return "waits" if wait.gil else "detached"
        return "detached" if state.attached is False else "unknown"

    def tid_of_ident(self, ident: int) -> Optional[int]:
        """Of a thread that the interpreter knows, or of one of C's, which runs Python only now and then: an ident is a
        thread pointer."""
        known = next((row.tid for row in self.rows() if row.state and row.state.ident == ident), None)
        return self._pointers.get(ident) if known is None else known

    def tid_of(self, state_address: Optional[int]) -> Optional[int]:
        return next((r.tid for r in self.rows() if r.state and r.state.address == state_address), None)

    # ------------------------------------------------------------------ stacks

    def merged(self, row: Row) -> Tuple[Sequence[object], Optional[str]]:
        """(``Frame``s and ``Native``s, most recent call first, why the native part ends early or None)."""
        native, cut = _native(row.number)
        return merge([(frame, frame.entry) for frame in row.frames], native), cut


class Selection:
    """Puts back which thread and frame were selected."""

    def __enter__(self) -> None:
        self._thread, self._frame = gdb.selected_thread(), None
        with contextlib.suppress(gdb.error):
            self._frame = gdb.selected_frame()

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(*FAILURES):
            if self._thread is not None and self._thread.is_valid():
                self._thread.switch()
            if self._frame is not None and self._frame.is_valid():
                self._frame.select()


def _registers(thread: gdb.InferiorThread) -> Dict[str, int]:
    try:
        thread.switch()
        frame = gdb.newest_frame()
        return {name: int(frame.read_register(name)) & (1 << 64) - 1 for name in _REGISTERS}
    except FAILURES:
        return {}


def _native(number: int, most: int = MAX_NATIVE) -> Tuple[List[Native], Optional[str]]:
    found: List[Native] = []
    program = gdb.current_progspace().filename
    with Selection():
        try:
            next(t for t in gdb.selected_inferior().threads() if t.num == number).switch()
            frame = gdb.newest_frame()
            while frame is not None:
                if len(found) >= most:
                    return found, f"more than {most} native frames"
                place = frame.find_sal()
                file = place.symtab.filename if place.symtab else None
                pc = int(frame.pc())
                found.append(Native(frame.name(), gdb.solib_name(pc) or program, pc, file, place.line or None))
                frame = frame.older()
        except (*FAILURES, StopIteration) as exc:
            return found, str(exc) or "gdb cannot unwind it"
    return found, None
