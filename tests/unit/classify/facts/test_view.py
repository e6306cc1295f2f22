"""Questions that several patterns ask."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.classify.facts.view import View
from postmortem.evidence import Counters, replace

from ....support.make import counters, evidence, process, thread


@pytest.mark.parametrize(
    ("cpu", "delay", "states", "expected"),
    [
        (0.8, 0.0, {}, True),
        (0.79, 0.0, {}, False),
        (0.3, 0.5, {}, True),
        (0.3, 0.49, {}, False),
        (0.1, 0.0, {"R": 8, "S": 2}, True),
        (0.1, 0.0, {"R": 7, "S": 3}, False),
        (0.9, 0.0, {"S": 10}, True),
    ],
)
def test_who_computes(cpu: float, delay: float, states: Dict[str, int], expected: bool) -> None:
    """It uses four fifths of a core, or would if it got one; or nearly all looks find it running, where the counters of a
    crowded or virtual machine say little."""
    one = thread(1, counters=replace(counters(cpu, delay=delay), states=states))
    assert View.computes(one) is expected


@pytest.mark.parametrize("known", [None, Counters(1.0)])
def test_without_counters_nobody_knows(known: Optional[Counters]) -> None:
    """None, and not no."""
    assert View.computes(thread(1, counters=known)) is None


def test_looks_alone_tell() -> None:
    """A kernel without the times of threads."""
    assert View.computes(thread(1, counters=Counters(1.0, states={"R": 10}))) is True
    assert View.computes(thread(1, counters=Counters(1.0, states={"S": 10}))) is False


def test_what_is_remembered_is_of_one_view() -> None:
    """Each begins with nothing; what one pattern has put there the next one finds."""
    known = evidence(process([thread(1)]))
    first, second = View(known), View(known)
    first.remembered["waiters", 1] = (1, 2)
    assert first.remembered == {("waiters", 1): (1, 2)}
    assert second.remembered == {}
