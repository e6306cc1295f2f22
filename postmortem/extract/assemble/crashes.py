"""``evidence.Crash`` from a core written after a fatal signal.

Sources: its notes, gdb's view of the thread that received the signal, and the messages of glibc and the interpreter
before an abort.
"""

from __future__ import annotations

import re
import signal
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...arch.instructions import access_to, faulting_address
from ...arch.registersets import program_counter, stack_pointer
from ...arch.siginfo import SigInfo
from ...cpython.state.fatalerrors import FatalError, inferred, split
from ...evidence import Crash, Gap, NativeFrame, Process, Thread
from ...evidence import replace as changed
from ...evidence.vocabulary import GapCode
from ...libc.aborts import NoAbortMessage, abort_message
from ...libc.stackbounds import GAP, Bounds, bounds
from ...memory import ElfCore, Fault
from ...memory.elf import PF_W, PF_X
from ...native.stacks import CrashFrame, CrashLine, CrashPlace, NativeStacks
from .aborts import abort_of
from .interrupted import interrupted

#: Signals that write a core by default (signal(7)) and that the process itself causes or a watchdog sends.
FATAL = {
    "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGQUIT", "SIGSYS", "SIGTRAP", "SIGXCPU", "SIGXFSZ",
}  # fmt: skip
_MEMORY = (signal.SIGSEGV, signal.SIGBUS)
_FATAL_ERROR = re.compile(r"(fatal_error|_?Py_FatalError(Func|Format|_TstateNULL)?)(\.[\w.]+)?$")
_ABORT = re.compile(r"(__GI_)?abort$")
_DEBUGGER = "`postmortem debug` shows the registers and memory around it"


def fatal_signal(core: ElfCore) -> Optional[int]:
    """Return the signal that ended the process; None for a core written by gcore, whose signal ends nothing."""
    number = core.siginfo[0] if core.siginfo else core.threads[0].signal if core.threads else 0
    try:
        name = signal.Signals(number).name
    except ValueError:
        return None
    return number if name in FATAL and (core.siginfo or name != "SIGTRAP") else None


def with_crash(process: Process, core: ElfCore, native: Optional[NativeStacks], gaps: List[Gap]) -> Process:
    """Return the process with its crash.

    The core's first thread received the signal.
    """
    number = fatal_signal(core)
    if number is None or not core.threads:
        return process
    reader = _CrashReader(core, number, native.crash if native else None, gaps)
    thread = next((t for t in process.threads if t.tid == core.threads[0].tid), None)
    crash = changed(reader.crash(thread), holds_gil=_holds_gil(process, thread))
    return changed(process, fatal_signal=number, crash=crash)


def _holds_gil(process: Process, thread: Optional[Thread]) -> Optional[bool]:
    """Return whether a thread holds the GIL by the interpreter's record; None if unknown or free-threaded."""
    wanted = thread.interpreter if thread is not None and thread.interpreter is not None else 0
    gil = next((i.gil for i in process.interpreters if i.id == wanted), None)
    if thread is None or gil is None or process.python is None or process.python.free_threaded:
        return None
    if thread.gil == "holds":
        return True
    return False if gil.locked is False or gil.holder_tid not in (None, thread.tid) else None


class _Place(NamedTuple):
    """The place of the signal: the innermost frame, or the one that a handler interrupted."""

    depth: int  # index among the native frames
    registers: Mapping[str, int]
    instruction: Optional[str] = None
    handler: Optional[bool] = None
    access: Optional[str] = None


