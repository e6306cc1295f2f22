"""A live process stopped by gdb, read like the core that it would leave.

Threads, mappings and memory come from gdb; this process traces nothing and reads no memory itself.
"""

from __future__ import annotations

import base64
import os
import struct
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from ..arch.registersets import EM_AARCH64, EM_X86_64, LAYOUTS, THREAD_POINTER
from ..capture.freeze import elfcore
from ..capture.freeze.segments import Segment, flags_of, is_skipped
from ..capture.freeze.stop import Registers
from ..capture.procfs.parsers import Mapping
from ..evidence import NativeFrame
from ..memory import Fault
from ..memory.linkmap import Locate
from ..memory.live import PAGE, LiveCore
from ..memory.procmem import below, root_prefix
from .wire import Link

_NT_ARM_TLS = 0x401
#: Pages requested together: a round trip costs as much as reading that many.
_AT_ONCE = 16
#: Pages kept that were read ahead.
_MOST_AHEAD = 4096
#: Bytes of writable memory searched as a whole; larger processes are not searched.
_SEARCHED = 64 << 20
#: Threads whose native stacks gdb unwinds, and frames of each.
_MOST_STACKS, _MOST_FRAMES = 500, 1024


class GdbPages:
    """The pages of the process, read by gdb."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._ahead: Dict[int, bytes] = {}

    def page(self, number: int) -> bytes:
        """Return a page. Raises Fault."""
        found = self._ahead.pop(number, None)
        if found is not None:
            return found
        first = number - number % _AT_ONCE
        try:
            data = self._read(first, _AT_ONCE)
        except Fault:  # one of them is unmapped
            return self._read(number, 1)
        if len(self._ahead) > _MOST_AHEAD:
            self._ahead.clear()
        self._ahead.update((first + index, data[index * PAGE : (index + 1) * PAGE]) for index in range(_AT_ONCE))
        return self._ahead.pop(number)

    def _read(self, number: int, count: int) -> bytes:
        answer = self._link.ask({"read": [number * PAGE, count * PAGE]})
        data = base64.b64decode(str(answer.get("data", "")))
        if len(data) != count * PAGE:
            raise Fault(number * PAGE, count * PAGE, str(answer.get("fault") or "ends early"))
        return data


class Inferior(LiveCore):
    """A process stopped by gdb. Raises OSError, NotElf, ValueError."""

    def __init__(self, link: Link, told: Dict[str, Any], locate: Locate) -> None:
        super().__init__("the process in gdb", GdbPages(link), locate, descriptor=_head(told))

    def read(self, address: int, size: int) -> bytes:
        """Read memory. Raises Fault with the whole range."""
        try:
            return super().read(address, size)
        except Fault as exc:  # it names one page only
            raise Fault(address, size, exc.reason) from None

    @property
    def written(self) -> List[Tuple[int, int]]:
        """Return all writable memory; nothing if it is larger than ``_SEARCHED`` bytes."""
        found = self.writable
        return found if sum(end - start for start, end in found) <= _SEARCHED else []


def native_stacks(link: Link, tids: Iterable[int]) -> Tuple[Dict[int, Tuple[NativeFrame, ...]], Dict[int, str]]:
    """Return (native stacks, reasons why stacks end early), both by tid."""
    stacks: Dict[int, Tuple[NativeFrame, ...]] = {}
    errors: Dict[int, str] = {}
    for tid in list(tids)[:_MOST_STACKS]:
        answer = link.ask({"stack": tid, "most": _MOST_FRAMES})
        stacks[tid] = tuple(_frame(each) for each in answer.get("frames") or ())
        if answer.get("error"):
            errors[tid] = str(answer["error"])
    return stacks, errors


def _frame(told: Dict[str, Any]) -> NativeFrame:
    return NativeFrame(
        told.get("function"), told.get("module"), int(told["address"]), told.get("file"), told.get("line")
    )


def _head(told: Dict[str, Any]) -> int:
    """Return a descriptor of a file in memory with the notes and program headers of a core."""
    threads = [(int(tid), registers) for tid, registers in told["registers"]]
    machine = "aarch64" if any("x8" in registers for _tid, registers in threads) else "x86_64"
    prefix = root_prefix(int(told["pid"])) if told.get("local") else b""
    mappings = [_mapping(each, prefix) for each in told["mappings"]]
    segments = [Segment(m.start, m.end, 0, flags_of(m.perms)) for m in mappings if not is_skipped(m)]
    pid = int(told["pid"])
    who = elfcore.Identity(pid, 0, 0, 0, os.geteuid(), os.getegid(), "t", 0, 0, b"", _words(told.get("words")))
    auxv = b"".join(struct.pack("<QQ", int(kind), int(value) & (1 << 64) - 1) for kind, value in told["auxv"])
    notes = elfcore.notes(who, [_registers(machine, *thread) for thread in threads], auxv, mappings)
    segments = segments[: elfcore.MAX_SEGMENTS]
    offsets, size = elfcore.layout(segments, len(notes))
    descriptor = os.memfd_create("postmortem-inferior", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    os.pwrite(descriptor, elfcore.head(machine, segments, notes, offsets), 0)
    return descriptor


def _words(told: Any) -> bytes:
    return str(told or "").encode("utf-8", "surrogateescape")


def _mapping(told: Sequence[Any], prefix: bytes) -> Mapping:
    """Convert a mapping; without permissions (gdb before 13) it counts as writable.

    ``prefix``: path of the process's root, which the process itself does not see.
    """
    start, end, offset, permissions, name = told
    is_file = bool(name) and str(name).startswith("/")
    file = below(os.fsencode(str(name or "")), prefix)
    return Mapping(int(start), int(end), str(permissions or "rwxp"), int(offset), "", int(is_file), file)


def _registers(machine: str, tid: int, values: Dict[str, int]) -> Registers:
    layout = LAYOUTS[EM_AARCH64 if machine == "aarch64" else EM_X86_64]
    words = [0] * layout.words
    for name, index in layout.places.items():
        words[index] = int(values.get(name, 0)) & (1 << 64) - 1
    pointer = values.get(THREAD_POINTER)
    sets = {} if pointer is None else {_NT_ARM_TLS: struct.pack("<Q", int(pointer) & (1 << 64) - 1)}
    return Registers(tid, struct.pack(f"<{layout.words}Q", *words), sets)
