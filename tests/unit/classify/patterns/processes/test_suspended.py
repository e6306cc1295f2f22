"""What holds a process from outside: stopped, frozen, throttled."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import pytest

from postmortem.evidence import (
    ControlGroup,
    Evidence,
    Process,
    Resource,
    Thread,
    Wait,
)
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed

from .....support.diagnosed import classify
from .....support.make import counted, evidence, found, frame, lines, process, stack, thread, verdict

SLEEP = Wait("sleep", "clock_nanosleep", timeout_s=0.01, endless=False)
CHILD = Wait("process", "wait4", pid=2, endless=True)


# ---------------------------------------------------------------------- stopped


def child(states: Dict[str, int], **known: object) -> Process:
    held = thread(2, stack("work"), wait=SLEEP, counters=counted(states), is_main=True, state="T")
    return process([held], pid=2, ppid=1, argv=("python", "worker.py"), **known)


def parent(wait: Wait = CHILD, **known: object) -> Process:
    waits = thread(1, stack("subprocess.wait", "run", "main"), wait=wait, counters=counted({"S": 16}))
    return process([waits], pid=1, **known)


def test_a_stopped_child_stands_before_the_wait_for_it() -> None:
    """In every look in state T: the kernel says so. The line to change is the one that sends the signal, as far as known."""
    known = evidence(parent(stops=(frame("rest", 40),)), child({"T": 16}, stopped_by=19))
    assert (verdict(known), found(known)["stopped"], lines(known)) == ("stopped", "proven", [40])
    assert "SIGSTOP" in " ".join(classify(known).findings[0].evidence)


def test_without_a_known_sender_the_wait_is_where_to_look() -> None:
    """A child that is no Python program has no line of its own either."""
    bare = Process(2, 1, ("sleep", "9"), threads=(Thread(2, "sleep", "T", is_main=True, counters=counted({"T": 16})),))
    known = evidence(parent(), bare)
    assert (verdict(known), lines(known)) == ("stopped", [2])


def test_stopped_again_and_again() -> None:
    """By turns, for most of the time: the kernel never shows it for long, but the looks add up."""
    supervisor = process(
        [thread(1, stack("limit"), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.1), counters=counted({"S": 16}))],
        pid=1,
        stops=(frame("limit", 4),),
    )
    known = evidence(supervisor, child({"T": 13, "S": 3}))
    assert (verdict(known), found(known)["stopped"], lines(known)) == ("stopped", "likely", [4])
    assert found(evidence(supervisor, child({"T": 2, "S": 14})))["stopped"] == "possible"


def test_a_spare_child_that_nobody_waits_for_is_only_possible() -> None:
    """The parent computes: it may keep the child so on purpose."""
    busy = process([thread(1, stack("compute"), counters=counted({"R": 16}, cpu=0.9))], pid=1)
    assert found(evidence(busy, child({"T": 16})))["stopped"] == "possible"


@pytest.mark.parametrize(("deeds", "expected"), [(("continues",), "possible"), ((), "proven"), (None, "proven")])
def test_a_thread_of_the_parent_may_come_to_continue_it(deeds: Optional[Tuple[Deed, ...]], expected: str) -> None:
    """One that sleeps until the stop is to be over, and whose code names SIGCONT."""
    waits = parent()
    nap = Wait("sleep", "clock_nanosleep", timeout_s=28.0, endless=False)
    watch = thread(9, stack("watch"), wait=nap, counters=counted({"S": 16}), deeds=deeds)
    known = evidence(changed(waits, threads=(*waits.threads, watch)), child({"T": 16}, stopped_by=19))
    assert found(known)["stopped"] == expected


def test_it_stopped_itself() -> None:
    """In the middle of its own call of kill."""
    held = thread(1, stack("pause", "main"), wait=Wait("other", "kill"), counters=counted({"T": 16}), state="T")
    known = evidence(process([held]))
    assert (found(known), lines(known)) == ({"stopped": "proven"}, [1])


def test_a_tracer_is_named() -> None:
    """The kernel tells the thread that traces: of the tree with its line, else with its name."""
    traced = child({"t": 16}, tracer=77, tracer_name="gdb")
    first = classify(evidence(parent(), traced)).findings[0]
    assert (first.pattern, first.confidence) == ("stopped", "proven")
    assert "gdb" in first.summary
    known = evidence(parent(), child({"t": 16}, tracer=1))
    assert [c.function for c in classify(known).findings[0].culprits] == ["run"]


def test_its_terminal_stopped_it() -> None:
    """SIGTTIN: the line that reads the terminal."""
    reads = thread(1, stack("ask", "main"), wait=Wait("file", "read", fd=0), counters=counted({"T": 16}), state="T")
    first = classify(evidence(process([reads], stopped_by=21))).findings[0]
    assert (first.pattern, first.culprits[0].function) == ("stopped", "ask")
    assert "foreground" in first.remedy


def test_many_are_one_finding() -> None:
    """A supervisor with three children, one of which is stopped throughout: told once, the surest first."""
    several = [changed(child({"T": 16 - n, "S": n} if n else {"T": 16}), pid=10 + n) for n in range(3)]
    top = parent(Wait("sleep", "clock_nanosleep"), stops=(frame("limit", 4),))
    only = [f for f in classify(evidence(top, *several)).findings if f.pattern == "stopped"]
    assert [f.confidence for f in only] == ["proven"]
    assert "2 other processes are in the same state" in only[0].evidence[-1]


def test_what_a_stopped_process_waits_for_is_where_it_was_held() -> None:
    """A read without a timeout is no finding above possible, as long as the process runs nothing."""
    socket = Resource("socket-1", "socket", "socket a → b", local="a:1", remote="b:80", accepted=False)
    wait = Wait("socket", "recvfrom", resource="socket-1", fd=3, endless=True)
    reads = thread(1, stack("socket.readinto", "fetch"), wait=wait, counters=counted({"T": 16}), state="T")
    assert found(evidence(process([reads], resources=(socket,)))) == {"stopped": "proven", "network-wait": "possible"}


def test_without_a_window_one_look_will_do_for_likely() -> None:
    """/proc showed it stopped, once. A lone core says nothing about it."""
    once = changed(child({}), state="T", threads=tuple(changed(t, counters=None) for t in child({}).threads))
    assert found(evidence(parent(), once, window=None))["stopped"] == "likely"
    sends = thread(1, stack("pause"), wait=Wait("other", "kill"))
    known = classify(evidence(process([sends]), window=None, kind="core"))
    assert "stopped" in {a.pattern for a in known.abstained}
    assert "stopped" not in {f.pattern for f in known.findings}


# ---------------------------------------------------------------------- frozen


def test_a_frozen_group() -> None:
    """The kernel's file says so: proven. State D is no disk, and what it waited for is not why."""
    group = ControlGroup("/docker/abc", frozen=True)
    held = thread(1, stack("work", "main"), wait=SLEEP, counters=counted({"D": 16}), state="D")
    known = evidence(process([held], cgroup=group))
    assert found(known) == {"frozen": "proven", "sleeping": "possible"}
    assert lines(known) == [1, 2]


