"""Facts of a crash that only a debugger can read.

These are the failed instruction, the registers there, and the positions of the thread's frames on its stack. Runs
inside gdb, after stacks.py and on the same core: libraries are loaded by then.

Input, from the environment:

- POSTMORTEM_CRASHED: the thread's LWP
- POSTMORTEM_STACKS (appended to), POSTMORTEM_STACKS_UNTIL: as in stacks.py

Output, one more JSON line: ``{"crash": LWP, "whole": true | false, "frames": [{"function", "address", "sp",
"trampoline"}, ...], "places": [{"frame", "instruction", "code", "registers"}, ...], "said": [{"function", "name",
"text"}, ...], "error"}``

- ``places``: the innermost frame, and each one that a signal handler interrupted, which lies below a ``trampoline``
- ``code``: the instruction's bytes in hex; gdb shows zeros if it has no file to read them from
- ``said``: texts passed to a fatal error of CPython, as far as debug information shows them
- ``whole``: whether the frames reach the thread's first one
"""

import json
import os
import re
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import gdb

MAX_FRAMES = 1024  # as in stacks.py
MAX_PLACES = 8
MAX_TEXT = 2000

FAILURES = (gdb.error, RuntimeError, ValueError, OverflowError)
X86_64 = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip", "fs_base")
AARCH64 = (*(f"x{n}" for n in range(31)), "sp", "pc")
WORD = (1 << 64) - 1

#: Python/pylifecycle.c, 3.8 to 3.14: fatal_error(prefix, msg, status) in 3.8, (fd or stream, header, prefix, msg,
#: status) since; Py_FatalError(msg); _Py_FatalErrorFunc(func, msg) and _Py_FatalError_TstateNULL(func) from 3.9 on.
FATAL = re.compile(r"(fatal_error|_?Py_FatalError(Func|Format|_TstateNULL)?)(\.[\w.]+)?$")
ARGUMENTS = ("prefix", "func", "msg", "format")


def frames_of(until: float) -> Tuple[List[gdb.Frame], bool, Optional[str]]:
    """Return (frames, innermost first; whether they reach the thread's first one; error or None)."""
    found: List[gdb.Frame] = []
    frame: Optional[gdb.Frame] = gdb.newest_frame()
    try:
        while frame is not None:
            if len(found) >= MAX_FRAMES or time.monotonic() > until:
                return found, False, None
            found.append(frame)
            older = frame.older()
            if older is None:
                natural = (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_NULL_ID, gdb.FRAME_UNWIND_OUTERMOST)
                return found, frame.unwind_stop_reason() in natural, None
            frame = older
    except FAILURES as exc:
        return found, False, clipped(str(exc))
    return found, False, None


def shown(frame: gdb.Frame) -> Dict[str, Any]:
    """Return a frame as JSON."""
    return {
        "function": name_of(frame),
        "address": int(frame.pc()),
        "sp": register(frame, "sp"),
        "trampoline": frame.type() == gdb.SIGTRAMP_FRAME,
    }


def name_of(frame: gdb.Frame) -> Optional[str]:
    """Return a frame's function; None if unknown."""
    try:
        name = frame.name()
    except FAILURES:
        return None
    return clipped(name) if name else None


def register(frame: gdb.Frame, name: str) -> Optional[int]:
    """Return a register of a frame; None if unknown."""
    try:
        return int(frame.read_register(name)) & WORD
    except FAILURES:
        return None


def place(frame: gdb.Frame, index: int) -> Dict[str, Any]:
    """Return the instruction and registers of a frame."""
    names = AARCH64 if register(frame, "rip") is None else X86_64
    registers = {name: register(frame, name) for name in names}
    known = {name: value for name, value in registers.items() if value is not None}
    text, code = instruction(frame)
    return {"frame": index, "instruction": text, "code": code, "registers": known}


def instruction(frame: gdb.Frame) -> Tuple[Optional[str], Optional[str]]:
    """Return (text, bytes in hex) of a frame's instruction; None each if its memory has no code."""
    try:
        found = frame.architecture().disassemble(frame.pc(), count=1)[0]
        code = bytes(gdb.selected_inferior().read_memory(frame.pc(), int(found["length"])))
    except (*FAILURES, LookupError):
        return None, None
    return " ".join(clipped(found["asm"]).split()), code.hex()


def said(frame: gdb.Frame) -> Iterator[Dict[str, Optional[str]]]:
    """Yield the texts among the arguments of a fatal error's frame."""
    for name in ARGUMENTS:
        try:
            value = frame.read_var(name)
            if value.is_optimized_out or not int(value):
                continue
            text = value.string("utf-8", "backslashreplace")
        except FAILURES:
            continue
        yield {"function": name_of(frame), "name": name, "text": clipped(text)}


def clipped(text: str) -> str:
    """Limit the length of a text."""
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."


def crash(lwp: int, until: float) -> Dict[str, Any]:
    """Return the facts of the selected thread's crash."""
    gdb.execute("set disassembly-flavor att", to_string=True)
    frames, whole, error = frames_of(until)
    lines = [shown(frame) for frame in frames]
    hit = [0] + [index + 1 for index, line in enumerate(lines) if line["trampoline"] and index + 1 < len(lines)]
    fatal = [frame for frame, line in zip(frames, lines) if line["function"] and FATAL.match(line["function"])]
    return {
        "crash": lwp,
        "whole": whole,
        "frames": lines,
        "places": [place(frames[index], index) for index in hit[:MAX_PLACES] if frames],
        "said": [text for frame in fatal[:8] for text in said(frame)],
        "error": error,
    }


def write(value: Dict[str, Any]) -> None:
    """Append a line to the output."""
    fd = os.open(os.environ["POSTMORTEM_STACKS"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(json.dumps(value, separators=(",", ":")) + "\n")


def main() -> None:
    """Write the facts of the thread that crashed."""
    lwp, until = int(os.environ["POSTMORTEM_CRASHED"]), float(os.environ["POSTMORTEM_STACKS_UNTIL"])
    for thread in gdb.selected_inferior().threads():
        if (thread.ptid[1] or thread.ptid[0]) == lwp and time.monotonic() < until:
            try:
                thread.switch()
                found = crash(lwp, until)
            except FAILURES as exc:
                found = {"crash": lwp, "error": clipped(str(exc) or type(exc).__name__)}
            write(found)


main()
