"""What bounds a task's wait, and primitives in words."""

from __future__ import annotations

from postmortem.extract.waits.awaits import _bounded
from postmortem.frameworks.asyncio.awaiting import Awaited
from postmortem.frameworks.asyncio.primitives import Primitive, describe


def test_a_clock_bounds_what_it_cancels() -> None:
    """A task that a timer cancels passes that on to what it awaits directly; a shield, and asyncio.wait, keep it."""
    found = {
        1: Awaited("task", tasks=[2], passes_on=True),
        2: Awaited("tasks", tasks=[3, 4], passes_on=True),
        3: Awaited("task", tasks=[5]),
        4: Awaited("event"),
    }
    assert set(_bounded(found, {1: None}, {})) == {1, 2, 3, 4}


def test_a_clock_that_cancels_a_gather_bounds_its_tasks() -> None:
    """Its future is no task, but cancelling it cancels them; one that shields them keeps them."""
    for passes_on, bounded in ((True, {7, 2}), (False, {7})):
        gathered = Awaited("tasks", tasks=[2], passes_on=passes_on)
        assert set(_bounded({1: gathered, 2: Awaited("lock")}, {7: None}, {7: gathered})) == bounded


def test_wait_for_bounds_the_task_that_it_made() -> None:
    """Up to 3.11 it is that task which is cancelled, not the waiter."""
    found = {1: Awaited("task", tasks=[2], passes_on=True, timed=True), 2: Awaited("tasks", tasks=[1], passes_on=True)}
    assert set(_bounded(found, {}, {})) == {1, 2}  # a circle ends
    assert _bounded({1: Awaited("task", tasks=[2], timed=True)}, {}, {}) == {}


def test_the_first_timer_counts() -> None:
    """By whatever path it cancels; a timer whose time is unknown counts where no other does."""
    found = {
        1: Awaited("task", tasks=[2], passes_on=True),
        2: Awaited("tasks", tasks=[3], passes_on=True),
        3: Awaited("event"),
    }
    assert _bounded(found, {1: 9.0, 3: 12.0}, {}) == {1: 9.0, 2: 9.0, 3: 9.0}
    assert _bounded(found, {1: 9.0, 3: 5.0}, {}) == {1: 9.0, 2: 9.0, 3: 5.0}
    assert _bounded(found, {1: None, 3: 5.0}, {}) == {1: None, 2: None, 3: 5.0}
    assert _bounded({1: found[1], 2: Awaited("lock")}, {7: 4.0}, {7: found[1]}) == {7: 4.0, 2: 4.0}


def test_states_in_words() -> None:
    """What is unknown is left out."""
    said = {
        describe(Primitive(1, "queue", None, 0, 0)): "empty, no bound",
        describe(Primitive(1, "queue", None, 1, 1, 2)): "full, 1 place, 2 not done",
        describe(Primitive(1, "queue", None, 3, 8)): "3 items, 8 places",
        describe(Primitive(1, "queue")): "",
        describe(Primitive(1, "semaphore", None, 0, 3)): "0 of 3 left",
        describe(Primitive(1, "semaphore", None, 2)): "2 left",
        describe(Primitive(1, "barrier", None, 1, 2)): "1 of 2 have arrived",
        describe(Primitive(1, "event", None, 0)): "not set",
        describe(Primitive(1, "lock", False)): "free",
        describe(Primitive(1, "lock", True)): "",
    }
    assert all(text == expected for text, expected in said.items())
