"""State that greenlet saves of a suspended greenlet, read out of synthesised memory of its releases."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest

from postmortem.cpython.frames.frame import Visit
from postmortem.cpython.objects.builtins import NotThat
from postmortem.frameworks.greenlet.saved import Greenlets, Spilled
from postmortem.memory import Fault, Memory

MAIN = (1 << 64) - 1
TYPE, OLD_TYPE = 0x100, 0x200
ONE, INNER, TOP = 0x10000, 0x20000, 0x30000
START, STOP, COPY = 0x7F0000001000, 0x7F0000002000, 0x50000
OWNER = 70


class Target(Memory):
    """Memory of words, with the types of objects and the frames of an interpreter in it."""

    def __init__(self, version: Tuple[int, int] = (3, 12)) -> None:
        self.bytes: Dict[int, int] = {}
        self.kinds: Dict[int, str] = {TOP: "frame"}
        self.visits: Dict[int, Visit] = {}
        self.memory, self.objects, self.frames = self, self, self
        self.layout = SimpleNamespace(
            version=version, heap_frames=False, ob_extra=0, fo_frame=24, fr_previous=8, fr_owner=OWNER
        )
        self.put(TOP + 24, 0xA000)

    def put(self, address: int, *words: int) -> None:
        for index, byte in enumerate(struct.pack(f"<{len(words)}Q", *words)):
            self.bytes[address + index] = byte

    def read(self, address: int, size: int) -> bytes:
        try:
            return bytes(self.bytes[address + index] for index in range(size))
        except KeyError:
            raise Fault(address, size) from None

    def greenlet(self, stack: Sequence[int], top: int, behind: Sequence[int] = (), at: int = 0) -> int:
        """A greenlet of 2.0 or later; ``at``: more words before the saved stack, as other releases have."""
        address, inner = ONE + 0x1000 * len(self.kinds), INNER + 0x1000 * len(self.kinds)
        self.kinds[address] = "greenlet.greenlet"
        self.put(address + 32, inner)
        self.put(inner, *[0] * (5 + at), *stack, 0, 0, top, *behind, *[0] * 40)
        return address

    def chain(self, *addresses: int) -> None:
        for address, previous in zip(addresses, (*addresses[1:], 0)):
            self.frame(address, previous)

    def frame(self, address: int, previous: int, shim: bool = False) -> None:
        frame: Any = None if shim else SimpleNamespace(address=address)
        self.visits[address] = Visit(frame, shim, previous)
        self.put(address + 8, previous)

    # ------------------------------------------------------------------ as Objects and Frames

    def field(self, address: int, offset: int) -> int:
        return self.u64(address + offset)

    def type_name(self, address: int) -> Optional[str]:
        return self.kinds.get(address)

    def type_of(self, address: int) -> Any:
        if address not in self.kinds:
            raise NotThat("no object")
        size = 136 if self.kinds[address] == "old" else 40
        return SimpleNamespace(address=TYPE, name="greenlet.greenlet", basicsize=size, base=0)

    def is_instance(self, address: int, name: str) -> bool:
        return self.kinds.get(address) in (name, "old")

    def visit(self, address: int) -> Visit:
        if address not in self.visits:
            raise NotThat("no frame")
        return self.visits[address]


def frames(target: Target, *addresses: int) -> List[Tuple[str, List[int]]]:
    states = Greenlets(target).read(addresses)  # type: ignore[arg-type]
    return [(state.phase, [frame.address for frame in state.frames]) for state in states]


SAVED = (START, STOP, COPY, 0x100)


@pytest.mark.parametrize("at", [0, 1, 3])
def test_the_layout_is_found_by_the_frame_of_a_suspended_greenlet(at: int) -> None:
    """Wherever it is in the C++ object; it then tells the state of those that show no frame."""
    target = Target()
    target.chain(0xA000, 0xB000)
    several = [
        target.greenlet((0, 0, 0, 0), 0, at=at),
        target.greenlet((0, STOP, 0, 0), 0, at=at),
        target.greenlet((1, STOP, 0, 0), 0, at=at),
        target.greenlet(SAVED, TOP, at=at),
    ]
    assert frames(target, *several) == [("new", []), ("ended", []), ("running", []), ("suspended", [0xA000, 0xB000])]


def test_without_a_suspended_greenlet_nothing_is_known() -> None:
    """The state of one that shows no frame cannot be told from its words alone."""
    target = Target()
    assert frames(target, target.greenlet((1, STOP, 0, 0), 0)) == [("unknown", [])]


def test_fields_that_contradict_each_other() -> None:
    """A frame behind a stack that ends before it starts is chance."""
    target = Target()
    assert frames(target, target.greenlet((STOP, START, COPY, 0x100), TOP)) == [("unknown", [])]


def test_greenlet_1() -> None:
    """It has its fields in the object."""
    target = Target()
    target.chain(0xA000)
    target.kinds[ONE] = "old"
    target.put(ONE + 16, *SAVED, 0, 0, 0, TOP)
    assert frames(target, ONE) == [("suspended", [0xA000])]


def test_frames_on_the_saved_stack() -> None:
    """An entry from C is read from the copy of the stack that holds it now, or where the stack was not needed yet."""
    target = Target()
    saved, live = START + 0x40, START + 0x200
    target.frame(0xA000, saved)
    target.put(COPY + 0x40 + 8, 0xB000)
    target.put(COPY + 0x40 + 64, 3 << 48)  # the owner: the C stack
    target.frame(0xB000, live)
    target.frame(live, 0xC000, shim=True)
    target.frame(0xC000, 0)
    assert frames(target, target.greenlet(SAVED, TOP)) == [("suspended", [0xA000, 0xB000, 0xC000])]


def test_greenlet_3_0_0() -> None:
    """It cuts the chain behind the first frame, and keeps the next one four words behind that."""
    target = Target()
    target.frame(0xA000, 0)
    target.chain(0xB000, 0xC000)
    one = target.greenlet(SAVED, TOP, (0, 0, 0xA000, 0, 0, 0, 0xB000))
    assert frames(target, one) == [("suspended", [0xA000, 0xB000, 0xC000])]


def test_a_later_release_has_a_greenlet_there() -> None:
    """A single frame is then the whole stack."""
    target = Target()
    target.frame(0xA000, 0)
    other = target.greenlet((1, MAIN, 0, 0), 0)
    one = target.greenlet(SAVED, TOP, (0, 0, 0xA000, 0, 0, 0, other))
    assert frames(target, one, other) == [("suspended", [0xA000]), ("running", [])]


def test_a_circular_chain() -> None:
    """It ends with a reason."""
    target = Target()
    target.frame(0xA000, 0xB000)
    target.frame(0xB000, 0xA000)
    (state,) = Greenlets(target).read([target.greenlet(SAVED, TOP)])  # type: ignore[arg-type]
    assert len(state.frames) == 2 and "circular" in (state.cut or "")


def test_the_saved_part_of_a_stack() -> None:
    """Only addresses in it have moved; a main greenlet's stack has no end."""
    stack = Spilled(*SAVED)
    assert [stack.translated(a) for a in (START, START + 0xFF, START + 0x100)] == [COPY, COPY + 0xFF, START + 0x100]
    assert stack.plausible and Spilled(START, MAIN, COPY, 0x100).plausible
    assert not Spilled(START, STOP, 0, 0x100).plausible and not Spilled(START, STOP, COPY, 0x2000).plausible
