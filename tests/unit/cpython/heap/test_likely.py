"""Objects likely to lie on the way to awaited ones, in synthesised memory."""

from __future__ import annotations

from typing import Any, List

from postmortem.cpython.heap.likely import Likely
from postmortem.cpython.objects.builtins import NotThat

from ....support.trackedobjects import FIRST, SECOND, Target

ELSEWHERE = 0xAAA0


def above(target: Target, targets: List[int], roots: List[int], steps: int = 1000) -> List[int]:
    holders = target.holders()
    left = iter(range(steps))

    def check() -> None:
        if next(left, None) is None:
            raise NotThat("late")

    python: Any = holders._python
    return Likely(python, holders, check).above(targets, roots)


def chained() -> Target:
    """The first tuple has the second, which has what is elsewhere."""
    target = Target()
    target.memory.put_words(FIRST + 24, SECOND, 0x10)
    target.memory.put_words(SECOND + 24, ELSEWHERE, 0x10)
    return target


def test_the_way_from_a_root_is_found() -> None:
    """The nearest first; what does not lead there is not on it."""
    assert above(chained(), [ELSEWHERE], [FIRST]) == [SECOND, FIRST]
    assert above(chained(), [SECOND], [FIRST]) == [FIRST]
    assert above(chained(), [ELSEWHERE], [SECOND]) == [SECOND]
    assert above(chained(), [0x5550], [FIRST]) == []


def test_a_circle_ends() -> None:
    """Two that refer to each other are each on the way to the other."""
    target = chained()
    target.memory.put_words(SECOND + 24, ELSEWHERE, FIRST)
    assert above(target, [ELSEWHERE], [FIRST, SECOND]) == [SECOND, FIRST]


def test_damage_is_no_error() -> None:
    """Addresses without memory lead nowhere; of a length that cannot be, a bounded part is read."""
    target = chained()
    target.memory.put_words(FIRST + 16, 1 << 62)
    found = above(target, [ELSEWHERE], [FIRST, 0, 1, 1 << 63, (1 << 64) - 16, FIRST + 8])
    assert sorted(found) == [FIRST, SECOND]
    assert above(target, [ELSEWHERE], [0, 1, 1 << 63, (1 << 64) - 16, FIRST + 8]) == []


def test_what_was_found_in_time_is_kept() -> None:
    """The walk ends with its time, and raises nothing."""
    assert above(chained(), [SECOND, ELSEWHERE], [FIRST], steps=1) == [FIRST]
    assert above(chained(), [ELSEWHERE], [FIRST], steps=0) == []
