"""The observation window: what it costs is bounded, and whoever comes late is watched too. Its subject is this process."""

from __future__ import annotations

import os
import threading
import time
from typing import List

import pytest

from postmortem.capture.observe import window
from postmortem.capture.procfs import counters
from postmortem.capture.procfs.cgroups import Mount, folder, mounts, places

US = os.getpid()


class Clock:
    """Time that passes only where it is told to, so that a slow machine is a matter of arithmetic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for clock in ("monotonic", "thread_time"):
            monkeypatch.setattr(time, clock, lambda: self.now)

    def pause(self, seconds: float) -> bool:
        self.now += seconds
        return True


def test_looks_are_spread_over_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where looking costs nothing, there are as many as were meant, give or take one."""
    clock = Clock(monkeypatch)
    seen = window.Window([US], 3.0)
    seen.observe(clock.pause)
    states = seen.watches[US].threads[threading.get_native_id()].states
    assert abs(sum(states.values()) - (window._LOOKS + 1)) <= 1
    assert clock.now == pytest.approx(3.0)


@pytest.mark.parametrize("period", [1.0, 2.0, 0.5, 3.0])
def test_no_rhythm_is_seen_in_one_phase_alone(monkeypatch: pytest.MonkeyPatch, period: float) -> None:
    """What a timer stops and continues at the very pace of the looks, or a multiple, is found in both states."""
    clock, step = Clock(monkeypatch), 3.0 / window._LOOKS
    phases: List[bool] = []
    monkeypatch.setattr(
        window.ProcessWatch, "look", lambda _watch: phases.append(clock.now / (period * step) % 1 < 0.5)
    )
    window.Window([US], 3.0).observe(clock.pause)
    assert 0.3 < sum(phases) / len(phases) < 0.7


def test_costly_looks_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes 0.1 s is followed by a rest ten times as long, whoever of the processes it was spent on."""
    clock = Clock(monkeypatch)
    looks: List[float] = []

    def look(_watch: window.ProcessWatch) -> None:
        looks.append(clock.now)
        clock.now += 0.1

    monkeypatch.setattr(window.ProcessWatch, "look", look)
    seen = window.Window([US], 3.0)
    seen.observe(clock.pause)
    assert len(looks) <= 4
    assert looks[1] - looks[0] == pytest.approx(1.1)


def test_what_takes_too_long_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first processes are watched, the others are counted; nothing is tried on them."""
    clock = Clock(monkeypatch)
    totals = counters.totals

    def slow(path: str, delays: bool) -> object:
        clock.now += 0.15
        return totals(path, delays)

    monkeypatch.setattr(counters, "totals", slow)
    seen = window.Window([US, 1, 2, 3], 1.0)
    assert list(seen.watches)[:1] == [US]
    assert seen.left_out and seen.left_out == [pid for pid in (1, 2, 3) if pid not in seen.watches]
    assert f"{len(seen.left_out)} of 4 processes" in seen.shortcoming()


def test_threads_without_number_are_watched_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones, which are the oldest, and it is said that there are more."""
    before = len(os.listdir(f"/proc/{US}/task"))  # whoever runs the tests may have threads of his own
    monkeypatch.setattr(window, "_MOST_THREADS", before + 2)
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        seen = window.Window([US], 0.01)
        seen.observe(lambda _seconds: True)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(seen.watches[US].threads) == before + 2
    assert "some threads" in seen.shortcoming()
    assert window.Window([US], 0.01).shortcoming() == ""


def test_a_process_that_begins_meanwhile_is_watched_from_then_on() -> None:
    """All that it did, it did in the window."""
    read, write = os.pipe()
    tree = [US]

    def pause(_seconds: float) -> bool:
        if len(tree) == 1:
            child = os.fork()
            if child == 0:
                os.close(write)
                os.read(read, 1)
                os._exit(0)
            tree.append(child)
        return True

    seen = window.Window([US], 0.2, lambda: tree)
    try:
        seen.observe(pause)
    finally:
        os.close(write)
        os.waitpid(tree[1], 0)
        os.close(read)
    found = seen.watches[tree[1]].as_json()
    assert found["minor_faults"] > 0
    assert found["threads"][str(tree[1])]["voluntary_switches"] >= 1
    assert str(tree[1]) in seen.machine_json()["processes"]


def test_counters_of_a_thread() -> None:
    """They agree with what the interpreter knows of itself."""
    path = f"/proc/{US}/task/{threading.get_native_id()}"
    before = counters.totals(path, True)
    assert before is not None
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    with open(os.devnull, "wb", buffering=0) as stream:
        for _ in range(10):
            stream.write(b"x")
    after = counters.totals(path, True)
    assert after is not None
    grown = after.since(before)
    assert grown["cpu_s"] is not None and 0.04 < grown["cpu_s"] < 5
    assert grown["write_calls"] is None or grown["write_calls"] >= 10
    assert counters.totals("/proc/0/task/0", True) is None


def test_status_without_switches_is_unknown() -> None:
    """Never zero."""
    assert counters._switches(b"Name:\tx\n") == (None, None)
    assert counters._switches(b"Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n") == (5, 7)
    assert counters._switches(b"Name:\tx\nvoluntary_ctxt_switches:\t5\n") == (None, None)


MOUNTINFO = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
37 31 0:34 /docker/abc /sys/fs/cgroup/freezer rw master:5 - cgroup cgroup rw,freezer
41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw shared:2 - cgroup2 cgroup2 rw,nsdelegate
42 31 0:38 /deep /mnt rw - cgroup2 cgroup2 rw
"""


def test_where_the_files_of_a_group_lie() -> None:
    """Hybrid mounts; a container that sees its own part alone; a name with a space; a group outside of what is seen."""
    found = mounts(MOUNTINFO)
    assert found == {
        "cpu": Mount("/", "/sys/fs/cgroup/cpu,cpuacct"),
        "freezer": Mount("/docker/abc", "/sys/fs/cgroup/freezer"),
        "": Mount("/", "/sys/fs/cgroup/uni fied"),
    }
    lines = ["5:cpu,cpuacct:/a:b", "6:freezer:/docker/abc/x", "7:devices:/y", "1:name=systemd:/z", "0::/../other"]
    of = dict(places(lines))
    assert of == {"cpu": "/a:b", "freezer": "/docker/abc/x", "": "/../other"}
    assert folder(found["cpu"], of["cpu"]) == "/sys/fs/cgroup/cpu,cpuacct/a:b"
    assert folder(found["freezer"], of["freezer"]) == "/sys/fs/cgroup/freezer/x"
    assert folder(found["freezer"], "/docker/abcdef") is None
    assert folder(found[""], of[""]) is None
