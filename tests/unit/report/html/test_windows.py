"""Samples and timelines as a page carries them: short, in milliseconds, bounded."""

from __future__ import annotations

import re
from typing import Any, Sequence, Tuple

import pytest

from postmortem import evidence as ev
from postmortem.report.html import windows
from postmortem.report.html.tables import Tables
from postmortem.waitgraph import Agent

from ....support.samples import py


def lanes(*threads: Sequence[Tuple[float, float, Any]]) -> Sequence[str]:
    made = tuple(ev.Thread(n, timeline=tuple(ev.Stretch(*one) for one in lane)) for n, lane in enumerate(threads))
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1, threads=made),), window_s=1.0)
    tables = Tables(evidence)
    number = {Agent(1, n): n for n in range(len(made))}
    found = windows.timelines(evidence, number, tables)
    strings: Any = tables.strings
    whole = [strings[one[0]] + str(one[1]) if isinstance(one, list) else one for one in strings]
    return [str(whole[at]) for at in found.values()]


def test_a_lane_is_what_and_how_long() -> None:
    """In order; an unknown beginning is unknown; neighbours that are the same are one."""
    assert lanes([(0.1, 0.5, "blocked"), (0.5, 0.52, "waits"), (0.52, 0.6, "waits"), (0.6, 1.0, "holds")]) == [
        "u100b400w100h400"
    ]


def test_a_word_that_is_not_known_is_unknown() -> None:
    """Evidence of a later version."""
    assert lanes([(0.0, 1.0, "dances")]) == ["u1000"]


def test_too_fine_a_lane_is_drawn_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its length, and becomes as short as it must."""
    fine = [(n / 1000, (n + 1) / 1000, ("holds", "waits")[n % 2]) for n in range(1000)]
    monkeypatch.setattr(windows, "_ONE", 300)
    (lane,) = lanes(fine)
    assert len(lane) <= 300
    assert 1000 <= sum(map(int, re.findall(r"\d+", lane))) < 1100


def test_alike_lanes_are_written_once() -> None:
    """Two thousand threads that are blocked all the time are one string."""
    assert len(set(lanes(*[[(0.0, 1.0, "blocked")]] * 50))) == 1


def test_samples_name_their_stacks() -> None:
    """Stack, count, first, last; a deep one says what it lacks; without a window its length is that of the samples."""
    sample = ev.Sample(7, 0.25, 0.5, (py("f"), py("main")), ev.LeftOut(1, 30))
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1, threads=(ev.Thread(5, samples=(sample,)),)),))
    tables = Tables(evidence)
    assert windows.samples(evidence, {Agent(1, 5): 0}, tables) == {"0": [[0, 7, 250, 500]]}
    assert tables.stacks == [[[0, 1], 30, 1]]
    assert windows.length(evidence) == 500


def test_samples_that_go_on_make_no_window_longer() -> None:
    """py-spy is asked to end, and goes on for a moment: nobody knows what the threads were at by then."""
    sampled = (ev.Sample(3, 0.0, 1.4, (py("run"),)),)
    thread = ev.Thread(7, samples=sampled, timeline=(ev.Stretch(0.0, 1.0, "runs"),))
    assert windows.length(ev.Evidence(ev.Trigger("pid"), (ev.Process(1, threads=(thread,)),), window_s=1.0)) == 1000
