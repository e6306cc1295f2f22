"""The target that gdb has open, as the child sees it.

- a core: its files by name
- a live process: threads, registers and mappings; memory and native stacks on request
"""

from __future__ import annotations

import base64
import contextlib
import re
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import gdb

MOST_READ = 1 << 20
MAX_NAME = 1000  # characters of a symbol or file name
#: gdb raises RuntimeError for most failures; gdb.MemoryError is one.
FAILURES = (gdb.error, RuntimeError, ValueError, OverflowError)
WORD = (1 << 64) - 1
X86_64 = (
    "rip", "orig_rax", "fs_base", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)),
)  # fmt: skip
AARCH64 = ("pc", "sp", *(f"x{n}" for n in range(31)))
#: By the beginning of gdb's name of the architecture: registers of another machine may be called alike.
_REGISTERS: Dict[str, Tuple[str, ...]] = {"i386:x86-64": X86_64, "aarch64": AARCH64}

_CORE_FILE = re.compile(r"^\s*`(.*)', file type elf", re.M)
#: START END SIZE OFFSET [PERMS] FILE; mappings without a file have fewer columns.
_MAPPING = re.compile(
    r"^\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(?:([-rwxsp]{4,5})\s+)?(\S.*)?$"
)
#: NUMBER NAME DESCRIPTION VALUE, and the string that it points to.
_AUXV = re.compile(r'^(\d+)\s.*\s(0x[0-9a-f]+|\d+)(?:\s+".*")?\s*$')


def told() -> Dict[str, Any]:
    """Return what is open, for the child's first frame. Raises gdb.GdbError if nothing is."""
    core, inferior = _core(), gdb.selected_inferior()
    sysroot, exe = str(gdb.parameter("sysroot") or ""), _program()
    found: Dict[str, Any] = {
        "core": core,
        "pid": inferior.pid,
        "exe": None if exe is None or exe.startswith("target:") else exe,
        "sysroot": None if sysroot.startswith("target:") or sysroot in ("", "/") else sysroot,
    }
    if core is None:
        if not inferior.pid:
            raise gdb.GdbError("there is no core and no process: open one with `core-file FILE` or `attach PID`")
        found["local"] = getattr(getattr(inferior, "connection", None), "type", None) == "native"  # since gdb 11
        found["uids"] = next((line.split()[1:] for line in _said("info proc status") if line.startswith("Uid:")), [])
        with selection():
            found["registers"] = [(tid, _registers(thread)) for thread, tid in _threads()]
        found["mappings"] = list(_mappings())
        found["auxv"] = [(int(m[1]), int(m[2], 0)) for m in map(_AUXV.match, _said("info auxv")) if m]
    return found


def answer(asked: Dict[str, Any], until: float) -> Dict[str, Any]:
    """Answer a request of the child's about a live process."""
    try:
        if "read" in asked:
            return _read(*map(int, asked["read"]))
        return _stack(int(asked["stack"]), int(asked["most"]), until)
    except (TypeError, ValueError, KeyError):
        return {"fault": "a malformed request"}


def selected() -> Optional[int]:
    """Return the selected thread's TID; None if none is selected."""
    thread = gdb.selected_thread()
    return (thread.ptid[1] or thread.ptid[0]) if thread is not None else None


def numbers() -> List[Tuple[int, int]]:
    """Return (gdb's number, TID) of each thread."""
    return [(thread.num, tid) for thread, tid in _threads()]


@contextlib.contextmanager
def selection() -> Iterator[None]:
    """Restore the selected thread and frame after the block."""
    thread, frame = gdb.selected_thread(), None
    with contextlib.suppress(gdb.error):
        frame = gdb.selected_frame()
    try:
        yield
    finally:
        with contextlib.suppress(*FAILURES):
            if thread is not None and thread.is_valid():
                thread.switch()
            if frame is not None and frame.is_valid():
                frame.select()


def _threads() -> List[Tuple[gdb.InferiorThread, int]]:
    return [(thread, thread.ptid[1] or thread.ptid[0]) for thread in gdb.selected_inferior().threads()]


def _core() -> Optional[str]:
    """Return the core file that gdb has open; None for a process."""
    rest = "\n".join(_said("info target")).partition("Local core dump file:")[2]
    match = _CORE_FILE.search(rest)
    return match[1] if match else None


def _said(command: str) -> List[str]:
    try:
        return gdb.execute(command, to_string=True).splitlines()
    except gdb.error:
        return []


def _mappings() -> Iterator[Tuple[int, int, int, Optional[str], str]]:
    """Yield (start, end, offset, permissions or None, file)."""
    for match in map(_MAPPING.match, _said("info proc mappings")):
        if match:
            yield int(match[1], 16), int(match[2], 16), int(match[3], 16), match[4], (match[5] or "").strip()


def _registers(thread: gdb.InferiorThread) -> Dict[str, int]:
    """Return the registers that gdb can read; empty for a running thread."""
    found: Dict[str, int] = {}
    try:
        thread.switch()
        frame = gdb.newest_frame()
    except FAILURES:
        return found
    machine = frame.architecture().name()
    names = next((names for prefix, names in _REGISTERS.items() if machine.startswith(prefix)), None)
    if names is None:
        raise gdb.GdbError(f"live processes of {machine} are not read, only those of {' and '.join(_REGISTERS)}")
    for name in names:
        value = _register(frame, name)
        if value is not None:
            found[name] = value
    pointer = _register(frame, "tpidr") if names is AARCH64 else None
    return found if pointer is None else {**found, "tpidr_el0": pointer}


def _register(frame: gdb.Frame, name: str) -> Optional[int]:
    try:
        return int(frame.read_register(name)) & WORD
    except FAILURES:
        return None


def _read(address: int, size: int) -> Dict[str, Any]:
    if not 0 < size <= MOST_READ or not 0 <= address <= WORD - size:
        return {"fault": "not an address, or not a size"}
    try:
        return {"data": base64.b64encode(bytes(gdb.selected_inferior().read_memory(address, size))).decode()}
    except FAILURES as exc:
        return {"fault": str(exc)[:MAX_NAME] or "gdb cannot read it"}


def _stack(tid: int, most: int, until: float) -> Dict[str, Any]:
    """Return the frames of one thread, most recent call first, and why they end early."""
    frames: List[Dict[str, Any]] = []
    error = None
    program = _program()
    with selection():
        try:
            next(thread for thread, number in _threads() if number == tid).switch()
            frame: Optional[gdb.Frame] = gdb.newest_frame()
            while frame is not None and error is None:
                frames.append(_described(frame, program))
                frame = frame.older()
                if len(frames) >= most or time.monotonic() > until:
                    error = f"more than {most} native frames" if len(frames) >= most else "out of time"
        except (*FAILURES, StopIteration) as exc:
            error = str(exc)[:MAX_NAME] or "gdb cannot unwind it"
    return {"frames": frames, "error": error}


def _program() -> Optional[str]:
    """Return the path of the main program as gdb knows it."""
    space = gdb.current_progspace()
    return space.filename if space is not None else None


def _described(frame: gdb.Frame, program: Optional[str]) -> Dict[str, Any]:
    place, pc = frame.find_sal(), int(frame.pc())
    name = "<signal handler called>" if frame.type() == gdb.SIGTRAMP_FRAME else frame.name()
    return {
        "function": name[:MAX_NAME] if name else None,
        "module": gdb.solib_name(pc) or program,
        "address": pc,
        "file": place.symtab.filename[:MAX_NAME] if place.symtab else None,
        "line": place.line or None,
    }
