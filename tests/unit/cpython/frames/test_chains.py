"""Walking chains of frames that are deep, circular or cut."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.cpython.frames import chains
from postmortem.cpython.frames.chains import KEEP_INNER, KEEP_OUTER, read_chain
from postmortem.cpython.frames.frame import Frame, Visit
from postmortem.memory import Fault


class FakeCode:
    """A function whose instructions each have a line of their own."""

    def __init__(self, address: int) -> None:
        self.address = address

    def line(self, offset: int) -> int:
        return offset // 2

    def get(self, address: int) -> FakeCode:
        return FakeCode(address)


class FakeFrames:
    """Frames at addresses 1, 2, 3 …, each called by the next; ``functions`` and ``entries`` say which they are."""

    def __init__(self, depth: int, period: int = 1, entry_every: int = 0, last: int = 0) -> None:
        self.depth, self.period, self.entry_every, self.last = depth, period, entry_every, last
        self.codes = FakeCode(0)
        self.holes: Dict[int, Exception] = {}

    def frame(self, address: int) -> Optional[Frame]:
        function = address % self.period
        entry = bool(self.entry_every) and address % self.entry_every == 0
        return Frame(address, FakeCode(0x1000 + function), 2 * function, 0, entry)  # type: ignore[arg-type]

    def visit(self, address: int) -> Visit:
        if address in self.holes:
            raise self.holes[address]
        return Visit(self.frame(address), False, address + 1 if address < self.depth else self.last)


def test_a_deep_chain_keeps_both_ends() -> None:
    """What lies between is counted, with the native loops that it takes."""
    found = read_chain(FakeFrames(100_000, period=3, entry_every=10), 1)  # type: ignore[arg-type]
    assert (found.depth, found.cut) == (100_000, None)
    kept = [*range(1, KEEP_INNER + 1), *range(100_000 - KEEP_OUTER + 1, 100_001)]
    assert [frame.address for frame in found.frames] == kept
    assert found.left_out is not None
    assert (found.left_out.behind, found.left_out.frames) == (KEEP_INNER, 100_000 - len(kept))
    assert found.left_out.entries == 10_000 - sum(frame.entry for frame in found.frames)
    assert found.recursion is not None and found.recursion.times == 33_333
    assert [frame.code.address - 0x1000 for frame in found.recursion.frames] == [1, 2, 0]


@pytest.mark.parametrize("depth", [0, 1, 50, KEEP_INNER, KEEP_INNER + KEEP_OUTER])
def test_a_chain_that_fits_is_whole(depth: int) -> None:
    """Each frame once, in order, and the oldest is where C code entered."""
    found = read_chain(FakeFrames(depth), 1 if depth else 0)  # type: ignore[arg-type]
    assert [frame.address for frame in found.frames] == list(range(1, depth + 1))
    assert found.left_out is None and found.cut is None
    assert [frame.entry for frame in found.frames[-1:]] == [True] * bool(depth)


@pytest.mark.parametrize(("depth", "back"), [(1, 1), (5, 1), (5, 3), (7, 7), (1000, 400), (6000, 5990)])
def test_a_circular_chain_shows_each_frame_once(depth: int, back: int) -> None:
    """Wherever it leads back to; it says that it is circular."""
    found = read_chain(FakeFrames(depth, last=back), 1)  # type: ignore[arg-type]
    assert found.cut is not None and "circular" in found.cut
    assert found.depth == depth
    addresses = [frame.address for frame in found.frames]
    assert len(set(addresses)) == len(addresses) == min(depth, KEEP_INNER) + len(addresses[KEEP_INNER:])
    assert addresses[: min(depth, KEEP_INNER)] == list(range(1, min(depth, KEEP_INNER) + 1))


def test_a_page_that_is_missing_ends_it() -> None:
    """The frames before it stay, and the reason names the address."""
    frames = FakeFrames(5_000)
    frames.holes[4_500] = Fault(4_500, 8)
    found = read_chain(frames, 1)  # type: ignore[arg-type]
    assert found.depth == 4_499 and found.cut is not None and hex(4_500) in found.cut
    assert found.frames[-1].entry is False


def test_a_chain_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a bound, and it says so."""
    monkeypatch.setattr(chains, "MAX_FRAMES", 20_000)
    found = read_chain(FakeFrames(10**12), 1)  # type: ignore[arg-type]
    assert found.depth == 20_000 and found.cut is not None and "20,000" in found.cut


def test_recursion_whose_lines_differ() -> None:
    """The functions repeat although no line does."""

    class Wandering(FakeFrames):
        def frame(self, address: int) -> Optional[Frame]:
            return Frame(address, FakeCode(0x1000 + address % 2), 2 * address, 0, False)  # type: ignore[arg-type]

    found = read_chain(Wandering(1_000), 1)  # type: ignore[arg-type]
    assert found.recursion is not None
    assert (len(found.recursion.frames), found.recursion.times, found.recursion.same_lines) == (2, 500, False)


def test_stacks_of_two_interpreters_are_one() -> None:
    """The caller's frames follow, and a caller's stack that ends early ends the whole; where the inner one ends early
    they are left out, for their places are not known."""
    inner, outer = read_chain(FakeFrames(3), 1), read_chain(FakeFrames(2), 1)  # type: ignore[arg-type]
    whole = chains.joined(inner, outer)
    assert (len(whole.frames), whole.depth, whole.cut) == (5, 5, None)
    damaged = outer._replace(frames=[], depth=0, cut="not in the core")
    assert chains.joined(inner, damaged).cut == "not in the core"
    assert chains.joined(damaged, outer) == damaged
