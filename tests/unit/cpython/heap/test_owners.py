"""Live objects and their counted words in synthesised memory."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, Optional

import pytest

from postmortem.cpython.frames.callheights import least_height
from postmortem.cpython.heap import owners
from postmortem.cpython.runtime.releases import LAYOUTS

from ....support.trackedobjects import FIRST, HEAD, HEAP, OPAQUE, SECOND, TUPLE, Target


def test_items_of_a_tuple_are_counted_and_nothing_behind_them() -> None:
    """Both items; the word behind belongs to no object."""
    target = Target()
    assert [target.counted(SECOND + 24 + 8 * n) for n in range(3)] == [True, True, None]


def test_what_was_freed_holds_nothing() -> None:
    """The ring goes past it: it is no object any more, though it looks like one."""
    target = Target()
    target.memory.put_words(HEAD, FIRST - 16, FIRST - 16)
    target.memory.put_words(FIRST - 16, HEAD, HEAD)
    assert target.counted(SECOND + 24) is None
    assert target.counted(FIRST + 24) is True


def test_other_lists_are_no_rings_of_objects() -> None:
    """Entries of a parking lot are linked like heads of objects; their neighbours are none."""
    target = Target()
    lot = HEAP + 0x800
    target.memory.put_words(lot, lot + 0x100, lot + 0x100)
    target.memory.put_words(lot + 0x100, lot, lot)
    target.memory.put_words(lot + 16, 1, TUPLE, 2, 0xAAA0)
    assert target.counted(lot + 16 + 24) is None


def test_what_an_extension_keeps_in_an_object_is_counted() -> None:
    """A type that the collector tracks owns what it refers to; that is presumed, and the count has to agree."""
    target = Target(OPAQUE)
    holders = target.holders()
    holder = holders.around(SECOND + 24)
    assert holder is not None and holder.kind == "presumed"
    assert holders.counts(holder, SECOND + 24)[0] is True


def test_what_a_variable_caches_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ContextVar keeps its last value without counting it: nothing is known of its words."""
    monkeypatch.setattr(owners, "_UNKNOWN", ("lib.Opaque",))
    holders = Target(OPAQUE).holders()
    holder = holders.around(SECOND + 24)
    assert holder is not None and holders.counts(holder, SECOND + 24)[0] is None


class Calling:
    """A frame of 3.10 that is in ``it.get()``, called as a method with what stands on its value stack."""

    def __init__(self, *stack: str, instruction: int = 161, operand: int = 0) -> None:
        self._names = dict(enumerate(stack, 1))
        names, kinds = (
            self._names,
            {"get": "method_descriptor", "it": "Queue", "": None, "cy": "_cython_3_1_3.cython_function_or_method"},
        )
        self.objects: Any = SimpleNamespace(
            layout=LAYOUTS[3, 10], type_name=lambda value: kinds.get(names[value], "str"), memory=None
        )
        self.frame: Any = SimpleNamespace(
            lasti=0, code=SimpleNamespace(bytecode=lambda: struct.pack("BB", instruction, operand), nlocalsplus=2)
        )

    def value_stack(self, _frame: object) -> tuple[int, ...]:
        return tuple(self._names)

    def kept_depth(self, _frame: object) -> int:
        return 0


@pytest.mark.parametrize(
    ("stack", "least"),
    [
        (("get", "it"), 4),
        (("x", "get", "it"), 5),
        (("get", "it", "get", "it"), 4),
        (("x", "y"), None),
        (("cy", "it"), 4),
    ],
    ids=["alone", "above something", "with leftovers above", "not to be seen", "Cython's"],
)
def test_a_call_in_progress_tells_the_least_height(stack: tuple[str, ...], least: Optional[int]) -> None:
    """Two locals and what the call has on the stack; the lowest place that fits counts, for the ones above may be stale."""
    calling: Any = Calling(*stack)
    assert least_height(calling, calling.frame, None) == least


def test_other_instructions_tell_nothing() -> None:
    """A `with` statement calls too, but not with what lies on the stack."""
    calling: Any = Calling("get", "it", instruction=143)
    assert least_height(calling, calling.frame, None) is None


@pytest.mark.parametrize("version", [(3, 8), (3, 10)])
def test_the_stack_of_blocks_in_a_frame_refers_to_nothing(version: Any) -> None:
    """What the allocator left there is stale: before it are what the frame owns, its code among that."""
    layout = LAYOUTS[version]
    python: Any = SimpleNamespace(layout=layout)
    frame: Any = SimpleNamespace(address=0x1000)
    counted = [owners.slot_of(python, frame, 0x1000 + at)[0] for at in range(layout.fr_code, layout.fr_localsplus, 8)]
    first = counted.index(False)
    assert first >= 4 and not any(counted[first:]) and layout.fr_code + 8 * first == layout.fr_instr - 8
