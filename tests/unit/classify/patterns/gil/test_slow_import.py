"""Start-up that moves from module to module, told from a module that does not come to its end."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.evidence import Evidence, PythonFrame, Wait

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, samples, stack, thread

MACHINERY = PythonFrame("<frozen importlib._bootstrap>", 1007, "_find_and_load")
MAIN = frame("<module>", 4)
Stack = Tuple[PythonFrame, ...]


def importing(module: str, *between: PythonFrame) -> Stack:
    """The code of a module, which a line of the program imports; ``between``: further lines that import, inwards."""
    outward = [MAIN, MACHINERY]
    for line in between:
        outward += [line, MACHINERY]
    return tuple([*outward, frame("<module>", 1, f"/venv/lib/python3.12/site-packages/{module}.py")][::-1])


NOW = importing("now")


def started(*looks: Tuple[int, Stack], now: Stack = NOW, wait: Optional[Wait] = None) -> Evidence:
    measured = {"samples": samples(*looks), "counters": counters(0.9)} if looks else {}
    return evidence(process([thread(1, now, wait=wait, **measured)]), window=1.0 if looks else None)


def modules(count: int, each: int = 10) -> Tuple[Tuple[int, Stack], ...]:
    return tuple((each, importing(f"m{n}")) for n in range(count))


def test_an_import_that_moves_is_no_hang() -> None:
    """Module after module: the line that began it is to blame."""
    known = started(*modules(6))
    report = classify(known).findings[0]
    assert (report.pattern, report.confidence, lines(known)) == ("slow-import", "likely", [4])
    assert "6 modules" in report.summary and "90% of a core" in " ".join(report.evidence)


@pytest.mark.parametrize(("count", "expected"), [(4, "likely"), (3, "possible"), (2, "possible"), (1, None)])
def test_how_many_modules(count: int, expected: Optional[str]) -> None:
    """One that does not come to its end has something else."""
    known = started(*modules(count))
    assert found(known).get("slow-import") == expected
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert ("stays in one module" in ruled.get("slow-import", "")) == (expected is None)


@pytest.mark.parametrize(("work", "expected"), [(40, "likely"), (41, None)])
def test_how_much_of_the_time(work: int, expected: Optional[str]) -> None:
    """Six samples of ten: a program that works imports something now and then."""
    known = started(*modules(6), (work, (frame("serve", 30), MAIN)))
    assert found(known).get("slow-import") == expected


def test_the_line_that_brings_the_most_is_named_too() -> None:
    """A line of the program further inwards is named when at least three samples of ten went through it."""
    plugins = frame("<module>", 7, "/app/plugins.py")
    known = started(*((10, importing(f"m{n}", plugins)) for n in range(4)), *modules(5, 1))
    assert lines(known) == [4, 7]


def test_without_a_window_it_abstains() -> None:
    """One moment inside an import may be a slow one, or one that does not move; one that waits is another matter."""
    report = classify(started())
    assert "slow-import" in {a.pattern for a in report.abstained}
    assert "slow-import" not in {f.pattern for f in report.findings}
    waiting = classify(started(wait=Wait("socket", "recvfrom")))
    assert "slow-import" not in {a.pattern for a in waiting.abstained}
    assert "slow-import" not in {a.pattern for a in classify(started(now=(MAIN,))).abstained}


def test_a_program_below_an_import_is_no_import() -> None:
    """The whole of it may run at a module's level, and call modules that were imported long ago: it stays in one."""
    work = tuple((10, (frame(f"job{n}", n, f"/app/job{n}.py"), *importing("service"))) for n in range(5))
    assert "slow-import" not in found(started(*work))


@pytest.mark.parametrize(
    ("joins", "count", "expected"), [(2, 16, "likely"), (2, 15, "possible"), (None, 16, "possible")]
)
def test_a_thread_that_the_main_thread_waits_for(joins: Optional[int], count: int, expected: Optional[str]) -> None:
    """It imports a client when it begins; few modules may belong to its work, and what nobody waits for is possible."""
    wait = Wait("lock", "futex", endless=True) if joins else Wait("sleep", "clock_nanosleep", timeout_s=1.0)
    main = thread(1, stack("threading.join", "main"), joins=joins, wait=wait, counters=counters())
    loads = thread(2, NOW, samples=samples(*modules(count)), counters=counters(0.9))
    assert found(evidence(process([main, loads]), window=1.0)).get("slow-import") == expected
