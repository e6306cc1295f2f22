"""The order in which processes are examined, and how a time budget is divided among them."""

from __future__ import annotations

import os
import time
from typing import Any, Dict

import pytest

from postmortem.extract.assemble import schedule
from postmortem.extract.assemble.how import GDB_DEADLINE_S
from postmortem.extract.recorded.raw import NO_RAW, Raw
from postmortem.extract.recorded.window import NO_WINDOW


def _raw(pid: int, *argv: str, call: str = "futex", threads: int = 1) -> Raw:
    waits = {"last_syscall": {"nr": 0, "name": call, "args": [0, 0, 0, 0, 0, 0]}}
    facts = {"argv": list(argv), "exe": "/usr/bin/python3", "threads": {str(pid + n): {} for n in range(threads)}}
    return NO_RAW._replace(process=facts, window=NO_WINDOW._replace(threads={pid: waits}))


def _pool() -> Dict[int, Any]:
    """A root, forty workers whose words differ in numbers, and two other programs."""
    raws = {10: _raw(10, "python", "pool.py", call="wait4")}
    raws.update({pid: _raw(pid, "python", f"spawn_main(pipe_handle={pid})") for pid in range(20, 60)})
    raws[70] = _raw(70, "python", "tracker.py", call="read")
    raws[71] = _raw(71, "python", "server.py", call="epoll_wait")
    return raws


def test_the_root_comes_first_then_one_of_each_kind() -> None:
    """So the little that there is time for tells the most; the rest keeps its order."""
    order = schedule.most_telling_first(_pool())
    assert order[:4] == [10, 20, 70, 71]
    assert order[4:] == list(range(21, 60))


@pytest.mark.parametrize(
    "other", [_raw(21, "python", "a", call="read"), _raw(21, "python", "b"), _raw(21, "python", "a", threads=2)]
)
def test_another_wait_program_or_number_of_threads_is_another_kind(other: Any) -> None:
    """The odd one out of many workers is the one to look at."""
    raws = {pid: _raw(pid, "python", "a") for pid in (10, 11, 12, 13)}
    assert schedule.most_telling_first({**raws, 21: other})[:2] == [10, 21]


def test_damaged_facts_are_a_kind_too() -> None:
    """What /proc said may be missing altogether, or be anything at all."""
    odd = {1: NO_RAW, 2: NO_RAW._replace(process={"argv": 7, "exe": None, "threads": []}), 3: NO_RAW}
    assert sorted(schedule.most_telling_first(odd)) == [1, 2, 3]


class _Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_without_a_limit_gdb_has_all_of_its_time() -> None:
    """`analyze` takes as long as it needs."""
    budget = schedule.Budget(None, 500)
    assert budget.gdb_s(499) == GDB_DEADLINE_S
    assert budget.gdb_s(492, together=8) == 8 * GDB_DEADLINE_S
    assert budget.may_read()


def test_gdb_may_take_half_of_what_is_left_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process with a cold symbol index must not cost all of the others theirs; the last one may have the rest."""
    _Clock(monkeypatch)
    budget = schedule.Budget(1020.0, 2)
    assert 8 < budget.gdb_s(1) < 10
    assert 18 < budget.gdb_s(0) < 20


def test_time_for_the_python_side_of_the_others_is_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as those that have been read took each."""
    _Clock(monkeypatch)
    budget = schedule.Budget(1020.0, 100)
    for _process in range(10):
        budget.note_reading(0.5)
    assert budget.gdb_s(90) == 0.0  # 45 s are needed as it is
    assert budget.gdb_s(10) > 1


def test_when_time_is_short_gdb_is_not_started_and_then_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gdb that would be killed before it has read its files is of no use; in the end the reports need time as well."""
    clock = _Clock(monkeypatch)
    budget = schedule.Budget(1020.0, 2)
    clock.now = 1019.0
    assert budget.gdb_s(0) == 0.0
    assert budget.may_read()
    clock.now = 1019.9
    assert not budget.may_read()
    clock.now = 1050.0
    assert budget.gdb_s(0) == 0.0
    assert not budget.may_read()


def test_as_many_gdbs_as_there_are_cpus_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """One gdb for each CPU that the process may use, but four at most."""
    for cpus, expected in ((1, 1), (2, 2), (64, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, n=cpus: set(range(n)))
        assert schedule.at_once() == expected


def test_enough_gdbs_for_every_cpu_come_before_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes on two CPUs have a gdb each; of hundreds, a few share one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert [schedule.together(number) for number in (0, 1, 2, 3, 4, 10, 500)] == [1, 1, 1, 2, 2, 5, 8]
