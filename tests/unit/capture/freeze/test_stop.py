"""How long the freezer waits, and for whom: the kernel's side played by a fake."""

from __future__ import annotations

import errno
import itertools
from typing import Dict, List, Optional

import pytest

from postmortem import signalling
from postmortem.capture.freeze import ptrace, stop
from postmortem.capture.procfs import cgroups, parsers

MACHINE = "x86_64"
#: futex, as /proc/PID/task/TID/syscall has it.
WAITS = b"202 0x10 0x80 0x0 0x0 0x0 0x0 0x7ffe00 0x4000\n"


class Clock:
    """A clock that stands still but for sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class Kernel:
    """Processes by number, each with its threads; who answers to a stop, and who may be traced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, threads: Dict[int, List[int]]) -> None:
        self.threads = threads
        self.deaf: Dict[int, str] = {}  # tid → its state letter; it does not stop
        self.stopped_by: Dict[int, int] = {}  # tid → signal
        self.forbidden: List[int] = []
        self.frozen: List[int] = []
        self.children: Dict[int, List[int]] = {}
        self.syscalls: Dict[int, bytes] = {}
        self.seized: List[int] = []
        self.let_go: List[int] = []
        self.tracer = 0
        for name in ("seize", "interrupt", "detach", "poll_stop", "register_set"):
            monkeypatch.setattr(ptrace, name, getattr(self, name))
        monkeypatch.setattr(parsers, "threads", self.threads_of)
        monkeypatch.setattr(parsers, "stat", self.stat)
        monkeypatch.setattr(parsers, "status", lambda path: {"TracerPid": str(self.tracer)})
        monkeypatch.setattr(parsers, "read", lambda path: self.syscalls.get(int(path.split("/")[4]), b"running\n"))
        monkeypatch.setattr(stop, "time", Clock())
        monkeypatch.setattr(cgroups, "own_mounts", dict)
        monkeypatch.setattr(cgroups, "is_frozen", lambda pid, mounts: pid in self.frozen)
        monkeypatch.setattr(stop, "_children", lambda pid: self.children.get(pid, []))

    def threads_of(self, pid: int) -> List[int]:
        if pid not in self.threads:
            raise FileNotFoundError(pid)
        return self.threads[pid]

    def stat(self, path: str) -> parsers.Stat:
        tid = int(path.rsplit("/", 1)[1])
        return parsers.parse_stat(f"{tid} (x) {self.deaf.get(tid, 'S')} {'0 ' * 50}".encode())

    def seize(self, tid: int) -> None:
        if tid in self.forbidden:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        self.seized.append(tid)

    def interrupt(self, tid: int) -> None:
        assert tid in self.seized

    def detach(self, tid: int, signal: int) -> None:
        self.let_go.append(tid)

    def poll_stop(self, tid: int) -> Optional[ptrace.Stop]:
        assert tid in self.seized, "a child of ours that is not traced would be collected"
        return None if tid in self.deaf else ptrace.Stop(0, False, self.stopped_by.get(tid, 0))

    def register_set(self, tid: int, kind: int) -> bytes:
        return bytes(27 * 8)


def stopped(freezer: stop.Freezer, *pids: int, also_children: bool = True) -> float:
    """Stop the processes; return the seconds that it slept."""
    began = vars(stop)["time"].monotonic()
    freezer.stop(dict.fromkeys(pids), also_children)
    return float(vars(stop)["time"].monotonic() - began)


def test_a_sleeper_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """State D: the others stand still meanwhile. What /proc tells of it is its registers, and it is let go like all."""
    kernel = Kernel(monkeypatch, {10: [10, 11]})
    kernel.deaf, kernel.syscalls = {11: "D"}, {11: WAITS}
    freezer = stop.Freezer(MACHINE)
    assert stopped(freezer, 10) < stop.PATIENCE_S / 2
    first, second = freezer.registers(10)
    assert (first.unstopped, second.unstopped) == (None, "uninterruptible sleep")
    assert second.general[15 * 8] == 202
    assert freezer.unstoppable(10) == []
    kernel.deaf = {}  # it has woken up, and stopped
    freezer.release()
    assert sorted(kernel.let_go) == [10, 11]


