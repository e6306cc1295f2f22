"""Frames of 3.8 to 3.10 on synthesised memory, sound and damaged."""

from __future__ import annotations

import struct
from typing import Iterator, List, Tuple

import pytest

from postmortem.cpython.frames.chains import read_chain
from postmortem.cpython.frames.heapframes import HeapFrames, frames_of, with_handlers
from postmortem.cpython.objects.builtins import NotThat, Objects
from postmortem.cpython.runtime.layouts import FLAG_BYTES, FLAG_TUPLE, FLAG_UNICODE, TP_NAME, Layout
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.memory import Segments

TYPES, CODE, FRAMES, HEAP = 0x10000, 0x20000, 0x30000, 0x40000
SETUP_WITH, SETUP_FINALLY, SETUP_ASYNC_WITH, EXTENDED_ARG, NOP, YIELD_FROM = 143, 122, 154, 144, 9, 72
OLD = [LAYOUTS[version] for version in ((3, 8), (3, 9), (3, 10))]
every_release = pytest.mark.parametrize("layout", OLD, ids=lambda row: "{}.{}".format(*row.version))


class Target:
    """A code object with two locals, and frames of it, in memory that a test may damage."""

    def __init__(self, layout: Layout, bytecode: bytes = bytes([NOP, 0] * 8)) -> None:
        self.layout = layout
        self.memory = Segments({TYPES: b"\0" * 8192, CODE: b"\0" * 512, FRAMES: b"\0" * 8192, HEAP: b"\0" * 8192})
        self._free = HEAP
        self._types: List[str] = []
        names = self.object("tuple", FLAG_TUPLE, 2, self.text("first"), self.text("second"))
        empty = self.object("tuple", FLAG_TUPLE, 0)
        self.memory.put_words(CODE + 8, self.type("code", 0))
        self.memory.put(CODE + layout.co_firstlineno, struct.pack("<i", 7))
        self.memory.put(CODE + layout.co_stacksize, struct.pack("<i", 4))
        for offset, value in zip(layout.co_local_names, (names, empty, empty)):
            self.memory.put_words(CODE + offset, value)
        self.memory.put_words(CODE + layout.co_name, self.text("work"))
        self.memory.put_words(CODE + layout.co_filename, self.text("/a.py"))
        self.memory.put_words(CODE + layout.co_code, self.bytes_(bytecode))
        self.memory.put_words(CODE + layout.co_linetable, self.bytes_(self._lines(len(bytecode))))
        self.frames = HeapFrames(Objects(self.memory, layout))

    def _lines(self, size: int) -> bytes:
        """One line an instruction, from 7 on."""
        return bytes(
            [2, 0] + [2, 1] * (size // 2 - 1) if self.layout.line_table == "ranges" else [2, 1] * (size // 2 - 1)
        )

    def type(self, name: str, flags: int) -> int:
        if name not in self._types:
            self._types.append(name)
            at = TYPES + 1024 * self._types.index(name)
            self.memory.put_words(at + TP_NAME, at + 512, 32)
            self.memory.put_words(at + 168, flags)
            self.memory.put(at + 512, name.encode() + b"\0" * 200)
        return TYPES + 1024 * self._types.index(name)

    def object(self, kind: str, flags: int, *words: int, tail: bytes = b"") -> int:
        at, self._free = self._free, self._free + 24 + 8 * len(words) + (len(tail) + 15 & ~7)
        self.memory.put_words(at, 1, self.type(kind, flags), *words)
        self.memory.put(at + 16 + 8 * len(words), tail)
        return at

    def text(self, text: str) -> int:
        return self.object("str", FLAG_UNICODE, len(text), 0, 1 << 2 | 1 << 5 | 1 << 6, 0, tail=text.encode())

    def bytes_(self, data: bytes) -> int:
        return self.object("bytes", FLAG_BYTES, len(data), 0, tail=data)

    def frame(self, number: int, *, unit: int, back: int = 0) -> int:
        """A frame whose current instruction is number ``unit`` of its code."""
        at, layout = FRAMES + 1024 * number, self.layout
        self.memory.put_words(at + layout.fr_code, CODE)
        self.memory.put_words(at + layout.fr_previous, back)
        self.memory.put_words(at + layout.fr_valuestack, at + layout.fr_localsplus + 16)
        counted = unit if layout.instr_unit == 2 else -1 if unit < 0 else unit * 2
        self.memory.put(at + layout.fr_instr, struct.pack("<i", counted))
        return at

    def block(self, frame: int, index: int, kind: int, handler: int, level: int) -> None:
        """``handler`` in instructions."""
        at, unit = frame + self.layout.fr_blockstack + 12 * index, 2 // self.layout.instr_unit
        self.memory.put(at, struct.pack("<3i", kind, handler * unit, level))
        self.memory.put(frame + self.layout.fr_iblock, struct.pack("<i", index + 1))


@every_release
def test_a_chain_with_lines_and_locals(layout: Layout) -> None:
    """Frames come most recent first, each entered from C, with the line of their instruction; an unbound local is
    nobody's."""
    target = Target(layout)
    older = target.frame(0, unit=2)
    newer = target.frame(1, unit=5, back=older)
    value = target.text("value")
    target.memory.put_words(newer + layout.fr_localsplus, 0, value)
    chain = read_chain(target.frames, newer)
    assert [(f.function, f.line, f.entry) for f in chain.frames] == [("work", 12, True), ("work", 9, True)]
    assert chain.cut is None
    assert list(target.frames.locals(chain.frames[0])) == [("second", value)]
    assert target.frames.local(chain.frames[0], "first") is None
    assert chain.frames[0].code.qualname is None


@every_release
def test_a_frame_that_has_not_begun_is_at_its_def(layout: Layout) -> None:
    """A thread can wait for the GIL before its first instruction: the frame is there, at the line of the def."""
    target = Target(layout)
    chain = read_chain(target.frames, target.frame(0, unit=-1))
    assert [f.line for f in chain.frames] == [7]


@every_release
def test_blocks_tell_what_is_kept_and_which_with_keeps_it(layout: Layout) -> None:
    """The highest block says how much of the stack is kept; a `try` that keeps as much as the `with` around it is not
    taken for one, nor is a handler at work (EXCEPT_HANDLER, 257) for a block."""
    jump = 8 // layout.instr_unit  # from the third instruction on, to the seventh
    target = Target(layout, bytes([NOP, 0, NOP, 0, SETUP_WITH, jump] + [NOP, 0] * 7))
    at = target.frame(0, unit=4)
    frame = target.frames.frame(at)
    assert frame is not None and target.frames.kept_depth(frame) == 0
    target.block(at, 0, SETUP_FINALLY, 7, 1)
    assert (target.frames.kept_depth(frame), target.frames.with_line(frame, 0)) == (1, 8)
    target.block(at, 1, SETUP_FINALLY, 6, 1)
    assert (target.frames.kept_depth(frame), target.frames.with_line(frame, 0)) == (1, 8)
    target.block(at, 2, 257, 0, 3)
    assert (target.frames.kept_depth(frame), target.frames.with_line(frame, 2)) == (1, None)


@every_release
def test_damaged_frames_are_cut_or_unknown(layout: Layout) -> None:
    """A garbage count of blocks, level, value stack, height or instruction is unknown, never an error; a chain that
    runs in circles ends."""
    target = Target(layout)
    at = target.frame(0, unit=3)
    frame = target.frames.frame(at)
    assert frame is not None
    target.block(at, 0, SETUP_FINALLY, 6, 1 << 20)
    assert target.frames.kept_depth(frame) == 0
    for count in (-1, 1000):
        target.memory.put(at + layout.fr_iblock, struct.pack("<i", count))
        assert target.frames.kept_depth(frame) == 0
    target.memory.put_words(at + layout.fr_valuestack, 1 << 40)
    assert target.frames.value_stack(frame) == ()
    assert target.frames.stack_top(frame) is None
    target.memory.put(at + layout.fr_instr, struct.pack("<i", -5))
    with pytest.raises(NotThat):
        target.frames.frame(at)
    assert "instruction" in str(read_chain(target.frames, at).cut)
    circle = target.frame(2, unit=1, back=target.frame(1, unit=1, back=FRAMES + 2048))
    assert "circular" in str(read_chain(target.frames, circle).cut)


@every_release
def test_what_a_suspended_frame_awaits(layout: Layout) -> None:
    """The topmost value, when the next instruction delegates to it; a plain `yield` awaits nothing."""
    target = Target(layout, bytes([NOP, 0, NOP, 0, YIELD_FROM, 0, NOP, 0]))
    at, awaited = target.frame(0, unit=1), target.text("awaited")
    start = at + layout.fr_localsplus + 16
    target.memory.put_words(start, 1, awaited, 3)
    if layout.fr_state >= 0:
        target.memory.put(at + layout.fr_stacktop, struct.pack("<i", 2))
    else:
        target.memory.put_words(at + layout.fr_stacktop, start + 16)
    frame = target.frames.frame(at)
    assert frame is not None and target.frames.stack_top(frame) == awaited
    elsewhere = target.frames.frame(target.frame(0, unit=2))
    assert elsewhere is not None and target.frames.stack_top(elsewhere) is None


def states() -> Iterator[Tuple[Layout, int, bytes, str]]:
    """(row, instruction, what marks the state, its name)"""
    for layout in OLD:
        flags = (b"\xfe", b"\xff", b"\0", b"\1") if layout.fr_state >= 0 else (b"\0", b"\0", b"\1", None)
        for unit, flag, name in zip((-1, 1, 1, 1), flags, ("created", "suspended", "running", "finished")):
            if flag is not None:
                yield layout, unit, flag, name


@pytest.mark.parametrize(("layout", "unit", "flag", "name"), list(states()))
def test_states_of_a_generator(layout: Layout, unit: int, flag: bytes, name: str) -> None:
    """3.8 and 3.9 flag a running frame, 3.10 has a state; a finished generator has no frame."""
    target = Target(layout)
    at = target.frame(0, unit=unit)
    target.memory.put(at + max(layout.fr_state, layout.fr_executing), flag)
    generator = target.object("generator", 0, at)
    found = target.frames.generator(generator)
    assert (found.state, found.frame is None) == (name, name == "finished")
    finished = target.frames.generator(target.object("generator", 0, 0))
    assert (finished.state, finished.frame) == ("finished", None)


def test_with_handlers_behind_long_jumps() -> None:
    """EXTENDED_ARG prefixes belong to the next instruction only; jumps count bytes up to 3.9, units in 3.10."""
    head = [NOP, 0, EXTENDED_ARG, 1, SETUP_WITH, 4, NOP, 0, SETUP_ASYNC_WITH, 6]
    code = bytes([*head, EXTENDED_ARG, 1, NOP, 0, SETUP_WITH, 2])
    assert list(with_handlers(code, 1)) == [(6 + 260, 0), (10 + 6, 6), (16 + 2, 12)]
    assert list(with_handlers(code, 2)) == [(6 + 520, 0), (10 + 12, 6), (16 + 4, 12)]
    assert list(with_handlers(code[:5], 1)) == []


def test_layouts_choose_their_frames() -> None:
    """Each release is read by the frames that it has."""
    for layout in LAYOUTS.values():
        frames = frames_of(Objects(Segments({}), layout))
        assert isinstance(frames, HeapFrames) is (layout.version < (3, 11))
