"""When a tree counts as stalled: on a /proc of our own making."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import pytest

from postmortem.capture.procfs import parsers
from postmortem.capture.procfs import tree as process_tree
from postmortem.capture.run import triggers

SECOND = os.sysconf("SC_CLK_TCK")  # in the ticks of /proc


class FakeTree:
    """Processes with counters; ``reap`` and ``vanish`` end one as the kernel does. It is the command's clock too."""

    def __init__(self) -> None:
        self.time = 100.0
        self.helpers: Dict[int, Optional[int]] = {}
        self.us = os.getpid()
        self.parents: Dict[int, int] = {}
        self.ticks: Dict[int, int] = {self.us: 0}
        self.of_children: Dict[int, int] = {self.us: 0}
        self.wchar: Dict[int, int] = {self.us: 0}
        self.fetched: Dict[int, int] = {self.us: 0}
        self.hidden: Set[int] = set()
        self.runnable: Set[int] = set()
        self.ends_when_read: Optional[Tuple[int, Callable[[], None]]] = None

    def now(self) -> float:
        return self.time

    def add(self, pid: int, parent: Optional[int] = None) -> None:
        self.parents[pid] = parent or self.us
        self.ticks[pid] = self.of_children[pid] = self.wchar[pid] = self.fetched[pid] = 0

    def reap(self, pid: int) -> None:
        """It is waited for: its counters become its parent's."""
        parent = self.parents[pid]
        self.of_children[parent] += self.ticks[pid] + self.of_children[pid]
        self.wchar[parent] += self.wchar[pid]
        self.fetched[parent] += self.fetched[pid]
        self.vanish(pid)

    def vanish(self, pid: int) -> None:
        """Nobody waits for it: what it did is lost."""
        del self.parents[pid]

    # ------------------------------------------------------------------ as the reader sees it

    def children_of(self, pid: int) -> List[int]:
        return sorted(child for child, parent in self.parents.items() if parent == pid)

    def read(self, path: str) -> bytes:
        _slash, _proc, name, kind = path.split("/")
        pid = self.us if name == "self" else int(name)
        if self.ends_when_read is not None and self.ends_when_read[0] == pid:
            self.ends_when_read[1]()
            self.ends_when_read = None
        if not self.is_there(pid):
            raise FileNotFoundError(path)
        if kind == "io":
            if pid in self.hidden:
                raise PermissionError(path)
            return f"rchar: 7\nwchar: {self.wchar[pid]}\nsyscr: 1\nread_bytes: {self.fetched[pid]}\n".encode()
        state = "R" if pid in self.runnable else "S"
        return f"{pid} (a b) {state} 1 1 1 0 -1 0 0 0 0 0 {self.ticks[pid]} 0 {self.of_children[pid]} 0 20 0".encode()

    def is_there(self, pid: int) -> bool:
        return pid == self.us or pid in self.parents


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> FakeTree:
    """One command, 10, with a child, 11."""
    fake = FakeTree()
    fake.add(10)
    fake.add(11, 10)
    monkeypatch.setattr(parsers, "read", fake.read)
    monkeypatch.setattr(process_tree, "children_of", fake.children_of)
    monkeypatch.setattr(os.path, "isdir", lambda path: fake.is_there(int(path.split("/")[2])))
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)  # looking takes no time here
    return fake


def _looks(stall: triggers.Stall, tree: FakeTree, count: int) -> List[bool]:
    """One a second."""
    found = []
    for _ in range(count):
        tree.time += 1.0
        found.append(stall.look())
    return found


def test_nothing_happens_for_so_long(tree: Any) -> None:
    """True with the look that completes the time, not before."""
    assert _looks(triggers.Stall(tree, 10.0), tree, 11) == [False] * 9 + [True, True]


@pytest.mark.parametrize("counter", ["wchar", "fetched", "of_children", "ticks"])
def test_progress_of_any_process_begins_the_time_anew(tree: Any, counter: str) -> None:
    """A byte written, or CPU beyond what looking at a clock takes."""
    stall = triggers.Stall(tree, 10.0)
    assert not any(_looks(stall, tree, 8))
    getattr(tree, counter)[11] += 1 if counter in ("wchar", "fetched") else SECOND // 2
    assert _looks(stall, tree, 11) == [False] * 10 + [True]


@pytest.mark.parametrize(("share", "stalled"), [(0.002, True), (0.02, False)])
def test_a_little_cpu_is_housekeeping(tree: Any, share: float, stalled: bool) -> None:
    """A thread that looks at a clock twenty times a second is no progress; two per cent of a core are."""
    stall = triggers.Stall(tree, 60.0)
    found = []
    for second in range(1, 80):
        tree.ticks[11] = int(second * share * SECOND)
        found += _looks(stall, tree, 1)
    assert any(found) is stalled


