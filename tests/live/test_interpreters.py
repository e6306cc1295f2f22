"""Every interpreter of the matrix is what the table says, and its processes and cores look like any other's."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Set

import pytest

from postmortem.native import find_gdb

from ..interpreters.wanted import Interpreter
from ..support.capturing import finished, start
from ..support.interpreters import Program, matrix
from ..support.required import needs_gdb

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix(every=True, ctypes=True))]

SELF = """
import json, os, subprocess, sys, sysconfig
child = subprocess.run([sys.executable, "-c", "import sys; print(sys.version)"], stdout=subprocess.PIPE, text=True)
other = subprocess.run(["/bin/sh", "-c", "echo other"], stdout=subprocess.PIPE, text=True)
print(json.dumps({
    "version": sys.version_info[:2], "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"), "child": child.stdout.strip() == sys.version, "other": other.stdout,
}))
"""

DEADLOCK = """
import asyncio, ctypes, os, socket, sys, threading
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER_ANY: Yama lets gdb attach
one, two = threading.Lock(), threading.Lock()
both = threading.Barrier(3)
def take(first, second):
    with first:
        both.wait()
        with second:
            pass
for pair in ((one, two), (two, one)):
    threading.Thread(target=take, args=pair, daemon=True).start()
both.wait()
print("ready", flush=True)
one.acquire()
"""


def mapped(pid: int) -> Set[str]:
    """The files whose code that process has mapped."""
    lines = (line.split(None, 5) for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
    return {words[5] for words in lines if len(words) == 6 and "x" in words[1] and words[5].startswith("/")}


def test_it_is_what_the_table_says(python: Interpreter, tmp_path: Path) -> None:
    """Version and build are right; it starts itself and the machine's own programs, which need their own libc."""
    done = subprocess.run([python, "-c", SELF], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {
        "version": list(python.version),
        "free_threaded": python.free_threaded,
        "debug": python.debug,
        "child": True,
        "other": "other\n",
    }


def test_its_processes_are_ordinary(python: Interpreter, tmp_path: Path) -> None:
    """The executable is the interpreter, not a loader; every mapping has its file; there is one libc, beside its ld.so."""
    with Program(python, DEADLOCK, tmp_path, env={"MALLOC_ARENA_MAX": "1"}) as program:
        assert os.readlink(f"/proc/{program.pid}/exe") == os.path.realpath(python)
        files = mapped(program.pid)
        assert all(os.access(file, os.R_OK) for file in files), files
        (libc,) = [file for file in files if Path(file).name.startswith("libc.so")]
        (loader,) = [file for file in files if Path(file).name.startswith("ld-linux")]
        assert Path(libc).parent == Path(loader).parent


@needs_gdb
def test_gdb_opens_its_cores(python: Interpreter, tmp_path: Path) -> None:
    """A core of two threads that wait for each other: gdb finds all three threads, and unwinds both to their start."""
    found = find_gdb()
    assert found is not None, "gdb is missing, and so is the wheel gdb-for-pwndbg: apt-get install gdb"
    with Program(python, DEADLOCK, tmp_path, env={"MALLOC_ARENA_MAX": "1"}) as program:
        bundle = tmp_path / "bundle"
        options = ["--pid", str(program.pid), "--observe", "0.2", "-o", str(bundle)]
        done = finished(start(*options), bundle)
        assert done.status == 0, done.stderr
    shown = subprocess.run(
        [
            str(found),
            "-nx",
            "-batch",
            "-iex",
            "set auto-load off",
            "-iex",
            "set debuginfod enabled off",
            os.path.realpath(python),
            str(done.core(program.pid)),
            "-ex",
            "thread apply all bt",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "may not match" not in shown.stderr
    stacks = [stack.strip().splitlines() for stack in shown.stdout.split("\nThread ")[1:]]
    assert len(stacks) == 3, shown.stdout
    waiting = [stack for stack in stacks if f"LWP {program.pid})" not in stack[0]]
    for stack in waiting:
        assert len(stack) > 10, stack
        assert "clone" in stack[-1] or "?? () from" in stack[-1], stack  # sid's libc has no name for it
    assert len({stack[-1].split()[1] for stack in waiting}) == 1, waiting
