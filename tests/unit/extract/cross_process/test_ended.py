"""Child processes that have ended: by their zombies, and by what their parents recorded."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from postmortem.evidence import Ended, Process
from postmortem.extract.cross_process.ended import exit_status, recorded, running, with_ended
from postmortem.extract.cross_process.forks import Trace
from postmortem.frameworks.processpools import Worker


@pytest.mark.parametrize(("code", "status"), [(9, -9), (0x8B, -11), (0x300, 3), (0, None), (None, None), ("9", None)])
def test_a_wait_status(code: Any, status: Optional[int]) -> None:
    """Signals are negative, a core dump's flag is no part of the number; 0 may mean that it cannot be read."""
    assert exit_status(code) == status


def test_what_a_parent_recorded() -> None:
    """With a status: ended; without one: running, as far as it knows; unknown: neither."""
    children = [
        Worker(20, "W-1", True, -9),
        Worker(30, "W-2", False),
        Worker(40, None, None),
        Worker(None, "W-3", True, 1),
    ]
    assert recorded(children) == (Ended(20, "recorded", "W-1", -9),)
    assert running(children) == {30: "W-2"}


def test_recorded_children_that_no_longer_run() -> None:
    """One is a zombie, one is nowhere in the tree, one lives; of a PID namespace of its own nothing is concluded."""
    zombie, alive = Process(30, 1, state="Z", exit_status=-15), Process(50, 1, state="S")
    traces = {1: Trace(children={30: "W-2", 40: "W-3", 50: "W-4"})}
    parent = with_ended([Process(1, state="S"), zombie, alive], traces)[0]
    assert parent.ended == (Ended(30, "zombie", "W-2", -15), Ended(40, "missing", "W-3"))
    inside = with_ended([Process(1, state="S", own_pid=7), zombie, alive], traces)[0]
    assert inside.ended == ()