def test_a_child_that_is_waited_for_is_no_progress(tree: Any) -> None:
    """What it had done became its parent's: the parent did nothing."""
    tree.wchar[11], tree.ticks[11] = 5000, 50 * SECOND
    stall = triggers.Stall(tree, 10.0)
    assert not any(_looks(stall, tree, 4))
    tree.reap(11)
    assert not any(_looks(stall, tree, 4))
    tree.reap(10)
    assert _looks(stall, tree, 2) == [False, True]


def test_a_child_that_nobody_waits_for_hides_no_progress(tree: Any) -> None:
    """The sum falls with it; what is written afterwards counts although it is less than that."""
    tree.wchar[11] = 5000
    stall = triggers.Stall(tree, 10.0)
    tree.vanish(11)
    assert not any(_looks(stall, tree, 8))
    tree.wchar[10] += 1
    assert _looks(stall, tree, 11) == [False] * 10 + [True]


def test_children_that_come_and_go_are_no_progress(tree: Any) -> None:
    """A shell that starts `sleep 1` for ever: neither the new ones nor those that ended are work."""
    stall = triggers.Stall(tree, 10.0)
    found = []
    for pid in range(20, 40):
        tree.add(pid, 10)
        found += _looks(stall, tree, 1)
        tree.reap(pid)
    assert found[9]


def test_what_an_ended_process_did_last_counts(tree: Any) -> None:
    """Also of one that was handed to us: it wrote and ended between two looks."""
    tree.add(12)
    stall = triggers.Stall(tree, 10.0)
    assert not any(_looks(stall, tree, 8))
    tree.wchar[12] += 1
    tree.reap(12)
    assert _looks(stall, tree, 11) == [False] * 10 + [True]


def test_a_process_that_is_waited_for_in_the_midst_of_a_look(tree: Any) -> None:
    """Its parent was read before and shows what it inherited with the next look only: that is no progress."""
    tree.wchar[11] = 5000
    stall = triggers.Stall(tree, 10.0)
    tree.ends_when_read = (11, lambda: tree.reap(11))
    assert not any(_looks(stall, tree, 9))
    assert tree.ends_when_read is None
    assert _looks(stall, tree, 1) == [True]


def test_what_is_lost_each_time_does_not_hide_what_is_written_each_time(tree: Any) -> None:
    """A server whose children write and are waited for by nobody: the sum stays where it is, and yet there is work."""
    tree.wchar[11] = 5000
    stall = triggers.Stall(tree, 10.0)
    for pid in range(20, 40):
        tree.add(pid, 10)
        tree.wchar[pid] = 5000
        tree.vanish(11 if pid == 20 else pid - 1)
        assert _looks(stall, tree, 1) == [False]


def test_a_gap_in_our_own_running_is_none_of_the_commands(tree: Any) -> None:
    """A machine that slept for an hour, or a postmortem that was stopped, has not watched."""
    stall = triggers.Stall(tree, 10.0)
    tree.time += 3600.0
    assert not stall.look()
    assert not any(_looks(stall, tree, 7))


def test_waiting_for_a_core_counts_neither_way(tree: Any) -> None:
    """A program that gets no core to start on is not stalled; the time before and after is added up."""
    stall = triggers.Stall(tree, 10.0)
    assert not any(_looks(stall, tree, 5))
    tree.runnable.add(11)
    assert not any(_looks(stall, tree, 50))
    tree.runnable.clear()
    assert _looks(stall, tree, 5) == [False] * 4 + [True]


def test_what_may_not_be_read_is_named(tree: Any) -> None:
    """CPU time alone judges such a process, and the capture can say so."""
    tree.hidden.add(11)
    stall = triggers.Stall(tree, 10.0)
    _looks(stall, tree, 1)
    assert stall.unreadable == {11}


def test_helpers_of_ours_are_no_part_of_the_tree(tree: Any) -> None:
    """A diagnosis that runs beside the command works for us."""
    tree.add(30)
    tree.helpers[30] = None
    stall = triggers.Stall(tree, 10.0)
    tree.wchar[30] = 10**6
    assert _looks(stall, tree, 10)[-1]


def test_looks_are_few(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten in the time without progress, and fewer where a look takes long: they may use half a per cent of the time."""
    assert 0.5 <= triggers.Stall(tree, 5.0).step_s < 1.0
    assert 10.0 <= triggers.Stall(tree, 3600.0).step_s < 11.0
    moments = iter((0.0, 0.5))
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    assert triggers.Stall(tree, 5.0).step_s == 100.0
