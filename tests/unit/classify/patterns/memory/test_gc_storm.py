"""The garbage collector at work most of the time: by looks at the interpreter, and by its own counters."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.evidence import Calling, Collections, Evidence, Interpreter
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, samples, thread

WORK = [frame("drop", 14), frame("main", 30)]


def collecting(
    busy: int, looks: int = 100, counts: Optional[Tuple[int, ...]] = (0, 0, 40), now: bool = True, seen: bool = True
) -> Evidence:
    call = Calling("gc.collect") if now else None
    worker = thread(1, WORK, gc=now, calling=call, counters=counters(1.0), samples=samples((90, WORK)))
    known = process([worker, thread(2, [frame("serve", 40)], gil="waits")])
    measured = Collections(2.0, looks, busy, counts) if seen else None
    main = changed(known.interpreters[0], collecting=now, collections=measured)
    return evidence(changed(known, interpreters=(main,)), window=2.0 if seen else None)


def test_a_storm_is_set_off_at_a_line() -> None:
    """Nearly every look finds it, and the counters rise by full collections: the line that asks for them is to blame."""
    report = classify(collecting(95)).findings[0]
    assert (report.pattern, report.confidence, lines(collecting(95))) == ("gc-storm", "likely", [14])
    said = " ".join(report.evidence)
    assert "95% of 100 observations" in said and "40 of generation 2" in said and "gc.collect()" in said
    assert [v.tid for v in report.victims] == [2]


@pytest.mark.parametrize(
    ("busy", "counts", "expected"),
    [
        (75, (9000, 900, 9), "likely"),
        (74, (9000, 900, 9), "possible"),
        (50, (90, 0, 10), "likely"),
        (50, (91, 0, 9), "possible"),
        (49, (0, 0, 40), "possible"),
        (30, (0, 0, 40), "possible"),
        (29, (0, 0, 40), None),
        (60, None, "possible"),
    ],
)
def test_shares_and_full_collections(busy: int, counts: Optional[Tuple[int, ...]], expected: Optional[str]) -> None:
    """Half the time counts when somebody asks for full collections, three quarters always, less than a third never."""
    known = collecting(busy, counts=counts)
    assert found(known).get("gc-storm") == expected
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert ("29% of the observations" in ruled.get("gc-storm", "")) == (expected is None)


def test_few_looks_and_one_moment_tell_nothing() -> None:
    """A collection in a core is one of the hundreds that there are: it abstains, and says what would decide it."""
    for known in (collecting(9, looks=9), collecting(0, seen=False)):
        report = classify(known)
        assert "gc-storm" not in found(known)
        assert "gc-storm" in {a.pattern for a in report.abstained}
    assert "gc-storm" in found(collecting(10, looks=10))


def test_nobody_collects_and_nothing_is_known() -> None:
    """No collection now and no looks, or no interpreter at all: nothing to say."""
    known = collecting(0, now=False, seen=False)
    assert "gc-storm" not in found(known)
    bare = changed(known.processes[0], interpreters=())
    assert "gc-storm" not in found(changed(known, processes=(bare,)))
    calm = changed(known.processes[0], interpreters=(Interpreter(0),))
    assert "gc-storm" not in found(changed(known, processes=(calm,)))


def test_the_busiest_thread_stands_in_for_an_unknown_one() -> None:
    """At the moment of capture nobody collects: the lines of the thread that used the CPU are named."""
    assert lines(collecting(95, now=False)) == [14]
