"""What stands in for py-spy writes what py-spy would, as the reader of samples understands it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postmortem.capture.observe.sampling import Trace
from tests.support.bundles import samples_of

OUTER, INNER, OTHER = ("/app/a.py", 3, "Job.outer"), ("/app/a.py", 7, "inner"), ("/app/b.py", None, "other")


def test_stacks_come_back_with_their_times(tmp_path: Path) -> None:
    """A thread that is in one place for 60 ms and in another for 40, one that comes and goes: counts at 50 a second,
    innermost frame first, the moments at which each was seen."""
    trace = Trace(100)
    trace.note(0, {7: [OUTER, INNER]}, {7: "Worker"})
    trace.note(20_000, {7: [OUTER, INNER]}, {7: "Worker"})
    trace.note(60_000, {7: [OUTER, OTHER], 8: [OTHER]}, {7: "Worker", 8: None})
    trace.note(80_000, {7: [OUTER, OTHER]}, {7: "Worker"})
    trace.end(100_000)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace.events))
    found = samples_of(path)
    assert set(found) == {7, 8}
    first, second = found[7]
    assert [(f.function, f.line) for f in first.frames] == [("inner", 7), ("outer", 3)]
    assert (first.count, first.first_s, first.last_s) == (3, 0.0, 0.06)
    assert [f.function for f in second.frames] == ["other", "outer"] and second.count == 2
    assert [(s.count, s.frames[0].file) for s in found[8]] == [(1, "/app/b.py")]


def test_every_frame_that_begins_ends() -> None:
    """Tools for such traces need their events balanced, in order of time."""
    trace = Trace(1)
    stacks: Any = ([OUTER], [OUTER, INNER], [], [OTHER, OTHER])
    for now, stack in enumerate(stacks):
        trace.note(now, {5: stack}, {5: None})
    trace.end(9)
    kinds = [event["ph"] for event in trace.events]
    assert kinds.count("B") == kinds.count("E") == 5
    assert [event["ts"] for event in trace.events] == sorted(event["ts"] for event in trace.events)
