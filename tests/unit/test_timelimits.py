"""Limits on the time of a search."""

import threading
import time

from postmortem.timelimits import TimeLimit


def test_time_spent_waiting_does_not_count() -> None:
    """A thread that waits for others, as on a busy machine, keeps its time; here it waits for another thread's work."""
    limit = TimeLimit(0.2)
    other = threading.Thread(target=time.sleep, args=(0.3,))
    other.start()
    other.join()
    assert not limit.passed()


def test_work_counts() -> None:
    """A search that computes comes to the end of its time."""
    limit = TimeLimit(0.01)
    while not limit.passed():
        pass
    assert limit.passed()


def test_the_clock_bounds_a_search_that_only_waits() -> None:
    """A search that waits (for a slow disk) ends too, later."""
    limit = TimeLimit(0.01)
    ended = threading.Event()
    ended.wait(0.2)
    assert limit.passed()


def test_a_limit_within_another_ends_with_it() -> None:
    """A part of a search cannot take longer than all of it."""
    assert TimeLimit(1000.0, within=TimeLimit(0.0)).passed()
    assert not TimeLimit(1000.0, within=TimeLimit(1000.0)).passed()


def test_a_deadline_counts_on_the_clock() -> None:
    """A time at which somebody wants the result passes whether or not the search computed."""
    assert TimeLimit.on_the_clock(time.monotonic()).passed()
    assert not TimeLimit.on_the_clock(time.monotonic() + 1000.0).passed()
