"""Shells and the like that wait for a signal until a child has ended."""

from __future__ import annotations

import pytest

from postmortem.evidence import Process, Thread, Wait
from postmortem.evidence import replace as changed
from postmortem.extract.cross_process.shells import with_child_waits

SUSPENDED = Wait("signal", "rt_sigsuspend", endless=True)
SHELL = Process(10, 1, threads=(Thread(10, wait=SUSPENDED),))
CHILD = Process(20, 10)


def test_a_shell_waits_for_its_children() -> None:
    """It waits for any of them, without a limit."""
    assert with_child_waits([SHELL, CHILD])[0].threads[0].wait == Wait("process", "rt_sigsuspend", endless=True)


@pytest.mark.parametrize(
    "processes",
    [
        [SHELL],
        [changed(SHELL, threads=(*SHELL.threads, Thread(11))), CHILD],
        [changed(SHELL, threads=(Thread(10, wait=Wait("signal", "rt_sigtimedwait", endless=False)),)), CHILD],
    ],
)
def test_what_waits_for_signals(processes: list[Process]) -> None:
    """Without children, with threads that could do other work, or with a limit: the wait stays as it was read."""
    assert with_child_waits(processes) == processes
