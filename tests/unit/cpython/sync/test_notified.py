"""Threads that were notified and have not run since, recognised by the lock that each waits for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional, Set

from postmortem.cpython.sync.locks import Locks, LockState

CONDITION, WAITER = 0x1000, 0x2000


def told(
    locked: bool, listed: Optional[Set[int]], waiter: int = WAITER, file: str = "/lib/threading.py"
) -> Optional[bool]:
    """Return whether a thread in the ``wait`` of ``file`` was notified, given its lock and the condition's list."""
    local = {"self": CONDITION, "waiter": waiter}

    class Known(Locks):
        def _waiters_of(self, condition: int) -> Optional[Set[int]]:
            return listed if condition == CONDITION else None

    frames: Any = SimpleNamespace(objects=SimpleNamespace(), local=lambda _frame, name: local.get(name))
    frame: Any = SimpleNamespace(is_in=lambda name, ending: name == "wait" and file.endswith(ending))
    return Known(frames).notified(frame, LockState(WAITER, "lock", 0, locked, None))


def test_a_lock_that_is_free_again_was_notified() -> None:
    """Condition.notify releases it: the thread that sleeps on it only has to wake."""
    assert told(False, {WAITER}) is True
    assert told(True, {WAITER}) is None


def test_a_lock_that_was_handed_over_is_no_longer_in_the_list() -> None:
    """From 3.13 on it may pass from the notifier to the waiter without being free in between."""
    assert told(True, set()) is True
    assert told(True, None) is None


def test_another_lock_says_nothing() -> None:
    """The condition's own lock, which it wants back, or a function of the program that is called alike."""
    assert told(False, set(), waiter=0x3000) is None
    assert told(False, set(), file="/app/gate.py") is None
