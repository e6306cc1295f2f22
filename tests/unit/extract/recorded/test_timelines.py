"""What threads were at over the window, from looks that may be missing or damaged."""

from __future__ import annotations

from typing import Any, List, Tuple

import pytest

from postmortem.evidence import Stretch
from postmortem.extract.recorded.timelines import holders, timeline
from postmortem.extract.recorded.window import NO_WINDOW, Window

GIL, LOCK, STATE = 0x1000, 0x2000, 0xBEEF


def window(course: Any, held: Any = None) -> Window:
    probes = {} if held is None else {"gil": {"holders": held}}
    return NO_WINDOW._replace(seconds=1.0, threads={7: {"course": course}}, probes=probes, began=100.0)


def told(course: Any, held: Any = None, state: int = STATE) -> List[Tuple[float, float, str]]:
    seen = window(course, held)
    found = timeline(seen, 7, state, holders(seen), lambda word: word == GIL)
    assert all(isinstance(one, Stretch) for one in found)
    return [(one.first_s, one.last_s, one.doing) for one in found]


def test_looks_become_stretches_without_gaps() -> None:
    """From the beginning of the window to its end, each from one change to the next."""
    course = [[0.01, "S", "futex", GIL], [0.3, "R", "running", 0], [0.5, "S", "futex", LOCK], [0.8, "S", "read", 0]]
    assert told(course) == [(0.0, 0.3, "waits"), (0.3, 0.5, "runs"), (0.5, 1.0, "blocked")]


def test_the_holder_of_the_gil_is_seen_between_the_looks() -> None:
    """Its changes are looked at more often than /proc; who held it goes on with what /proc said."""
    held = [[100.2, STATE], [100.25, 0xF00D], [100.4, STATE], [100.6, 0]]
    assert told([[0.0, "S", "futex", GIL]], held) == [
        (0.0, 0.2, "waits"),
        (0.2, 0.25, "holds"),
        (0.25, 0.4, "waits"),
        (0.4, 0.6, "holds"),
        (0.6, 1.0, "waits"),
    ]


def test_what_the_kernel_does_not_tell_is_unknown() -> None:
    """A thread that is gone, a letter nobody knows, a state that may not be read; a sleeper without its call is blocked."""
    course = [[0.0, "S", None, 0], [0.4, None, None, 0], [0.6, "?", "read", 0]]
    assert told(course) == [(0.0, 0.4, "blocked"), (0.4, 1.0, "unknown")]


def test_a_futex_of_which_nobody_knows_whose_it_is() -> None:
    """Without a core it may be the GIL's or not, which is neither waiting for it nor being blocked."""
    found = timeline(window([[0.0, "S", "futex", LOCK]]), 7, None, (), lambda _word: None)
    assert [one.doing for one in found] == ["unknown"]


@pytest.mark.parametrize(
    "course", [None, [], 7, [[]], [["x", "S", "read", 0]], [[0.0, "S", "read"]], [None, [None, "S", "read", 0]]]
)
def test_a_damaged_course_tells_nothing(course: Any) -> None:
    """Bundles are read as they come."""
    assert told(course) == []


@pytest.mark.parametrize("held", [7, [7], [[1]], [["x", STATE]], [[100.1, None]], []])
def test_damaged_holders_tell_nothing(held: Any) -> None:
    """And take nothing from what /proc said."""
    assert told([[0.0, "R", "running", 0]], held) == [(0.0, 1.0, "runs")]


def test_without_a_window_there_is_none() -> None:
    """A lone core has a moment, and no course."""
    assert timeline(NO_WINDOW, 7, STATE, holders(NO_WINDOW), lambda word: True) == ()
