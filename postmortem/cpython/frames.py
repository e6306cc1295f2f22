"""Interpreter frames: one of them, and the values that it keeps; ``chains`` has a whole stack.

A frame's ``localsplus`` holds locals, cells and free variables, then the value stack. Source:
Include/internal/pycore_frame.h and Objects/frameobject.c of 3.11-3.13.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ..memory import Fault
from . import layouts as L
from .code import Code, CodeCache
from .objects import NotThat, Objects

_WORD = struct.Struct("<Q")


class Frame:
    """One Python frame. ``entry`` is True when it was entered from C: the next older frame of the chain belongs
    to an older native interpreter loop."""

    __slots__ = ("address", "code", "entry", "lasti", "owner")

    def __init__(self, address: int, code: Code, lasti: int, owner: int, entry: bool) -> None:
        self.address = address
        self.code = code
        self.lasti = lasti  # byte offset of the current instruction
        self.owner = owner
        self.entry = entry

    @property
    def line(self) -> Optional[int]:
        return self.code.line(self.lasti)

    @property
    def function(self) -> str:
        return self.code.name

    def is_in(self, function: str, *endings: str) -> bool:
        """Is it this function of a file with one of these endings?"""
        return self.code.name == function and self.code.filename.endswith(endings)


class Visit(NamedTuple):
    """One step along a chain."""

    frame: Optional[Frame]  # None: it has not begun to run, or is no Python frame
    shim: bool  # stands for the C code that entered the frame before it
    previous: int


class Frames:
    """Walks chains of frames of one interpreter."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.codes = CodeCache(objects)
        layout = objects.layout
        offsets = (layout.fr_code, layout.fr_previous, layout.fr_instr, layout.fr_owner, layout.fr_is_entry)
        self._size = max(offsets) + 8
        self._modules: Dict[int, Optional[str]] = {}

    def visit(self, address: int) -> Visit:
        """One step of a chain, from one read. Raises Fault or NotThat."""
        layout = self.objects.layout
        raw = self.objects.memory.read(address, self._size)
        previous = _word(raw, layout.fr_previous)
        if layout.fr_is_entry < 0 and raw[layout.fr_owner] == L.OWNED_BY_CSTACK:
            return Visit(None, True, previous)
        return Visit(self._made(address, raw), False, previous)

    def frame(self, address: int) -> Optional[Frame]:
        """The frame at an address; None for one that has not begun to run. Raises Fault or NotThat."""
        return self._made(address, self.objects.memory.read(address, self._size))

    def _made(self, address: int, raw: bytes) -> Optional[Frame]:
        layout = self.objects.layout
        code = self.codes.get(_word(raw, layout.fr_code))
        owner = raw[layout.fr_owner]
        lasti = _word(raw, layout.fr_instr) - code.start
        if lasti >> 63 or lasti == (1 << 64) - 2:
            lasti = -2
        if lasti > 1 << 31:
            raise NotThat("instruction pointer outside its code")
        if owner != L.OWNED_BY_GENERATOR and lasti < code.firsttraceable:
            return None
        entry = layout.fr_is_entry >= 0 and bool(raw[layout.fr_is_entry])
        return Frame(address, code, max(lasti, 0), owner, entry)

    def local(self, frame: Frame, name: str) -> Optional[int]:
        """Address of a local variable's value (through its cell), or None."""
        names = frame.code.local_names()
        if name not in names:
            return None
        try:
            value = self._slot(frame, names.index(name))
            return self._uncell(value) if value else None
        except Fault:
            return None

    def locals(self, frame: Frame) -> Iterator[Tuple[str, int]]:
        """(name, address) of the bound locals, cells opened."""
        try:
            values = self.objects.memory.words(
                frame.address + self.objects.layout.fr_localsplus, frame.code.nlocalsplus
            )
        except Fault:
            return
        for name, value in zip(frame.code.local_names(), values):
            if value:
                opened = self._uncell(value)
                if opened:
                    yield name, opened

    def _uncell(self, value: int) -> Optional[int]:
        if self.objects.type_name(value) != "cell":
            return value
        try:
            return self.objects.memory.u64(value + 16) or None
        except Fault:
            return None

    def _slot(self, frame: Frame, index: int) -> int:
        return self.objects.memory.u64(frame.address + self.objects.layout.fr_localsplus + 8 * index)

    def value_stack(self, frame: Frame) -> Tuple[int, ...]:
        """All slots of the value stack, used or not: whoever looks checks what he finds."""
        start = frame.address + self.objects.layout.fr_localsplus + 8 * frame.code.nlocalsplus
        try:
            return self.objects.memory.words(start, frame.code.stacksize)
        except Fault:
            return ()

    def stack_top(self, frame: Frame) -> Optional[int]:
        """The topmost value of a *suspended* frame (a running one has no recorded depth)."""
        layout, memory = self.objects.layout, self.objects.memory
        try:
            top = memory.i32(frame.address + layout.fr_stacktop)
            if not frame.code.nlocalsplus < top <= frame.code.nlocalsplus + frame.code.stacksize:
                return None
            return self._slot(frame, top - 1) or None
        except Fault:
            return None

    def module(self, frame: Frame) -> Optional[str]:
        """``__name__`` of the frame's globals."""
        try:
            address = self.objects.memory.u64(frame.address + self.objects.layout.fr_globals)
            if address not in self._modules:
                value = self.objects.lookup(address, "__name__")
                self._modules[address] = self.objects.text(value) if value else None
            return self._modules[address]
        except (Fault, NotThat):
            return None

    def globals(self, frame: Frame) -> Optional[int]:
        try:
            return self.objects.memory.u64(frame.address + self.objects.layout.fr_globals)
        except Fault:
            return None


def _word(raw: bytes, offset: int) -> int:
    return int(_WORD.unpack_from(raw, offset)[0])
