"""A verdict by a certain time, for a tree with more processes than there is time for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from postmortem import evidence
from postmortem.extract.assemble import schedule
from postmortem.native import find_gdb
from postmortem.native.locate import VARIABLE
from tests.support.bundles import evidence_of

from ..support.capturing import HANG_S, environment
from ..support.inwords import reason, remedy

pytestmark = pytest.mark.live

CHILDREN = 12
FORKS = """
import os, sys, threading
lock = threading.Lock()
lock.acquire()
children = []
for _number in range(int(sys.argv[1])):
    pid = os.fork()
    if not pid:
        lock.acquire()
    children.append(pid)
os.waitpid(children[0], 0)
"""


def _capture(bundle: Path, children: int, *words: str) -> None:
    """Run a capture with its diagnosis to the end, which takes less than HANG_S."""
    command = [
        sys.executable,
        "-m",
        "postmortem",
        "capture",
        "-t",
        "1.5",
        "--observe",
        "0.2",
        "-o",
        str(bundle),
        *words,
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", FORKS, str(children)],
        env=environment(),
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 124, done.stderr


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root and its children, captured and diagnosed without hurry."""
    path = tmp_path_factory.mktemp("budget") / "bundle"
    _capture(path, CHILDREN)
    return path


def _kinds(found: evidence.Evidence) -> Counter[str]:
    """How many processes have which stacks."""
    kinds: Counter[str] = Counter()
    for process in found.processes:
        threads = process.threads
        kinds["native" if any(t.native for t in threads) else "python" if process.python else "bare"] += 1
    return kinds


def test_with_time_enough_every_process_has_both_sides(bundle: Path) -> None:
    """And no gap speaks of a budget."""
    found = evidence.decode((bundle / "evidence.json").read_bytes())
    assert _kinds(found) == {"native": CHILDREN + 1}
    assert not [gap for gap in found.gaps if "budget" in reason(gap)]


def test_with_some_time_gdb_is_left_out_of_the_rest_and_one_gap_says_so(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python side costs milliseconds: all of them have it."""
    monkeypatch.setattr(schedule, "_SHORTEST_GDB_S", 2 * HANG_S)  # no gdb is started for less
    found = evidence_of(bundle, until=time.monotonic() + HANG_S)
    assert _kinds(found) == {"python": CHILDREN + 1}
    (gap,) = [gap for gap in found.gaps if "budget" in reason(gap)]
    assert (gap.source, remedy(gap)) == ("gdb", f"`postmortem analyze {bundle}` takes all the time it needs")
    assert f"and {CHILDREN + 1 - 8} more" in gap.subject


def test_without_any_time_the_root_is_read_and_nobody_is_forgotten(bundle: Path) -> None:
    """A verdict that comes late still has something to stand on; the others are there as /proc shows them."""
    found = evidence_of(bundle, until=time.monotonic())
    assert _kinds(found) == {"python": 1, "bare": CHILDREN}
    assert found.processes[0].python is not None
    assert all(process.argv and process.threads and process.ppid for process in found.processes)
    assert sorted(gap.source for gap in found.gaps if "budget" in reason(gap)) == ["core", "gdb"]


def _alone(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> evidence.Evidence:
    with monkeypatch.context() as patched:
        patched.setattr(schedule, "together", lambda processes: 1)
        return evidence_of(bundle)


def test_processes_that_share_a_gdb_have_the_stacks_that_they_have_alone(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cores beside each other are not mixed up: threads, frames, names and lines are the same."""
    assert evidence_of(bundle).processes == _alone(bundle, monkeypatch).processes


def test_with_a_gdb_that_opens_one_core_at_a_time_every_process_still_has_its_stacks(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before gdb 10 there are no cores beside each other: what was missed is had alone, without a gap."""
    old = tmp_path / "gdb"
    old.write_text(f'#!/bin/sh\nunset POSTMORTEM_STACKS_NEXT\nexec {find_gdb()} "$@"\n')
    old.chmod(0o755)
    expected = _alone(bundle, monkeypatch)
    monkeypatch.setenv(VARIABLE, str(old))
    found = evidence_of(bundle)
    assert found.processes == expected.processes
    assert found.gaps == expected.gaps


def test_the_order_of_processes_is_the_trees(bundle: Path) -> None:
    """The order in which processes were examined does not show in the evidence."""
    hurried, leisurely = (evidence_of(bundle, until=until) for until in (time.monotonic() + 1.0, None))
    assert [p.pid for p in hurried.processes] == [p.pid for p in leisurely.processes]
    assert hurried.processes[1:] == tuple(sorted(hurried.processes[1:], key=lambda p: p.pid))


def test_a_capture_keeps_its_budget(tmp_path: Path) -> None:
    """Sixty processes would keep gdb busy for twice as long; the bundle is whole, and the verdict the same."""
    _capture(tmp_path / "b", 60, "--budget", "6")
    found = evidence.decode((tmp_path / "b" / "evidence.json").read_bytes())
    assert len(found.processes) == 61
    native = [any(thread.native for thread in process.threads) for process in found.processes]
    assert native[0] or not any(native), "the root comes first"
    assert (tmp_path / "b" / "report.json").is_file()
    assert all(native) != any("budget" in reason(gap) for gap in found.gaps), "who was left out is told"
