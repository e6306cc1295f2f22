"""Callbacks on the thread of a client library that wait for what the same thread would have to do."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import pytest

from postmortem.evidence import Evidence, PythonFrame, Resource, Thread, Wait, Waker

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, stack, thread

MODULE = "/venv/lib/python3.12/site-packages/mqtt/client.py"


def calls_back(
    inside: str = MODULE,
    begun: Sequence[PythonFrame] = (),
    endless: bool = True,
    others: Sequence[Thread] = (),
    wakers: Tuple[Waker, ...] = (),
) -> Evidence:
    """Return a program whose callback, called by a client's thread, waits in a library's module, and that sleeps elsewhere.

    ``begun``: the outermost frames of that thread. ``others``: more threads.
    """
    frames = (
        *stack("threading.wait"),
        frame("wait_for_publish", 371, inside),
        frame("confirm", 68),
        frame("on_message", 62),
        frame("_handle_publish", 3330, MODULE),
        frame("_thread_main", 1754, MODULE),
        *begun,
        *stack("threading.run", "threading._bootstrap"),
    )
    published = Resource("c-1", "condition", "Condition Info.published", waiters=(2,), wakers=wakers)
    waits = Wait("condition", "futex", "c-1", endless=endless, remaining_s=None if endless else 3.0)
    client = thread(2, frames, wait=waits, counters=counters(), is_main=False)
    main = thread(1, [frame("main", 113)], wait=Wait("sleep", endless=False), counters=counters())
    return evidence(process([main, client, *others], resources=(published,)))


def test_a_callback_that_waits_for_its_own_client() -> None:
    """Nothing else of that module runs: the thread would have to read the confirmation itself."""
    assert (found(calls_back())["missed-wakeup"], lines(calls_back())[0]) == ("likely", 68)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (calls_back(inside=MODULE.replace("client", "pool")), None),  # another part of the library may have threads
        (calls_back(begun=[frame("serve", 12)]), None),  # the program runs the loop on a thread of its own
        (calls_back(begun=stack("concurrent.futures.thread._worker")), None),
        (calls_back(endless=False), None),
        (
            calls_back(others=[thread(3, [frame("_loop", 1150, MODULE)], wait=Wait("socket", endless=False))]),
            "possible",
        ),  # perhaps another client of its own, perhaps a helper
        (calls_back(wakers=(Waker("reach", "memory", tid=1, grade="names"),)), "possible"),
    ],
    ids=[
        "another module",
        "the program's thread",
        "a worker",
        "a time limit",
        "another thread of the module",
        "other code",
    ],
)
def test_what_may_end_the_wait_of_a_callback(known: Evidence, expected: Optional[str]) -> None:
    """Only a library's own thread, in the same module, is one that waits for itself."""
    assert found(known).get("missed-wakeup") in (None, "possible")
    summaries = [one.summary for one in classify(known).findings if "calls the program back" in one.summary]
    assert len(summaries) == (expected is not None)
