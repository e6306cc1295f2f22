"""Processes short of memory."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.evidence import (
    ControlGroup,
    Evidence,
    Machine,
)
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counted, evidence, found, lines, process, stack, thread, verdict


def pressed(
    refaulted: Optional[int], used: int = 98, states: Optional[Dict[str, int]] = None, faults: int = 140
) -> Evidence:
    group = ControlGroup("/app", memory_limit=100 << 20, memory_used=used << 20, refaulted=refaulted)
    looks = counted(
        states or {"D": 9, "R": 7}, {"none": 9, "running": 7}, {"folio_wait_bit_common": 9}, 0.2, 0, 140, faults
    )
    return evidence(process([thread(1, stack("look", "main"), counters=looks)], cgroup=group))


def test_pages_are_read_again() -> None:
    """The group is full, and the thread stands still outside of any call: no disk is to blame."""
    known = pressed(500 << 20)
    assert (verdict(known), found(known), lines(known)) == ("memory-pressure", {"memory-pressure": "likely"}, [1])


@pytest.mark.parametrize(
    "known",
    [
        pressed(0),  # a file that is read for the first time
        pressed(500 << 20, used=40),  # there is room
        pressed(500 << 20, states={"R": 16}, faults=0),  # somebody else's pages
    ],
)
def test_what_is_no_pressure(known: Evidence) -> None:
    """Page faults alone, a full group alone, and refaults of others are healthy."""
    assert "memory-pressure" not in found(known)


def test_reading_files_again_is_only_possible() -> None:
    """With read(2): few faults of its own wait."""
    assert found(pressed(500 << 20, states={"R": 16}, faults=3))["memory-pressure"] == "possible"


def test_an_old_kernel_does_not_count() -> None:
    """Then it cannot be told from a first read."""
    assert "memory-pressure" in {a.pattern for a in classify(pressed(None)).abstained}


def test_the_whole_machine() -> None:
    """Without a limit: what comes back from swap, when next to nothing is available."""
    looks = counted({"D": 12, "R": 4}, {"none": 12, "running": 4}, {}, 0.2, 0, 140, 90)
    known = evidence(process([thread(1, stack("look"), counters=looks)]))
    full = Machine(memory=8 << 30, available=100 << 20, swapped_in=200 << 20, refaulted=0)
    assert found(changed(known, machine=full)) == {"memory-pressure": "likely"}
    assert "memory-pressure" not in found(changed(known, machine=changed(full, available=4 << 30)))
