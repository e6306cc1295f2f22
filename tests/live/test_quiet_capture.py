"""Priority of diagnoses: low beside a target that goes on, never low for a capture that stops one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

from ..support.capturing import Captured, finished, start

pytestmark = pytest.mark.live

#: The diagnosis only says how it runs, and how the process that captures does; as if no more threads were busy than there
#: are CPUs, because how nice it is depends on that (``quiet.niceness``).
DRIVER = """
import json, os, sys
from postmortem import quiet
from postmortem.__main__ import capture
quiet._running = int
def manner(pid):
    return [os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid), len(os.sched_getaffinity(pid))]
ours = os.getpid()
def diagnose(path, stream, **_):
    stream.write("MANNER " + json.dumps({"diagnosis": manner(0), "capture": manner(ours)}) + chr(10))
sys.exit(capture(sys.argv[1:], diagnose))
"""
SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def _manners(done: Captured) -> List[Any]:
    lines = [line.split(" ", 1)[1] for line in done.stderr.splitlines() if line.startswith("MANNER ")]
    assert lines, done.stderr
    return [json.loads(line) for line in lines]


def _is_quiet(manner: List[Any]) -> bool:
    policy, nice, cpus = manner
    return cpus == 1 and (policy == os.SCHED_IDLE or (policy == os.SCHED_BATCH and nice >= 10))


def _capture_sleeper(folder: Path, *words: str) -> Captured:
    with subprocess.Popen(SLEEPER, stdout=subprocess.PIPE) as target:
        try:
            assert target.stdout is not None
            target.stdout.readline()
            process = start(
                "--pid", str(target.pid), "-o", str(folder / "b"), "--observe", "0.1", *words, driver=DRIVER
            )
            return finished(process, folder / "b")
        finally:
            target.kill()


def test_a_process_that_goes_on_is_diagnosed_quietly(tmp_path: Path) -> None:
    """--pid leaves its target running: what comes after the release gives way to it."""
    assert all(_is_quiet(manner["diagnosis"]) for manner in _manners(_capture_sleeper(tmp_path)))


def test_a_series_captures_as_before_and_diagnoses_quietly(tmp_path: Path) -> None:
    """A capture that will stop the target again must not wait for a CPU; only the child that diagnoses is quiet."""
    manners = _manners(_capture_sleeper(tmp_path, "--repeat", "2", "--every", "1"))
    assert all(_is_quiet(manner["diagnosis"]) for manner in manners)
    assert not any(_is_quiet(manner["capture"]) for manner in manners)


def test_a_command_left_running_is_diagnosed_quietly(tmp_path: Path) -> None:
    """--on-timeout leave is as considerate as --pid."""
    words = ["-t", "0.5", "--on-timeout", "leave", "-o", str(tmp_path / "b"), "--observe", "0.1"]
    deaf = [sys.executable, "-c", "import os, time; os.closerange(0, 3); time.sleep(600)"]  # our pipe ends without it
    done = finished(start(*words, *deaf, driver=DRIVER), tmp_path / "b")
    os.kill(done.root, 9)
    assert all(_is_quiet(manner["diagnosis"]) for manner in _manners(done))


def test_after_the_end_of_the_tree_nobody_is_left_to_give_way_to(tmp_path: Path) -> None:
    """Under -t the diagnosis has the machine for itself, and a budget to keep."""
    words = ["-t", "0.5", "-o", str(tmp_path / "b"), "--observe", "0.1"]
    done = finished(start(*words, *SLEEPER, driver=DRIVER), tmp_path / "b")
    before = [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), len(os.sched_getaffinity(0))]
    assert [manner["diagnosis"] for manner in _manners(done)] == [before]
