"""What a bundle says of processes that know themselves by other numbers, and see other files."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from postmortem.capture.procfs.facts import process_json
from postmortem.extract.recorded.connections import Connections
from postmortem.extract.recorded.documents import PROCESS
from postmortem.extract.recorded.raw import kept_root, own_pid, tids


def test_numbers_of_threads() -> None:
    """Their own → ours; a bundle without them, or a damaged one, has none."""
    threads = {"4711": {"comm": "a", "own_tid": 1}, "4712": {"own_tid": 2}, "4713": {"own_tid": None}, "4714": None}
    assert tids({"threads": threads}) == {1: 4711, 2: 4712}
    assert tids({"threads": {"x": {"own_tid": 1}}}) == tids({"threads": []}) == tids({}) == {}


@pytest.mark.parametrize(
    ("numbers", "own"), [([4711, 1], 1), ([4711, 20, 1], 1), ([4711], None), (None, None), ([4711, "x"], None)]
)
def test_the_own_number_of_a_process(numbers: Any, own: int) -> None:
    """The innermost namespace's; none where it is ours."""
    assert own_pid({"ns_pids": numbers}) == own


def test_the_files_of_another_root() -> None:
    """By a number, so that no bundle can name a folder elsewhere; whether or not it is there."""
    assert kept_root({"root": 1}) == "raw/roots/1"
    for number in (0, -1, None, "1", "../..", True, [1], 1.0):
        assert kept_root({"root": number}) is None


def test_a_child_that_its_parent_knows_by_another_number() -> None:
    """wait4(7) in a pid namespace means 4712 here; in ours a number is what it says, even if a child is called so inside."""
    facts: Any = {
        4711: {"ppid": 1, "ns_pids": [4711, 1]},
        4712: {"ppid": 4711, "ns_pids": [4712, 7]},
        4713: {"ppid": 4711, "ns_pids": [4713, 8, 1]},
        4714: {"ppid": 4711},
        20: {"ppid": 1, "ns_pids": [20]},
        21: {"ppid": 20, "ns_pids": [21, 7]},
    }
    known = Connections({}, facts)
    assert [known.child(4711, number) for number in (7, 8, 1, 9)] == [4712, 4713, 1, 9]
    assert known.child(20, 7) == 7


def test_a_process_beyond_the_tree_is_known_by_its_title() -> None:
    """A session of a database says what it does; who says nothing is known by name."""
    beyond = {
        "ends": {"socket:[7]": [[90, 4, "rw"], [91, 5, "rw"]]},
        "processes": {"90": {"name": "postgres", "title": "postgres: ann shop [local] idle"}, "91": {"name": "nginx"}},
    }
    known = Connections({"beyond": beyond}, {})
    assert [end.program for end in known.ends_beyond("socket:[7]")] == ["postgres: ann shop [local] idle", "nginx"]
    assert known.called(90) == "PID 90 (postgres)"


def test_all_facts_of_a_process_that_are_recorded_are_read() -> None:
    """A field that the reader does not know would be dropped without a word, as the exit status of zombies was."""
    recorded = {name: value for name, value in process_json(os.getpid()).items() if value is not None}
    recorded["exit_code"] = int(signal.SIGKILL)
    assert set(PROCESS(recorded)) == set(recorded)