class _CrashReader:
    def __init__(self, core: ElfCore, number: int, seen: Optional[CrashLine], gaps: List[Gap]) -> None:
        self._core, self._seen, self._gaps = core, seen, gaps
        self._tid = core.threads[0].tid
        self._cause = core.cause  # None: the core has no siginfo
        self._number = number

    def crash(self, thread: Optional[Thread]) -> Crash:
        """Return the crash.

        ``thread``: the one that received the signal.
        """
        cause, place = self._origin()
        if self._core.cause is None:
            self._say("why it was sent", "no-siginfo")
        number = cause.signal if cause is not None else self._number
        pc = program_counter(place.registers) or None
        mapped = self._core.mapped_file(pc) if pc is not None else None
        found = Crash(
            signal=int(number),
            code=cause.code if cause else None,
            code_name=cause.code_name if cause else None,
            sender_pid=cause.sender[0] if cause and cause.sender else None,
            sender_uid=cause.sender[1] if cause and cause.sender else None,
            syscall=cause.syscall if cause else None,
            tid=self._tid,
            pc=pc,
            instruction=place.instruction,
            module=mapped.path if mapped is not None else None,
            handler=place.handler,
            native_depth=len(self._seen.frames) if self._seen and self._seen.frames else None,
            native_whole=self._seen.whole if self._seen and self._seen.frames else None,
        )
        found = self._with_frame(found, place, thread)
        if cause is not None and number in _MEMORY and (cause.is_fault or cause.address is not None):
            found = self._with_address(found, cause, place)
        if place.instruction is None and self._seen is not None and found.access != "execute":
            self._say("the instruction", "instruction-unread")
        if number == signal.SIGABRT:
            found = self._with_words(found, place)
        return self._with_stack(found, place)

    # ------------------------------------------------------------------ where

    def _origin(self) -> Tuple[Optional[SigInfo], _Place]:
        """Return the original fault and its place.

        A handler may have raised the fault again, aborted, or failed itself; the oldest fault counts.
        """
        seen, first = self._seen, self._core.threads[0]
        ended = self._cause or SigInfo(self._number, None)
        if seen is None or not seen.places:
            if ended.sender is not None and ended.sender[0] == self._core.pid and self._number != signal.SIGABRT:
                self._say("whether a handler ran", "crash-stack-unknown")
            return self._cause, _Place(0, first.regs)
        places = [self._believed(place) for place in seen.places]
        for place in reversed(places):
            found = interrupted(self._core, ended, seen.frames, place)
            if found is not None:
                return found.cause, _Place(place.frame, place.registers, place.instruction, True, found.access)
        inner = places[0]
        return self._cause, _Place(0, {**first.regs, **inner.registers}, inner.instruction, False)

    def _believed(self, place: CrashPlace) -> CrashPlace:
        """Return a place without the instruction if gdb read other bytes than the core has: another build, or zeros."""
        try:
            code = bytes.fromhex(place.code or "")
            if code and self._core.read(program_counter(place.registers), len(code)) == code:
                return place
        except (Fault, ValueError):
            pass
        return changed(place, instruction=None)

    def _with_frame(self, crash: Crash, place: _Place, thread: Optional[Thread]) -> Crash:
        """Return the crash with the index of its frame in the merged stack."""
        native = [i for i, f in enumerate(thread.stack) if isinstance(f, NativeFrame)] if thread is not None else []
        if thread is None or place.depth >= len(native) or self._seen is None:
            return crash
        frame = thread.stack[native[place.depth]]
        if not isinstance(frame, NativeFrame) or frame.address != crash.pc:
            return crash
        return changed(crash, frame=native[place.depth], function=frame.function)

    def _with_address(self, crash: Crash, cause: SigInfo, place: _Place) -> Crash:
        text, registers = self._understood(place.instruction), {**place.registers}
        registers.setdefault("fs_base", self._core.threads[0].regs.get("fs_base", 0))
        if cause.address is None:
            address = faulting_address(text, registers) if text else None
            basis = "instruction" if address is not None else None
            access = access_to(address, text, registers) if text and address is not None else None
            return changed(crash, address=address, address_basis=basis, access=access)
        access = place.access
        if access is None and cause.address == crash.pc:
            access = "execute"
        if access is None and text is not None:
            access = access_to(cause.address, text, registers)
        return changed(crash, address=cause.address, address_basis="recorded", access=access)

    def _understood(self, instruction: Optional[str]) -> Optional[str]:
        """Return the instruction for x86-64; None for other machines, whose memory access is not decoded."""
        return instruction if self._core.machine_name == "x86-64" else None

    # ------------------------------------------------------------------ messages

    def _with_words(self, crash: Crash, place: _Place) -> Crash:
        message: Optional[str] = None
        try:
            message = abort_message(self._core)
        except NoAbortMessage as exc:
            self._say("the message of abort()", "abort-message-unread", str(exc))
        error, basis = self._python_error(place)
        told = message is not None or error is not None or crash.handler is True or self._seen is None
        return changed(
            crash,
            message=message,
            abort=None if told or self._seen is None else abort_of(self._core, self._seen.frames),
            python_error=error.message if error else None,
            python_error_function=error.function if error else None,
            python_error_basis=basis if error else None,
        )

    def _python_error(self, place: _Place) -> Tuple[Optional[FatalError], Optional[str]]:
        frames = self._seen.frames if self._seen else ()
        fatal = [i for i, f in enumerate(frames) if f.function and _FATAL_ERROR.match(f.function)]
        aborts = [i for i, f in enumerate(frames) if f.function and _ABORT.match(f.function)]
        aborts = [i for i in aborts if fatal and i < fatal[0] <= i + 4]
        if not aborts or self._seen is None:
            return None, None
        texts = [said.text for said in self._seen.said if said.name in ("msg", "format")]
        if texts:
            names = [said.text for said in self._seen.said if said.name in ("func", "prefix")]
            return split(texts[-1], names[-1] if names else None), "recorded"
        error = self._inferred(place, frames, aborts[-1], [i for i in fatal if i <= fatal[0] + 4][-1])
        if error is None:
            self._say("the message of Py_FatalError()", "fatal-error-unread")
        return error, "inferred"

    def _inferred(self, place: _Place, frames: Sequence[CrashFrame], abort: int, last: int) -> Optional[FatalError]:
        """Return the message found between the frames of abort's caller and of the last fatal-error function's caller."""
        low = frames[abort + 1].sp if abort + 1 < len(frames) else None
        high = frames[last + 2].sp if last + 2 < len(frames) else None
        if low is None or high is None:
            return None
        return inferred(self._core, low, high, place.registers, self._is_constant)

    def _is_constant(self, address: int) -> bool:
        mapping = self._core.mapping(address)
        return mapping is not None and not mapping.flags & (PF_W | PF_X) and self._core.mapped_file(address) is not None

    # ------------------------------------------------------------------ the stack

    def _with_stack(self, crash: Crash, place: _Place) -> Crash:
        sp = stack_pointer(place.registers)
        if not sp:
            return crash
        fs_base = self._core.threads[0].regs.get("fs_base")
        registers: Dict[str, int] = {**place.registers, **({"fs_base": fs_base} if fs_base else {})}
        found = bounds(self._core, registers, sp)
        if found is None:
            self._say("the bounds of its stack", "stack-bounds-unknown")
            return crash
        where = _place_of(crash.address, sp, found)
        limit = found.limit if found.limit is not None or where != "guard" else found.high - found.low
        return changed(crash, stack=where, stack_used=max(0, found.high - sp), stack_limit=limit)

    def _say(self, what: str, code: GapCode, reason: Optional[str] = None) -> None:
        self._gaps.append(Gap("core", f"crash of thread {self._tid}: {what}", reason, code=code))


def _place_of(address: Optional[int], sp: int, stack: Bounds) -> Optional[str]:
    """Return a position relative to the stack.

    An overflow is near the stack pointer; a stray pointer far below a stack is none.
    """
    if address is None:
        return None
    if stack.low <= address < stack.high:
        return "inside"
    below = stack.guard - GAP <= address < stack.low and abs(address - sp) <= GAP
    return "guard" if below and (address >= stack.guard or sp < stack.low) else None
