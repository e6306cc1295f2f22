"""Members of a process tree, on a /proc made of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Dict, List, Optional

import pytest

from postmortem.capture.procfs import tree
from postmortem.capture.procfs.tree import Tree


class Machine:
    """Processes as files, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start(1, 0, sid=1)

    def start(self, pid: int, ppid: int, *, pgid: int = 0, sid: int = 0, began: int = 0) -> None:
        (self.folder / str(pid)).mkdir(parents=True)
        self.write(pid, ppid, pgid=pgid, sid=sid, began=began)

    def write(self, pid: int, ppid: int, *, pgid: int = 0, sid: int = 0, began: int = 0) -> None:
        line = f"{pid} (x) S {ppid} {pgid} {sid} 0 -1 4194304 1 0 0 0 11 12 0 0 20 7 1 0 {began or pid} 0 0\n"
        (self.folder / str(pid) / "stat").write_text(line)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.folder / str(pid))

    def tree(self, root: int, **settings: int) -> Tree:
        return Tree(root, settings.get("adopted_by"), settings.get("group"), str(self.folder))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "proc")


def pids(found: Tree, without: Dict[int, None] = {}) -> List[int]:  # noqa: B006 - it is not changed
    return [member.pid for member in found.members(without)]


def test_parents_come_before_children(machine: Machine) -> None:
    """Whatever their numbers: they wrap around."""
    for pid, ppid in ((900, 1), (30, 900), (31, 30), (20, 30), (40, 1), (41, 40)):
        machine.start(pid, ppid)
    assert pids(machine.tree(900)) == [900, 30, 20, 31]


def test_who_was_of_the_tree_remains_of_it(machine: Machine) -> None:
    """A process that its parent left behind is init's, and still known; a later one with its number is not."""
    machine.start(10, 1)
    machine.start(11, 10)
    machine.start(12, 11)
    found = machine.tree(10)
    assert pids(found) == [10, 11, 12]
    machine.end(11)
    machine.write(12, 1)
    assert pids(found) == [10, 12]
    machine.write(12, 1, began=999)
    assert pids(found) == [10]


def test_who_left_before_we_came_is_known_by_the_roots_session_or_group(machine: Machine) -> None:
    """The orphan of a server that leads its session, or its job's group."""
    machine.start(10, 1, sid=10, pgid=10)
    machine.start(20, 1, sid=10, pgid=19)
    machine.start(21, 1, sid=5, pgid=10)
    machine.start(22, 1, sid=5, pgid=5)
    assert pids(machine.tree(10)) == [10, 20, 21]


def test_what_is_handed_to_us_belongs_and_our_helpers_do_not(machine: Machine) -> None:
    """The subreaper's children, without those that it started itself, and their children."""
    us = os.getpid()
    machine.start(us, 1)
    machine.start(10, us)
    machine.start(50, us)
    machine.start(51, 50)
    found = machine.tree(10, adopted_by=us, group=10)
    assert pids(found, {50: None}) == [10]
    machine.start(60, us)
    machine.start(61, 60)
    assert pids(found, {50: None}) == [10, 60, 61]


def test_strangers_are_read_once(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They never come to belong; one that takes over a stranger's number is read."""
    machine.start(10, 1)
    for pid in range(100, 200):
        machine.start(pid, 1)
    read: List[int] = []
    look = tree.look

    def noted(pid: int, proc: str) -> Optional[tree.Member]:
        read.append(pid)
        return look(pid, proc)

    monkeypatch.setattr(tree, "look", noted)
    found = machine.tree(10)
    assert pids(found) == [10]
    assert len(read) == 102
    read.clear()
    assert pids(found) == [10]
    assert read == [10]
    (machine.folder / "150").rename(machine.folder.parent / "ended")  # its inode is not given away again
    machine.start(150, 10)
    assert pids(found) == [10, 150]


def test_whose_parent_is_not_seen_is_not_written_off(machine: Machine) -> None:
    """It ended between two reads; the child is handed to us in a moment."""
    us = os.getpid()
    machine.start(us, 1)
    machine.start(10, us)
    machine.start(12, 11)
    found = machine.tree(10, adopted_by=us)
    assert pids(found) == [10]
    machine.write(12, us)
    assert pids(found) == [10, 12]


def test_another_process_with_the_roots_number_is_no_root(machine: Machine) -> None:
    """A process that ended during the capture: who has its number later is a stranger, with all that descends from it."""
    machine.start(10, 1, began=100)
    machine.start(11, 10)
    found = machine.tree(10)
    assert pids(found) == [10, 11]
    machine.end(10)
    machine.write(11, 1)
    machine.start(10, 1, began=200)
    machine.start(12, 10)
    assert pids(found) == [11]


def test_a_group_that_got_the_number_of_ours_is_not_ours(machine: Machine) -> None:
    """Once the command was waited for and nobody was left in its group, others may lead a group by that number."""
    machine.start(50, 1)
    machine.start(10, 50, pgid=10, sid=10)
    machine.start(11, 10, pgid=11, sid=11)
    found = machine.tree(10, adopted_by=50, group=10)
    assert pids(found) == [10, 11]
    machine.end(10)
    machine.write(11, 50, pgid=11, sid=11)
    machine.start(20, 1, pgid=10, sid=10)
    assert pids_after(found) == [11]
    machine.start(
        10, 1, pgid=10, sid=10, began=10
    )  # not even one that began at the same time, when ours was waited for
    assert pids_after(found) == [11]


def test_a_group_is_ours_as_long_as_somebody_was_in_it_all_the_time(machine: Machine) -> None:
    """Its number is not given away meanwhile, so that newcomers in it are of the tree; a later process with the number of
    the one that was in it proves nothing."""
    machine.start(10, 1, pgid=10, sid=10)
    machine.start(11, 10, pgid=10, sid=10, began=11)
    found = machine.tree(10, group=10)
    assert pids(found) == [10, 11]
    machine.end(10)
    machine.write(11, 1, pgid=10, sid=10, began=11)
    machine.start(12, 1, pgid=10, sid=10)
    assert pids_after(found) == [11, 12]
    for pid in (11, 12):
        machine.end(pid)
    machine.start(11, 1, pgid=10, sid=10, began=99)
    assert pids_after(found) == []


def pids_after(found: Tree) -> List[int]:
    """When the root has been waited for."""
    return [member.pid for member in found.members((), ended=True)]
