"""Work that gives way: where and how it goes on, and that nothing makes it fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, List

import pytest

from postmortem import quiet

_TICKS = os.sysconf("SC_CLK_TCK")

#: What a quiet process says of itself and of a child that it starts.
PROGRAM = """
import json, os, subprocess, sys
from postmortem import quiet
{before}
quiet.be_quiet()
say = "import json, os; print(json.dumps([os.sched_getscheduler(0), os.getpriority(0, 0), sorted(os.sched_getaffinity(0))]))"
child = subprocess.run([sys.executable, "-c", say], stdout=subprocess.PIPE).stdout
own = [os.sched_getscheduler(0), os.getpriority(0, 0), sorted(os.sched_getaffinity(0))]
print(json.dumps([own, json.loads(child)]))
"""


def _run(before: str) -> List[Any]:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(before=before)], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def test_the_cpu_that_was_idle_longest_is_taken() -> None:
    """Only the CPUs that this process may use are compared; another one's idleness counts for nothing."""
    before, after = {0: 100, 1: 100, 2: 100}, {0: 110, 1: 180, 2: 190}
    assert quiet.choose({0, 1}, before, after, 100 / _TICKS) == quiet.Choice(1, True)


def test_of_equal_cpus_the_last_is_taken() -> None:
    """The first one has the interrupts."""
    assert quiet.choose({0, 1}, {0: 5, 1: 5}, {0: 105, 1: 105}, 100 / _TICKS).cpu == 1


@pytest.mark.parametrize(("idle", "is_free"), [(0, False), (49, False), (50, True), (100, True)])
def test_idle_priority_is_for_a_cpu_of_which_half_is_free(idle: bool, is_free: bool) -> None:
    """On a CPU that never is idle, work of idle priority hardly ever runs."""
    assert quiet.choose({0}, {0: 7}, {0: 7 + idle}, 100 / _TICKS).idle is is_free


def test_without_counters_no_cpu_is_chosen_and_none_is_called_free() -> None:
    """/proc/stat may be hidden, or count other CPUs than those that we may use."""
    assert quiet.choose({0, 1}, {}, {}, 1.0) == quiet.Choice(None, False)
    assert quiet.choose({8}, {0: 1}, {0: 100}, 1.0) == quiet.Choice(None, False)


@pytest.mark.parametrize(("busy", "nice"), [(0.0, 10), (1.0, 10), (2.5, 5), (5.0, 2), (20.0, 0)])
def test_a_tenth_of_a_cpu_is_kept_against_any_number_of_busy_threads(busy: float, nice: int) -> None:
    """Each level is a fifth less, so that many busy threads leave less to be given away."""
    assert quiet.niceness(busy) == nice
    weight = 1.25**-nice
    assert nice == 0 or 0.09 <= weight / (weight + max(busy, 1.0)) <= 0.125


@pytest.mark.live
@pytest.mark.parametrize("idle_share", [0, 1])
def test_a_quiet_process_and_its_children_give_way(idle_share: float) -> None:
    """One CPU; idle priority where it is free, else a batch job with nice 10."""
    measured = (
        "quiet._running = int\n"
        "looks = iter([0, {ticks}])\nquiet._idle_ticks = lambda: dict.fromkeys(range(os.cpu_count()), next(looks))"
    )
    own, child = _run(measured.format(ticks=idle_share * 1000))
    policy, nice, cpus = own
    assert len(cpus) == 1
    assert (policy == os.SCHED_IDLE) if idle_share else (policy == os.SCHED_BATCH and nice >= 10)
    assert child == own


@pytest.mark.live
def test_what_is_refused_is_done_without() -> None:
    """A sandbox may forbid every one of these calls."""
    refuse = (
        "def no(*given): raise PermissionError(1, 'no')\nos.sched_setaffinity = os.sched_setscheduler = os.nice = no"
    )
    own, _child = _run(refuse)
    assert own == [os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))]


AUTOGROUP = """
import os, subprocess, sys
from postmortem import quiet
quiet._idle_ticks, quiet._running = dict, int
{be_quiet}
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
quiet.pass_on(child.pid)
print(open(f"/proc/{{child.pid}}/autogroup").read())
child.communicate(b"\\n")
"""


@pytest.mark.live
@pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"), reason="the kernel makes no autogroups")
@pytest.mark.parametrize(("how", "nice"), [("quiet.be_quiet()", 10), ("", 0)])
def test_a_session_of_its_own_gives_way_too(how: str, nice: int) -> None:
    """Where sessions share the CPU evenly, a child's priority inside its own is worth nothing; who is not quiet starts
    its children as ever."""
    command = [sys.executable, "-c", AUTOGROUP.format(be_quiet=how)]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert said.split()[-2:] == ["nice", str(nice)]
