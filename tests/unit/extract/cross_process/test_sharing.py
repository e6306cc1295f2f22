"""The holder of a semaphore shared between processes, put together from what each of them counts."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from postmortem.evidence import Process, PythonFrame, Resource, Thread
from postmortem.extract.cross_process.forks import Trace
from postmortem.extract.cross_process.semaphores import KIND, Claim, semaphore_files
from postmortem.extract.cross_process.sharing import with_shared_owners, with_sharers
from postmortem.extract.ownership.ownership import Ownership
from postmortem.memory import MappedFile

from ....support.inwords import words

KEY = "shared-semaphore:00:1b:77"
MAPS = ["7f00-7f01 rw-s 00000000 00:1b 77                      /dev/shm/sem.abc (deleted)"]
NOTED: Dict[str, Any] = {"beyond": {}, "unread": 0, "not_looked_at": 0}


def waiting(pid: int, **known: Any) -> Process:
    """A process in which somebody waits for the lock."""
    return Process(pid, resources=(Resource("s-1", KIND, "Lock x", locked=True, value=0, key=KEY, **known),))


LOCK = 0x7F00


def claim(taken: int = 0, owner: Optional[int] = None, is_lock: bool = True) -> Claim:
    return Claim(is_lock, 0, taken, Ownership(LOCK, owner, "recorded") if owner else None)


def joined(claims: Dict[int, Optional[Claim]], noted: Any = NOTED, **trace: Any) -> Resource:
    """What process 1 knows of the lock after all. ``claims``: pid → claim; None: a process that was not read."""
    processes = [waiting(pid) if pid == 1 else Process(pid) for pid in claims]
    traces = {pid: Trace(b"", claims={KEY: known}, **trace) for pid, known in claims.items() if known is not None}
    return with_sharers(processes, traces, dict.fromkeys(claims, MAPS), noted)[0].resources[0]


def test_the_one_that_counts_it_as_its_own_holds_it() -> None:
    """With the thread that took it last, and its process."""
    found = joined({1: claim(), 2: claim(1, 22), 3: claim()})
    assert (found.owner_pid, found.owner_tid, found.owner_basis) == (2, 22, "recorded")
    assert found.owner_gone is None


def test_nobody_has_what_is_taken() -> None:
    """All of them were read, and none counts it: its holder is gone."""
    found = joined({1: claim(), 2: claim()})
    assert found.owner_gone is True
    assert any("processes 1, 2 map it" in step for step in words(found.because))


@pytest.mark.parametrize(
    ("claims", "noted", "trace"),
    [
        ({1: claim(), 2: None}, NOTED, {}),  # one of them was not read
        ({1: claim()}, {**NOTED, "beyond": {"00:1b:77": [9]}}, {}),  # one was not captured
        ({1: claim()}, {**NOTED, "unread": 1}, {}),
        ({1: claim()}, {**NOTED, "not_looked_at": 3}, {}),
        ({1: claim()}, None, {}),  # an older bundle
        ({1: claim()}, NOTED, {"unsettled": True}),  # a thread may have just taken it
        ({1: claim()}, NOTED, {"complete": False}),
    ],
)
def test_a_doubt_leaves_the_holder_unknown(claims: Any, noted: Any, trace: Any) -> None:
    """Unknown is not gone."""
    found = joined(claims, noted, **trace)
    assert (found.owner_gone, found.owner_tid, found.closed) == (None, None, None)


def test_a_thread_that_has_ended_in_a_living_process() -> None:
    """It counts as taken there, by a thread that is no more."""
    found = joined({1: claim(), 2: claim(1, None)})
    assert (found.owner_gone, found.owner_pid) == (True, None)
    assert "process 2" in words(found.because)[0]


def test_two_that_count_it_leave_it_open() -> None:
    """A plain os.fork copies the count: one of them is wrong, and nothing says which."""
    found = joined({1: claim(), 2: claim(1, 22), 3: claim(1, 33)})
    assert (found.owner_tid, found.owner_gone) == (None, None)


def test_an_event_can_be_set_by_all_who_have_it() -> None:
    """And by nobody else; the dead do not count."""
    found = joined({1: claim(is_lock=False), 2: claim(5, 22, False)})
    assert (found.closed, [w.pid for w in found.wakers], found.owner_gone) == (True, [1, 2], None)
    found = joined({1: claim(is_lock=False)}, {**NOTED, "beyond": {"00:1b:77": [9]}})
    assert [w.pid for w in found.wakers] == [1, 9]
    assert joined({1: claim(is_lock=False)}, None).closed is None


def test_a_semaphore_that_is_always_given_back_tells_where() -> None:
    """All who wait would give it back themselves, and nobody who lives has taken it: a permit, not a signal."""
    here = PythonFrame("/app/p.py", 7, "use")
    waits, idle = Claim(False, 0, 0, None, (here,)), claim(is_lock=False)
    found = joined({1: waits, 2: waits, 3: idle})
    assert (found.taken_at, found.closed, found.owner_gone) == ((here,), True, None)
    assert any("it guards something" in step for step in words(found.because))


@pytest.mark.parametrize(
    ("other", "noted", "trace"),
    [
        (Claim(False, 0, 0, None, None), NOTED, {}),  # one of those who wait takes it for a signal
        (Claim(False, 0, 1, Ownership(LOCK, 22, "recorded")), NOTED, {}),  # somebody has taken it
        (Claim(False, 0, -1), NOTED, {}),  # somebody has released what he had not taken
        (Claim(False, 0, 0), NOTED, {"unsettled": True}),
        (None, NOTED, {}),  # not read
        (Claim(False, 0, 0), None, {}),  # others were not looked at
    ],
)
def test_a_doubt_leaves_it_a_signal(other: Optional[Claim], noted: Any, trace: Any) -> None:
    """Then it may be posted by anybody who has it."""
    waits = Claim(False, 0, 0, None, (PythonFrame("/app/p.py", 7, "use"),))
    found = joined({1: waits, 2: other}, noted, **trace)
    assert (found.taken_at, len(found.wakers)) == ((), 2)


def test_a_lock_that_others_give_back_is_a_signal() -> None:
    """A count below zero: it was released by who had not taken it, so whoever took it last need not be the one to."""
    found = joined({1: claim(1, 11), 2: claim(-1)})
    assert (found.owner_tid, found.owner_gone, [w.pid for w in found.wakers]) == (None, None, [1, 2])
    found = joined(
        {1: Claim(True, 0, 1, Ownership(LOCK, 11, "inferred")), 2: claim()}
    )  # it waits for what it has itself taken
    assert (found.owner_tid, [w.pid for w in found.wakers]) == (None, [1, 2])


def test_one_that_is_free_has_no_holder() -> None:
    """Somebody was just woken: nothing is said of holders."""
    process = Process(1, resources=(Resource("s-1", KIND, "Lock x", locked=False, value=1, key=KEY),))
    found = with_sharers([process], {1: Trace(b"", claims={KEY: claim()})}, {1: MAPS}, NOTED)[0].resources[0]
    assert found == process.resources[0]


def test_zombies_have_nothing() -> None:
    """Their memory is gone, however much of them is unread."""
    processes = [waiting(1), Process(2, state="Z")]
    found = with_sharers(processes, {1: Trace(b"", claims={KEY: claim()})}, {1: MAPS, 2: None}, NOTED)
    assert found[0].resources[0].owner_gone is True


def test_where_semaphores_are_mapped() -> None:
    """From the capture's notes with device and inode; from a lone core by path; damaged lines are passed over."""
    assert semaphore_files([*MAPS, "x", "zz-1 rw-s 0 00:1b 5 /dev/shm/sem.q"]) == {0x7F00: KEY}
    files = [MappedFile(0x5000, 0x6000, 0, "/dev/shm/sem.abc"), MappedFile(0x7000, 0x8000, 0, "/lib/x.so")]
    assert semaphore_files(None, files) == {0x5000: "shared-semaphore:/dev/shm/sem.abc"}
    assert semaphore_files([], files) == {}


def test_a_native_lock_in_shared_memory_records_another_process() -> None:
    """Its holder is the thread that has this TID in any process that was captured; otherwise nothing is said."""
    lock = Resource("native-mutex-1", "mutex", "a mutex", waiters=(1,))
    mine, other = Process(1, threads=(Thread(1),), resources=(lock,)), Process(2, 1, threads=(Thread(2), Thread(7)))
    for tid, expected in ((7, (7, 2, True)), (9, (None, None, None))):
        found = with_shared_owners([mine, other], {1: Trace(shared_owners={"native-mutex-1": tid})})[0].resources[0]
        assert (found.owner_tid, found.owner_pid, found.locked) == expected
