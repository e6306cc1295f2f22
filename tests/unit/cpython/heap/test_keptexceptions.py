"""Exceptions that are kept with their tracebacks: found by their type's address, alive ones alone, and what they keep."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import pytest

from postmortem.cpython.heap import keptexceptions
from postmortem.cpython.heap.keptexceptions import MOST_EXCEPTIONS, Found, Reader, find
from postmortem.cpython.runtime import layouts as L
from postmortem.memory import Segments
from postmortem.timelimits import TimeLimit

from ....support.pythonheap import Frame, Heap

BASE, TYPE = 0x7F0000000000, 0x550000000100
#: Of this test's objects: ob_refcnt, ob_type, then these.
NEXT, FRAME, LASTI, LINE, SIZE = 16, 24, 32, 36, 48
TRACEBACK = 16  # BaseException's
EXCEPTION_TYPE = 0x550000000200
LAYOUT = SimpleNamespace(
    tb_next=NEXT, tb_frame=FRAME, tb_lasti=LASTI, tb_lineno=LINE, be_traceback=TRACEBACK, fo_frame=-1, ob_size=16
)


class Target(Heap):
    """An interpreter of this layout, whose memory has tracebacks and exceptions."""

    def __init__(self, size: int = 1 << 16) -> None:
        super().__init__()
        self.memory = Segments({BASE: b"\0" * size})
        self.layout = LAYOUT
        self.runtime = SimpleNamespace(free_threaded=False)
        self.interpreters: List[int] = [0]
        self.flags["ValueError"] = L.FLAG_EXCEPTION
        self.made: Dict[int, Frame] = {}
        self._free = BASE + 64

    def module_value(self, _interpreter: int, _module: str, _name: str) -> Optional[int]:
        return TYPE

    def put(self, kind: str, type_: int, count: int, *words: int) -> int:
        address, self._free = self._free, self._free + SIZE
        self.memory.put_words(address, count, type_, *words)
        self.kinds[address], self.inside[address], self.parts[address] = kind, (), {}
        return address

    def traceback(self, following: int = 0, frame: int = 0, line: int = 7, count: int = 1) -> int:
        return self.put("traceback", TYPE, count, following, frame, line << 32)

    def exception(self, traceback: int, count: int = 1) -> int:
        return self.put("ValueError", EXCEPTION_TYPE, count, traceback)

    def frame(self, address: int) -> Optional[Frame]:
        return self.made.get(address)

    def frame_of(self, function: str, **variables: int) -> int:
        address = 0x600000000000 + 0x100 * len(self.made)
        self.made[address] = Frame(function, variables)
        return address


@pytest.fixture(autouse=True)
def instances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keptexceptions, "attributes", Heap.attributes)
    monkeypatch.setattr(keptexceptions, "qualified", lambda heap, address: heap.kinds[address])


def found(target: Target, size: int = 1 << 16, seconds: float = 60.0) -> Found:
    python: Any = target
    return find(python, target.memory, [(BASE, BASE + size)], TimeLimit(seconds))


def test_an_exception_is_found_by_its_traceback() -> None:
    """The one that refers to the first link of the chain; the other links belong to it."""
    target = Target()
    last = target.traceback()
    first = target.traceback(last)
    kept = target.exception(first)
    assert found(target) == Found([kept], 1)


def test_what_was_freed_is_not_alive() -> None:
    """A free block keeps its type and not its count: zero, or a pointer."""
    target = Target()
    target.exception(target.traceback(count=0))
    target.exception(target.traceback(count=BASE + 4096))
    target.exception(target.traceback(), count=0)
    alive = target.exception(target.traceback())
    assert found(target).exceptions == [alive]


def test_a_traceback_of_nobody_counts_and_has_no_exception() -> None:
    """What refers to it is no exception, or nothing does."""
    target = Target()
    target.traceback()
    target.put("tuple", 0x1000, 1, target.traceback())
    assert found(target) == Found([], 2)


def test_of_very_many_some_are_read() -> None:
    """And how many there are is known all the same."""
    many = 3 * MOST_EXCEPTIONS
    size = many * 2 * SIZE + 4096
    target = Target(size)
    for _ in range(many):
        target.exception(target.traceback())
    answer = found(target, size)
    assert answer.tracebacks == many
    assert 0 < len(answer.exceptions) <= MOST_EXCEPTIONS


def test_where_nothing_can_be_found() -> None:
    """Free-threaded, without an interpreter, without time: nothing, and no error."""
    target = Target()
    target.exception(target.traceback())
    assert found(target, seconds=-1) == Found([], 0)
    target.runtime.free_threaded = True
    assert found(target) == Found([], 0)
    target.runtime.free_threaded = False
    target.interpreters = []
    assert found(target) == Found([], 0)


def read(target: Target, address: int) -> Any:
    python: Any = target
    return Reader(python).kept(address)


def test_what_an_exception_keeps() -> None:
    """Its frames, outermost first, each at the line that it passed; the bytes of their variables, and the largest."""
    target = Target()
    small, large = target.make("list", [0] * 3), target.make("list", [0] * 1000)
    inner = target.traceback(frame=target.frame_of("parse", rows=large), line=9)
    outer = target.traceback(inner, target.frame_of("main", few=small), line=5)
    kept = read(target, target.exception(outer))
    assert [(frame.function, line) for frame, line in kept.frames] == [("main", 5), ("parse", 9)]
    assert kept.type == "ValueError"
    assert kept.variable == "rows in parse"
    assert 8000 <= kept.bytes <= 8200
    assert not kept.cyclic


@pytest.mark.parametrize("through", [(), ("list",), ("Record",)])
def test_a_circle_through_a_frame_is_told(through: Tuple[str, ...]) -> None:
    """A variable of its own frame refers to the exception, or has it inside."""
    target = Target()
    frame = target.frame_of("main")
    address = target.exception(target.traceback(frame=frame))
    value = address
    for kind in through:
        value = target.make(kind, [value], it=value)
    target.made[frame].variables["error"] = value
    assert read(target, address).cyclic


def test_what_others_keep_anyway_is_not_measured() -> None:
    """An object is counted once for all exceptions, and not at all when it is left out."""
    target = Target()
    large = target.make("list", [0] * 1000)
    one, two = (target.exception(target.traceback(frame=target.frame_of("f", rows=large))) for _ in range(2))
    python: Any = target
    reader = Reader(python)
    sizes = [reader.kept(one), reader.kept(two)]
    assert [kept is not None and kept.bytes > 8000 for kept in sizes] == [True, False]
    reader = Reader(python)
    reader.leave_out([large])
    kept = reader.kept(one)
    assert kept is not None
    assert kept.bytes == 0


def test_what_is_no_exception_any_more() -> None:
    """Freed meanwhile, or without a traceback."""
    target = Target()
    assert read(target, target.traceback()) is None
    assert read(target, target.exception(0)) is None
    assert read(target, 0x99999) is None


def test_a_chain_of_tracebacks_ends() -> None:
    """One that leads back to itself is read once around."""
    target = Target()
    frame = target.frame_of("main")
    first = target.traceback(frame=frame)
    target.memory.put_words(first + NEXT, first)
    kept = read(target, target.exception(first))
    assert kept is None or len(kept.frames) <= 100