def test_a_frozen_child_stands_before_the_wait_for_it() -> None:
    """The parent's group runs."""
    known = evidence(parent(), changed(child({"D": 16}), cgroup=ControlGroup("/x", frozen=True)))
    assert verdict(known) == "frozen"
    assert classify(known).findings[0].victims[0].function == "run"


def test_one_that_ran_in_the_window_was_frozen_during_it() -> None:
    """Then the kernel's file alone is not the whole story."""
    ran = thread(1, stack("work"), counters=counted({"R": 8, "D": 8}, cpu=0.4))
    assert found(evidence(process([ran], cgroup=ControlGroup("/x", frozen=True))))["frozen"] == "likely"
    assert "frozen" not in found(evidence(process([ran], cgroup=ControlGroup("/x", frozen=False))))


# ---------------------------------------------------------------------- throttled


def limited(throttled: float, cpu: float, delay: float, quota: float = 0.1) -> Evidence:
    group = ControlGroup("/app", cpu_quota=quota, throttled=throttled, throttled_s=0.8)
    return evidence(
        process([thread(1, stack("price", "main"), counters=counted({"R": 16}, {}, {}, cpu, delay))], cgroup=group)
    )


def test_the_quota_is_used_up() -> None:
    """In each period, and the process gets a tenth of what it wants."""
    known = limited(1.0, 0.1, 0.9)
    assert (verdict(known), found(known)["throttled"], lines(known)) == ("throttled", "likely", [1])


@pytest.mark.parametrize(
    ("throttled", "cpu", "delay", "said"),
    [
        (0.0, 0.1, 0.9, None),  # the machine is busy, not the quota
        (0.9, 0.9, 0.1, "possible"),  # it gets nine tenths
        (0.2, 0.1, 0.9, "possible"),  # now and then
        (1.0, 0.0, 0.05, None),  # it hardly wants to run: others of the group use the quota up
    ],
)
def test_what_is_no_throttling(throttled: float, cpu: float, delay: float, said: Optional[str]) -> None:
    """A share of the periods and a share of what was wanted, both."""
    assert found(limited(throttled, cpu, delay)).get("throttled") == said


def test_a_busy_machine_beside_the_quota() -> None:
    """It was used up in half of the periods, at their very end, and not in all of the window: what was waited for was a CPU."""
    assert found(limited(0.5, 0.39, 0.45, quota=0.5))["throttled"] == "possible"
    assert found(limited(0.5, 0.49, 0.45, quota=0.5))["throttled"] == "likely"


def test_many_workers_share_a_quota() -> None:
    """None of ten wants a fifth of a core by itself; together they do, and are one finding."""
    group = ControlGroup("/app", cpu_quota=0.3, throttled=1.0)
    several = [
        process(
            [thread(n, stack("tile"), counters=counted({"R": 16}, cpu=0.01, delay=0.14), is_main=True)],
            pid=n,
            cgroup=group,
        )
        for n in range(1, 11)
    ]
    assert [f.pattern for f in classify(evidence(*several)).findings if f.confidence == "likely"] == ["throttled"]


def test_a_core_does_not_tell() -> None:
    """Without a window nothing is known of periods."""
    known = evidence(process([thread(1, stack("price"))], cgroup=ControlGroup("/app", cpu_quota=0.1)), window=None)
    assert "throttled" in {a.pattern for a in classify(known).abstained}
