"""Regular expressions that try too many ways: one call that does not end, rather than many that do."""

from __future__ import annotations

from typing import Any, List, Optional

import pytest

from postmortem.evidence import Calling, Evidence, NativeFrame, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import LIB, counters, evidence, found, frame, lines, process, samples, thread

CALLER = [frame("clean", 22), frame("main", 30)]
CALL = Calling("re.Pattern.match", "pattern '(a+)+$'", 31, lasts_s=2.0)


def matching(call: Optional[Calling] = CALL, window: Optional[float] = 2.0, cpu: float = 2.0, **known: Any) -> Evidence:
    measured = {} if window is None else {"counters": counters(cpu, seconds=window), "samples": samples((90, CALLER))}
    known.setdefault("frames", CALLER)
    frames = known.pop("frames")
    stuck = thread(1, frames, calling=call, **{"gil": "holds", **measured, **known})
    return evidence(process([stuck, thread(2, [frame("serve", 40)], gil="waits")]), window=window)


def test_one_call_that_lasts_is_named_with_its_pattern() -> None:
    """The call is the same all the time and its text is short: its line is to blame, with the expression in the summary, and
    whoever wants the GIL waits for it."""
    report = classify(matching()).findings[0]
    assert (report.pattern, report.confidence, lines(matching())) == ("regex-backtracking", "likely", [22])
    assert "(a+)+$" in report.summary and [v.tid for v in report.victims] == [2]


@pytest.mark.parametrize(("characters", "expected"), [(1_999_999, "likely"), (2_000_000, "possible"), (None, "likely")])
def test_a_long_text_takes_its_time(characters: Optional[int], expected: str) -> None:
    """Megabytes that are gone through once are as likely; of a text whose length is unknown nothing speaks for that."""
    assert found(matching(changed(CALL, text=characters)))["regex-backtracking"] == expected


def test_calls_that_come_back_are_none() -> None:
    """An expression that is asked for every line is found in a call at every look, but at several lines."""
    moving = samples((40, CALLER), (40, [frame("clean", 23), frame("main", 30)]))
    known = matching(changed(CALL, lasts_s=None), samples=moving)
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert "again and again" in ruled["regex-backtracking"] and "regex-backtracking" not in found(known)


def test_without_a_probe_one_line_is_possible() -> None:
    """All looks found one line, which two calls have as well."""
    assert found(matching(changed(CALL, lasts_s=None)))["regex-backtracking"] == "possible"


def test_one_moment_is_possible() -> None:
    """A core of a thread that holds the GIL there; of one that does not, nothing is said."""
    assert found(matching(changed(CALL, lasts_s=None), window=None))["regex-backtracking"] == "possible"
    other = matching(changed(CALL, lasts_s=None), window=None, gil="unknown")
    assert "regex-backtracking" in {a.pattern for a in classify(other).abstained}


@pytest.mark.parametrize(
    "known",
    [
        {"call": Calling("json.loads", None, 20, 2.0)},
        {"wait": Wait("lock", "futex")},
        {"cpu": 0.2},
        {"frames": [*CALLER, NativeFrame("list_sort", "libpython3.12.so", 1)][::-1]},
    ],
    ids=["another call", "it waits", "it rests", "native frames are not the engine's"],
)
def test_who_does_not_match_is_not_meant(known: Any) -> None:
    """Only a computing thread whose innermost call is the engine's."""
    assert "regex-backtracking" not in found(matching(**known))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["sre_ucs1_match", "pattern_match", "_PyEval_EvalFrameDefault"], "likely"),
        ([None, None, "_PyEval_EvalFrameDefault.cold", "PyEval_EvalCode"], "likely"),
        (["__memchr_avx2", "_sre_SRE_Pattern_search", "_PyEval_EvalFrameDefault"], "likely"),
        (["_PyEval_EvalFrameDefault", "sre_ucs1_match"], None),
        (["PyLong_Add", "_PyEval_EvalFrameDefault"], None),
    ],
)
def test_native_frames_may_agree(names: List[Optional[str]], expected: Optional[str]) -> None:
    """The engine's own name above the interpreter's; where a stripped build has no names, nothing speaks against it. What runs
    Python code itself, or another function, has left the call."""
    native = [NativeFrame(name, "libpython3.12.so", 1) for name in names]
    assert found(matching(frames=[*native, *CALLER])).get("regex-backtracking") == expected


def test_the_modules_functions_do_too() -> None:
    """Where the call itself is not known: re.match is the innermost frame."""
    module = changed(frame("match"), file=f"{LIB}/re/__init__.py")
    assert found(matching(None, frames=[module, *CALLER]))["regex-backtracking"] == "possible"


@pytest.mark.parametrize(
    ("call", "expected"), [(Calling("_regex.Pattern.search", None, 31, lasts_s=2.0), "likely"), (None, "possible")]
)
def test_the_package_regex_has_an_engine_of_its_own(call: Optional[Calling], expected: str) -> None:
    """Its extension module tells it; without a call in progress, as while its iterator searches on, one line is possible."""
    module = "/venv/lib/python3.12/site-packages/regex/_regex.cpython-312-x86_64-linux-gnu.so"
    native = [NativeFrame(name, module, 1) for name in ("basic_match", "scanner_search")]
    loop = NativeFrame("_PyEval_EvalFrameDefault", "libpython3.12.so", 1)
    assert found(matching(call, frames=[*native, loop, *CALLER], gil="detached"))["regex-backtracking"] == expected
