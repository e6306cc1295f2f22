"""Code objects: names, and the tables from an instruction to its source location and its handlers.

Sources: Objects/exception_handling_notes.txt of 3.11-3.13 (exception table); line tables: ``linetable``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

from ...memory import Fault
from .builtins import NotThat, Objects
from .linetable import FORMATS, Location

#: Most bytes of a table; no real code has more.
MAX_TABLE = 1 << 20
#: Most variables, and most stack slots, of one frame.
MAX_SLOTS = 10_000
#: Most unreadable items of one tuple: damaged, or in pages that a core lacks.
MAX_UNREAD = 256
_WORD = 8
_T = TypeVar("_T")
#: Most six-bit groups of a number in an exception table: Python/assemble.c, assemble_emit_exception_table_item.
_MAX_GROUPS = 5


#: Most characters of a function's name: a damaged core may have thousands of frames with garbage names.
_MAX_NAME = 1_000


class Handler(NamedTuple):
    """A row of the exception table; offsets in bytes of code."""

    start: int
    end: int
    target: int
    depth: int  # value-stack slots that survive


class _JumpBack(NamedTuple):
    """JUMP_BACKWARD of a release: its numbers, plain and instrumented, its cache units, and the number of EXTENDED_ARG."""

    numbers: Tuple[int, ...]
    caches: int
    extended: int


#: Releases whose compiler leaves this jump out of the exception table (Python/flowgraph.c: it raises nothing by itself), though
#: signal handlers and finalizers run there, and the GIL changes hands.
_JUMPS_BACK = {(3, 12): _JumpBack((140, 246), 0, 144), (3, 13): _JumpBack((77, 249), 1, 71)}


class Code:
    """A code object of the target. Raises Fault or NotThat if it cannot be one."""

    def __init__(self, objects: Objects, address: int) -> None:
        layout, memory = objects.layout, objects.memory
        if objects.type_of(address).name != "code":
            raise NotThat("not a code object")
        self.address = address
        self._objects = objects
        #: Parts that are damaged, or missing from a core: "file", "name", "lines".
        self.unread: List[str] = []
        self.filename = self._text("file", layout.co_filename)
        self.name = self._text("name", layout.co_name)[:_MAX_NAME]
        self.qualname: Optional[str] = None  # 3.11+
        if layout.co_qualname >= 0:
            qualname = objects.optional_text(memory.u64(address + layout.co_qualname))
            self.qualname = qualname and qualname[:_MAX_NAME]
        self.firstlineno = memory.i32(address + layout.co_firstlineno)
        self.stacksize = min(max(memory.i32(address + layout.co_stacksize), 0), MAX_SLOTS)
        self.firsttraceable = memory.i32(address + layout.co_firsttraceable) * 2 if layout.co_firsttraceable >= 0 else 0
        self.start = address + layout.co_code  # up to 3.10 this holds a pointer to the bytes
        self._lines: Optional[List[Location]] = None
        self._ends: List[int] = []
        self._handlers: Optional[List[Handler]] = None
        self._at: Dict[int, Optional[Handler]] = {}
        self._names: Optional[Tuple[str, ...]] = None
        self._used: Optional[Tuple[str, ...]] = None
        if layout.co_nlocalsplus >= 0:
            self.nlocalsplus = min(max(memory.i32(address + layout.co_nlocalsplus), 0), MAX_SLOTS)
        else:
            self.nlocalsplus = len(self.local_names())

    def _text(self, what: str, offset: int) -> str:
        """Return a str field; "<unknown>", noted in ``unread``, if unreadable. Raises Fault."""
        text = self._objects.optional_text(self._objects.memory.u64(self.address + offset))
        if text is None:
            self.unread.append(what)
            return "<unknown>"
        return text  # may be empty: compile() accepts that

    def line(self, offset: int) -> Optional[int]:
        """Return the source line of the instruction at a byte offset; None if it has none."""
        found = self.location(offset)
        return found.line if found else None

    def location(self, offset: int) -> Optional[Location]:
        """Return the source location of the instruction at a byte offset; None if the table has none.

        A frame before its first instruction (offset < 0) is on the line of its `def`.
        """
        if offset < 0:
            return Location(0, self.firstlineno)
        if self._lines is None:
            self._lines = self._read_lines()
            self._ends = [location.end for location in self._lines]
        index = bisect_right(self._ends, offset)
        return self._lines[index] if index < len(self._lines) else None

    def _read_lines(self) -> List[Location]:
        """Decode the line table; empty, noted in ``unread``, if unreadable."""
        memory, layout = self._objects.memory, self._objects.layout
        try:
            table = self._objects.bytes_(memory.u64(self.address + layout.co_linetable), MAX_TABLE)
            self._objects.spend(len(table))
        except (Fault, NotThat):
            self.unread.append("lines")
            return []
        return list(FORMATS[layout.line_table](table, self.firstlineno, self.size()))

    def size(self) -> int:
        """Return the number of bytes of instructions; 0 if unknown.

        Since 3.11 the instructions follow the object, which counts them in units of two bytes (Include/cpython/code.h,
        _PyCode_NBYTES). Tables that extend further are damaged.
        """
        layout = self._objects.layout
        if layout.heap_frames:
            return len(self.bytecode())
        try:
            return min(self._objects.memory.u64(self.address + layout.ob_size) * 2, MAX_TABLE)
        except Fault:
            return 0

    def bytecode(self) -> bytes:
        """Return the instructions up to 3.10, two bytes each; empty if unreadable.

        Also empty since 3.11, where instructions are rewritten as they run.
        """
        if not self._objects.layout.heap_frames:
            return b""
        try:
            return self._objects.bytes_(self._objects.memory.u64(self.start), MAX_TABLE)
        except (Fault, NotThat):
            return b""

    def handlers(self) -> List[Handler]:
        """Return the exception table, since 3.11; empty before, or if unreadable."""
        if self._objects.layout.co_exceptiontable < 0:
            return []
        if self._handlers is None:
            memory = self._objects.memory
            try:
                address = memory.u64(self.address + self._objects.layout.co_exceptiontable)
                table = self._objects.bytes_(address, MAX_TABLE)
                self._objects.spend(len(table))
                self._handlers = list(parse_exception_table(table, self.size()))
            except (Fault, NotThat):
                self._handlers = []
        return self._handlers

    def handler_at(self, offset: int) -> Optional[Handler]:
        """Return the innermost handler that covers an instruction; None if there is none.

        A jump back that the table leaves out is covered like the start of its loop.
        """
        if offset not in self._at:
            found = self._covering(offset)
            start = self._loop_start(offset) if found is None else None
            self._at[offset] = found if start is None else self._covering(start)
        return self._at[offset]

    def _covering(self, offset: int) -> Optional[Handler]:
        return next((h for h in self.handlers() if h.start <= offset < h.end), None)

    def _loop_start(self, offset: int) -> Optional[int]:
        """Return where a jump that may be left out of the exception table leads back to; None for other instructions."""
        row = _JUMPS_BACK.get(self._objects.layout.version)
        if row is None or not 0 <= offset < self.size():
            return None
        try:
            number, by = self._objects.memory.read(self.start + offset, 2)
            if number not in row.numbers:
                return None
            for step in (1, 2, 3):
                before, more = self._objects.memory.read(self.start + offset - 2 * step, 2)
                if offset < 2 * step or before != row.extended:
                    break
                by |= more << 8 * step
        except Fault:
            return None
        return offset + 2 + 2 * row.caches - 2 * by

    def local_names(self) -> Tuple[str, ...]:
        """Return the names of locals, cells and free variables in the order of ``localsplus``; empty if unreadable."""
        if self._names is None:
            objects = self._objects
            try:
                layout = objects.layout
                offsets = layout.co_local_names or (layout.co_localsplusnames,)
                tuples = [objects.items(objects.memory.u64(self.address + offset), MAX_SLOTS) for offset in offsets]
                objects.spend(_WORD * sum(map(len, tuples)))
                if layout.co_nlocalsplus >= 0 and len(tuples[0]) != self.nlocalsplus:
                    raise NotThat("more names than a frame can have slots")
                self._names = tuple(objects.optional_text(item) or "?" for items in tuples for item in items)
            except (Fault, NotThat):
                self._names = ()
        return self._names

    def used_names(self) -> Tuple[str, ...]:
        """Return the names of globals and attributes that the code uses (co_names); empty if unreadable."""
        if self._used is None:
            objects = self._objects
            try:
                items = objects.items(objects.memory.u64(self.address + objects.layout.co_names))
                self._used = tuple(text or "?" for text in until_damaged(map(objects.optional_text, items)))
            except (Fault, NotThat):
                self._used = ()
        return self._used


def until_damaged(found: Iterable[Optional[_T]]) -> Iterator[Optional[_T]]:
    """Yield the items up to the MAX_UNREAD-th unreadable one, which is None.

    Beyond it the tuple's length is taken to be damaged, and its items to be unrelated memory.
    """
    unread = 0
    for each in found:
        unread += each is None
        if unread > MAX_UNREAD:
            return
        yield each


def parse_exception_table(table: bytes, size: int = 0) -> Iterator[Handler]:
    """Yield the rows of an exception table.

    A row is four 6-bit varints: start, length, target (in code units), depth << 1 | lasti. At most one row per code
    unit of ``size`` bytes (0: unknown), since rows cover disjoint ranges.
    """
    at = rows = 0
    while at < len(table) and not 0 < size // 2 <= rows:
        start, at = _varint(table, at)
        length, at = _varint(table, at)
        target, at = _varint(table, at)
        depth, at = _varint(table, at)
        rows += 1
        yield Handler(start * 2, (start + length) * 2, target * 2, depth >> 1)


def _varint(table: bytes, at: int) -> Tuple[int, int]:
    """Decode big-endian groups of six bits; bit 6: more follow; bit 7: start of a row."""
    value = 0
    for byte in table[at : at + _MAX_GROUPS]:
        at += 1
        value = value << 6 | byte & 63
        if not byte & 64:
            break
    return value, at


class CodeCache:
    """Code objects by address: 2,000 threads share a few hundred."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._codes: Dict[int, Code] = {}

    def get(self, address: int) -> Code:
        """Return the code object at an address. Raises Fault or NotThat."""
        found = self._codes.get(address)
        if found is None:
            found = self._codes[address] = Code(self._objects, address)
        return found
