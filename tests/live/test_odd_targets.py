"""Targets as users have them: without their files, embedded, several in one, made and unmade; what is said of them is true,
and what cannot be said is a gap with a remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from postmortem.evidence import Process
from postmortem.extract.cores import from_core

from .interpreters import Program, matrix
from .test_cores_memory import kernel_core

pytestmark = pytest.mark.live

LOCKED = """
import sys, threading, time
lock = threading.Lock()
def waiter():
    lock.acquire()  # wanted
def main():
    with lock:
        threading.Thread(target=waiter, name="waiter", daemon=True).start()
        time.sleep(0.2)
        print("ready", flush=True)
        sys.stdin.read()
main()
"""


def _stacks(process: Process) -> Dict[str, List[Tuple[str, object, str]]]:
    return {t.name or str(t.tid): [(f.file, f.line, f.function) for f in t.python] for t in process.threads}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are started, and where the kernel leaves their cores."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("python", matrix())
def test_python_stacks_need_no_file(python: object, folder: Path) -> None:
    """An interpreter that was upgraded while it ran has left a core, and no file of its build is anywhere: threads, names and
    frames are those that are read with the files; that native stacks are poor is a gap with a remedy."""
    with Program(os.fspath(python), LOCKED, folder) as program:  # type: ignore[call-overload]
        core = kernel_core(program, folder)
    whole, bare = from_core(core), from_core(core, sysroot=folder / "nothing is here")
    here, there = whole.processes[0], bare.processes[0]
    assert next(iter(_stacks(here)["waiter"]))[2] == "waiter"
    assert _stacks(there) == _stacks(here)
    assert there.python == here.python
    assert {t.tid: t.wait.kind for t in there.threads if t.wait} == {t.tid: t.wait.kind for t in here.threads if t.wait}
    assert [gap.remedy for gap in bare.gaps if gap.source == "gdb"]
