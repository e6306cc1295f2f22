"""What threads do, in words."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from postmortem import evidence as ev
from postmortem.report.phrases import labels


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (
            ev.Wait("socket", "recvfrom", fd=5, endless=True, verb="call", detail="tcp to 10.0.0.1:80"),
            "waits for the other end of a socket: recvfrom on tcp to 10.0.0.1:80 (descriptor 5), without a time limit",
        ),
        (
            ev.Wait("file", "flock", fd=3, verb="waits", detail="for a lock on a file"),
            "waits for a lock on a file in flock on descriptor 3",
        ),
        (
            ev.Wait("process", "wait4", pid=12, endless=True),
            "waits for a process to end in wait4: process 12, without a time limit",
        ),
        (
            ev.Wait("sleep", "clock_nanosleep", timeout_s=60.0, endless=False),
            "sleeps in clock_nanosleep, for up to 60 s",
        ),
        (ev.Wait("sleep", "clock_nanosleep", endless=False), "sleeps in clock_nanosleep"),
        (
            ev.Wait("sleep", "clock_nanosleep", timeout_s=60.0, endless=False, remaining_s=4.21),
            "sleeps in clock_nanosleep, for up to 60 s, ends in 4.2 s",
        ),
        (
            ev.Wait("lock", "futex", timeout_s=86_400.0, endless=False, remaining_s=82_800.0),
            "waits for a lock, for up to 24 h, gives up in 23 h",
        ),
        (ev.Wait("lock", "futex", endless=False, remaining_s=4.21), "waits for a lock, times out in 4.2 s"),
        (ev.Wait("lock", "futex", endless=False, remaining_s=-0.5), "waits for a lock, timed out since 0.5 s"),
        (
            ev.Wait(
                "process", "clock_nanosleep", pid=12, timeout_s=900.0, endless=False, polls_s=0.05, remaining_s=700.0
            ),
            "waits for a process to end: process 12, for up to 15 min, gives up in 12 min",
        ),
        (
            ev.Wait("event-loop", "epoll_wait", timeout_s=9.0, endless=False, remaining_s=8.0),
            "runs an event loop (the scheduler that runs coroutines and callbacks in turn) that waits for events in "
            "epoll_wait, for up to 9 s, ends in 8 s",
        ),
        (ev.Wait("gil", "futex", verb="wants", detail="the GIL"), f"waits for the GIL ({labels.TERMS['GIL']})"),
        (
            ev.Wait("lock", "futex", "lock-1"),
            "waits for a lock: lock `a`, held by thread 9 (not among the threads)",
        ),
        (ev.Wait("something new"), "waits"),  # type: ignore[arg-type] # of a later release
    ],
)
def test_waits(wait: ev.Wait, said: str) -> None:
    """Kind, call, object, holder and limit, each once and only as far as it is known."""
    process = ev.Process(1, resources=(ev.Resource("lock-1", "lock", "lock `a`", owner_tid=9),))
    assert labels.waiting(wait, process, labels.Glossary()) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-0.0, "0 ms"),
        (0.0, "0 ms"),
        (0.0246, "24.6 ms"),
        (0.1, "0.1 s"),
        (1.0, "1 s"),
        (2.25, "2.2 s"),
        (58.4, "58 s"),
        (3600.0, "60 min"),
        (82_800.0, "23 h"),
        (864_000.0, "10 days"),
    ],
)
def test_durations(value: float, said: str) -> None:
    """In the unit that a person would use."""
    assert labels.seconds(value) == said


def test_numbers_agree_with_their_nouns() -> None:
    """One thread, two threads, two processes."""
    assert [labels.plural(1, "thread"), labels.plural(2, "thread")] == ["1 thread", "2 threads"]
    assert labels.plural(2000, "process") == "2,000 processes"


def test_work_is_only_said_when_it_was_measured() -> None:
    """Unknown counters are left out, a measured nothing is said."""
    measured = ev.Thread(1, counters=ev.Counters(seconds=2.0, cpu_s=1.0, voluntary_switches=3000))
    unknown = ev.Thread(2, counters=ev.Counters(seconds=2.0))
    parked = ev.Thread(3, counters=ev.Counters(seconds=2.0, cpu_s=0.0, voluntary_switches=0))
    assert labels.work([measured, unknown]) == "used 50 % of a core and gave up the CPU 1,500 times a second"
    assert labels.work([unknown, ev.Thread(4)]) == ""
    assert labels.work([parked]) == "used no CPU"


def test_what_a_thread_does_when_it_does_not_wait() -> None:
    """The GIL first, then the kernel's state letter, then plainly unknown."""
    process, term = ev.Process(1), labels.Glossary()
    term("GIL")
    assert labels.doing(ev.Thread(1, state="R", gil="holds"), process, term) == "holds the GIL"
    assert labels.doing(ev.Thread(1, state="R"), process, term) == "runs or is ready to run"
    assert labels.doing(ev.Thread(1), process, term) == "is in an unknown state"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"kind": "thread", "owner_tid": 9}, "waits for a lock: the end of worker"),
        ({"owner_gone": True}, "waits for a lock: the end of worker, whose holder has ended"),
        ({"owner_pid": 7, "owner_tid": 8}, "waits for a lock: the end of worker, held by process 7"),
    ],
)
def test_holders_that_are_no_threads_of_the_process(known: Dict[str, Any], said: str) -> None:
    """A joined thread is held by nobody; a holder may be gone, or in another process."""
    resource = ev.Resource("r", **{"kind": "lock", "description": "the end of worker", **known})
    process = ev.Process(1, resources=(resource,))
    assert labels.waiting(ev.Wait("lock", "futex", "r"), process, labels.Glossary(labels.TERMS)) == said
