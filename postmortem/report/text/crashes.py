"""Crashes in the text report: the signal, the place, and the last messages."""

from __future__ import annotations

from typing import Iterator, List, Optional

from ...evidence import Abort, Crash, Process
from ...signalnames import signal_name
from .. import escape
from ..phrases import bases, labels
from .page import Page

#: <asm-generic/siginfo.h>, in plain words; the phrases follow the address and the kind of access.
_WHY = {
    "SEGV_MAPERR": "where nothing is mapped",
    "SEGV_ACCERR": "which may not be accessed in this way",
    "BUS_ADRALN": "which is not aligned",
    "BUS_ADRERR": "which no memory backs: a mapped file was cut short, or the disk is full",
    "SI_KERNEL": "which no program can use",
    "FPE_INTDIV": "an integer was divided by zero, or the quotient is too large",
    "FPE_INTOVF": "an integer overflowed",
    "FPE_FLTDIV": "a floating-point number was divided by zero",
    "FPE_FLTINV": "an invalid floating-point operation",
    "ILL_ILLOPC": "there is no such instruction",
    "ILL_ILLOPN": "there is no such instruction",
    "SYS_SECCOMP": "a system call that a seccomp filter refuses",
}
_DONE = {"read": "it read from", "write": "it wrote to", "execute": "it jumped to", None: "it accessed"}
_CUT = 300


def show(page: Page, process: Process, indent: int) -> None:
    """Print the crash of a process; nothing for a process that did not crash."""
    for sentence in sentences(process):
        page.text(escape.clean(sentence), indent)


def sentences(process: Process) -> List[str]:
    """Return sentences on the crash of a process; [] for a process that did not crash."""
    return list(_sentences(process.crash, process)) if process.crash is not None else []


def _sentences(crash: Crash, process: Process) -> Iterator[str]:
    thread = next((t for t in process.threads if t.tid == crash.tid), None)
    who = labels.label(thread, crash.tid) if crash.tid is not None else "an unknown thread"
    code = f" ({crash.code_name})" if crash.code_name else ""
    yield f"Crash: {signal_name(crash.signal)}{code} in {who}{_what(crash, process)}."
    place = _place(crash)
    if place:
        yield place
    if crash.handler:
        ended = (
            "" if process.fatal_signal in (None, crash.signal) else f" {signal_name(process.fatal_signal or 0)} then"
        )
        yield f"The program's own signal handler ran first;{ended or ' the same signal'} ended the process."
    if crash.stack == "guard":
        limit = f" of {crash.stack_limit:,}" if crash.stack_limit is not None else ""
        yield f"The address lies beyond the end of the thread's stack, of which {crash.stack_used:,}{limit} bytes are used."
    elif crash.stack == "inside":
        yield "The address lies inside the thread's own stack."
    if crash.message:
        yield f'The C library said: "{escape.cut(crash.message, _CUT)}".'
    if crash.abort is not None:
        yield from _gave_up(crash.abort)
    if crash.python_error:
        function = f"{crash.python_error_function}: " if crash.python_error_function else ""
        basis = bases.of_crash(crash.python_error_basis)
        yield f'Python said: "Fatal Python error: {function}{escape.cut(crash.python_error, _CUT)}"{basis}.'


def _gave_up(told: Abort) -> Iterator[str]:
    said = f': "{escape.cut(told.message, _CUT)}"' if told.message else ""
    if told.kind == "exception":
        yield f"A C++ exception that nothing caught: {escape.cut(told.exception or '?', _CUT)}{said}."
    elif told.kind == "panic":
        place = f" at {escape.cut(told.place, _CUT)}" if told.place else ""
        yield f"Rust code panicked{place}{said}."
    elif said:
        yield f"It printed to stderr before{said}{bases.of_crash(told.basis)}."


def _what(crash: Crash, process: Process) -> str:
    why = _WHY.get(crash.code_name or "")
    if crash.address is not None:
        return f": {_DONE[crash.access]} address {crash.address:#x}{f', {why}' if why else ''}"
    if crash.code_name == "SI_KERNEL":
        return ": an address that no program can use, or misaligned data"
    if why:
        return f": {why}"
    return _sender(crash, process)


def _sender(crash: Crash, process: Process) -> str:
    if crash.sender_pid is None:
        return ""
    if crash.sender_pid == process.pid:
        return ", sent by the process itself"
    if crash.sender_pid == 0:
        return ", sent by a process outside its pid namespace"
    return f", sent by process {crash.sender_pid} of user {crash.sender_uid}"


def _place(crash: Crash) -> Optional[str]:
    if crash.pc is None:
        return None
    module = f" of {crash.module.rsplit('/', 1)[-1]}" if crash.module else ", which belongs to no file"
    where = f"{crash.function or f'{crash.pc:#x}'}{module}"
    return f"At {where}: {crash.instruction}" if crash.instruction else f"At {where}."