def test_a_busy_thread_gets_all_patience_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs and does not stop is left out after a while: nothing is known of it."""
    kernel = Kernel(monkeypatch, {10: [10, 11]})
    kernel.deaf = {11: "R"}
    freezer = stop.Freezer(MACHINE)
    assert stop.PATIENCE_S < stopped(freezer, 10) < stop.PATIENCE_S * 3
    assert [each.tid for each in freezer.registers(10)] == [10]
    assert freezer.unstoppable(10) == [11]


def test_who_was_stopped_before_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which signal; of the others there is nothing to tell."""
    kernel = Kernel(monkeypatch, {10: [10], 20: [20]})
    kernel.stopped_by = {20: 19}
    freezer = stop.Freezer(MACHINE)
    stopped(freezer, 10, 20)
    assert freezer.stopped_by == {20: 19}


def test_a_number_that_was_given_anew_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has it since: it is not stopped for a moment, and has no registers in anybody's core."""
    kernel = Kernel(monkeypatch, {10: [10], 20: [20]})
    monkeypatch.setattr(signalling, "begun", {10: 111, 20: 999}.get)
    freezer = stop.Freezer(MACHINE)
    freezer.stop({10: 111, 20: 222}, also_children=True)
    assert kernel.seized == [10]
    assert freezer.pids == [10]


def test_a_frozen_group_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ptrace at all, no wait, no pause; its children are found all the same."""
    kernel = Kernel(monkeypatch, {10: [10], 20: [20]})
    kernel.frozen, kernel.children, kernel.syscalls = [10], {10: [20]}, {10: WAITS}
    freezer = stop.Freezer(MACHINE)
    assert stopped(freezer, 10) < 1
    assert kernel.seized == [20]
    assert freezer.registers(10)[0].unstopped == "its control group is frozen"
    freezer.release()
    assert kernel.let_go == [20]


def test_what_may_not_be_traced_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its memory open its waiting threads are had; with none waiting, nothing is, and why is kept."""
    kernel = Kernel(monkeypatch, {10: [10, 11], 30: [30]})
    kernel.forbidden, kernel.syscalls = [10, 11, 30], {11: WAITS}
    freezer = stop.Freezer(MACHINE)
    stopped(freezer, 10, 30)
    assert [(each.tid, each.unstopped) for each in freezer.registers(10)] == [(11, stop.REFUSED)]
    assert freezer.unstoppable(10) == [10]
    assert freezer.registers(30) == []
    assert list(freezer.refused) == [30]
    freezer.release()
    assert (kernel.let_go, freezer.pause_s) == ([], 0.0)


def test_what_another_debugger_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its registers are that debugger's business."""
    kernel = Kernel(monkeypatch, {10: [10]})
    kernel.forbidden, kernel.tracer, kernel.syscalls = [10], 99, {10: WAITS}
    freezer = stop.Freezer(MACHINE)
    stopped(freezer, 10)
    assert list(freezer.refused) == [10]
    assert freezer.pids == []


def test_orphans_are_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that were handed to us, and their children; each is looked at until it stands still, and no longer."""
    kernel = Kernel(monkeypatch, {10: [10], 20: [20], 21: [21]})
    kernel.children = {20: [21]}
    looks: List[int] = []

    def children(pid: int) -> List[int]:
        looks.append(pid)
        return kernel.children.get(pid, [])

    monkeypatch.setattr(stop, "_children", children)
    freezer = stop.Freezer(MACHINE)
    freezer.adopted = lambda: [20]
    stopped(freezer, 10)
    assert freezer.pids == [10, 20, 21]
    assert max(looks.count(pid) for pid in freezer.pids) <= 2
    assert not freezer.overtaken


def test_a_tree_that_breeds_faster_than_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is an end to it, and it is told."""
    kernel = Kernel(monkeypatch, {pid: [pid] for pid in range(10, 100_000)})
    numbers = itertools.count(11)
    freezer = stop.Freezer(MACHINE)
    freezer.adopted = lambda: [next(numbers)]
    stopped(freezer, 10)
    assert freezer.overtaken
    assert len(kernel.seized) < 1000
    freezer.release()
    assert sorted(kernel.let_go) == sorted(kernel.seized)
