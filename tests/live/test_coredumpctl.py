"""Cores that the real systemd-coredump took, found by `coredumpctl:`, from their files and out of the journal."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple

import pytest

from . import systemd
from .systemd import Systemd

pytestmark = pytest.mark.live

LOCKED = """
import os, threading
threading.stack_size(1 << 18)
tides, moons = threading.Lock(), threading.Lock()
both = threading.Barrier(3)
def take(first, second):
    with first:
        both.wait()
        with second:  # CULPRIT
            pass
for locks in ((tides, moons), (moons, tides)):
    threading.Thread(target=take, args=locks, daemon=True).start()
both.wait()
for task in os.listdir("/proc/self/task"):
    while int(task) != os.getpid() and not open(f"/proc/self/task/{task}/syscall").read().startswith("202 "):
        pass
os.abort()
"""
FAULT = "import ctypes\ndef look():\n    ctypes.string_at(16)\nlook()\n"


class Kept(NamedTuple):
    systemd: Systemd
    locked: int  # of tide.service, the oldest
    fault: int
    inside: int  # the journal itself holds its core
    nothing: int  # Storage=none, the newest


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("systemd")
    programs = {}
    for name, text in (("tide.py", LOCKED), ("look.py", FAULT)):
        programs[name] = folder / name
        programs[name].write_text(text)
    for run in systemd.require(folder):
        python = sys.executable
        locked = run.crash(python, programs["tide.py"], signal.SIGABRT, "tide.service")
        fault = run.crash(python, programs["look.py"], signal.SIGSEGV)
        run.configure("Storage=journal")
        inside = run.crash(python, programs["tide.py"], signal.SIGABRT)
        run.configure("Storage=none")
        nothing = run.crash(python, programs["look.py"], signal.SIGSEGV)
        yield Kept(run, locked.pid, fault.pid, inside.pid, nothing.pid)


def analyze(kept: Kept, *words: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
    done = kept.systemd.run([sys.executable, "-m", "postmortem", "analyze", *words])
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def report(kept: Kept, *words: str) -> Dict[str, Any]:
    document: Dict[str, Any] = json.loads(analyze(kept, "-f", "json", *words).stdout)
    return document
