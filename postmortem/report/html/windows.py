"""The observation window of each thread: sampled stacks, and a timeline of its activity."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ...evidence import Evidence, Process, Stretch, Thread
from ...waitgraph import Agent
from .tables import Tables

_LETTERS = {"holds": "h", "waits": "w", "runs": "r", "blocked": "b"}
#: Most characters of all timelines together, and of one; longer ones are drawn at a coarser resolution.
_ALL, _ONE = 400_000, 4000
_SAMPLED = 60_000  # most sampled stacks of all threads


def samples(evidence: Evidence, number: Dict[Agent, int], tables: Tables) -> Dict[str, List[List[int]]]:
    """Return agent → [stack, count, first, last] of each of its sampled stacks; times in milliseconds."""
    found: Dict[str, List[List[int]]] = {}
    left = _SAMPLED
    for process, thread in _threads(evidence):
        at = number.get(Agent(process.pid, thread.tid))
        if at is None or not thread.samples or left <= 0:
            continue
        left -= len(thread.samples)
        found[str(at)] = [
            [tables.stack(one.frames, one.left_out), one.count, _ms(one.first_s), _ms(one.last_s)]
            for one in thread.samples
        ]
    return found


def timelines(evidence: Evidence, number: Dict[Agent, int], tables: Tables) -> Dict[str, int]:
    """Return agent → index in ``tables.strings`` of its activities in order, with milliseconds each: ``b500w20h3``."""
    lanes = {}
    for process, thread in _threads(evidence):
        at = number.get(Agent(process.pid, thread.tid))
        if at is not None and thread.timeline:
            lanes[str(at)] = thread.timeline
    most = min(_ONE, _ALL // max(1, len(lanes)))
    return {at: tables.string(_lane(stretches, most)) for at, stretches in lanes.items()}


def length(evidence: Evidence) -> int:
    """Return the length of the window in milliseconds; 0 without a window.

    py-spy's samples may end later; they count only if there is no timeline to draw.
    """
    ends = [s.last_s for _p, t in _threads(evidence) for s in t.timeline[-1:]]
    ends = ends or [one.last_s for _p, t in _threads(evidence) for one in t.samples]
    return _ms(max([evidence.window_s or 0.0, *ends]))


def _lane(stretches: Sequence[Stretch], most: int) -> str:
    """Return one timeline as a string of bounded length.

    Ends are rounded up to multiples of a step, which is doubled until the string is short enough; spans shorter than a
    step may vanish.
    """
    ends = [(_LETTERS.get(stretch.doing, "u"), _ms(stretch.last_s)) for stretch in stretches]
    begin, step = _ms(stretches[0].first_s), 1
    text = _runs(ends, begin, step)
    while len(text) > most and step < 1000:
        step *= 2
        text = _runs(ends, begin, step)
    return text


def _runs(ends: Sequence[Tuple[str, int]], begin: int, step: int) -> str:
    """Return the string of spans with their ends rounded up to multiples of ``step``."""
    runs: List[Tuple[str, int]] = [("u", begin)] if begin > 0 else []
    for letter, end in ends:
        later = -(-end // step) * step - begin
        if later <= 0:
            continue
        before = runs.pop()[1] if runs and runs[-1][0] == letter else 0
        runs.append((letter, before + later))
        begin += later
    return "".join(f"{letter}{lasts}" for letter, lasts in runs)


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _threads(evidence: Evidence) -> List[Tuple[Process, Thread]]:
    return [(process, thread) for process in evidence.processes for thread in process.threads]
