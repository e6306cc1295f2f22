"""Real cores for the tests that need a real gdb."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Protocol

import pytest

from ..support import required

#: Threads of small stacks and one malloc arena: a core of 15 MB instead of 300.
_PROLOGUE = """
import ctypes, os, select, sys, threading, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER_ANY: Yama lets gdb attach
threading.stack_size(1 << 20)
started = []
def run(function):
    def body():
        started.append((function.__name__, threading.get_native_id()))
        function()
    threading.Thread(target=body, daemon=True).start()
"""
_EPILOGUE = """
while len(started) < count:
    time.sleep(0.01)
def settled(tid):
    return open(f"/proc/self/task/{tid}/stat").read().rpartition(")")[2].split()[0] == "S"
while not all(settled(tid) for _, tid in started):
    time.sleep(0.01)
print("ready", *(f"{name}={tid}" for name, tid in started), flush=True)
sys.stdin.read()
"""


class Taken(NamedTuple):
    core: Path
    exe: Path
    tids: Dict[str, int]  # by the function that the thread runs; "main" too


class Take(Protocol):
    def __call__(self, body: str, functions: List[str], python: str = ...) -> Taken:
        """Return a core of a program in which each function runs in a thread of its own."""


def interpreters() -> List[str]:
    """The interpreter of the tests, and every other CPython from 3.8 on that PATH or pyenv has."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob("versions/*/bin"))
    found = {os.path.realpath(sys.executable): sys.executable}
    for folder in folders:
        for minor in range(8, 16):
            program = folder / f"python3.{minor}"
            if program.is_file() and b"ELF" in program.open("rb").read(4):  # no shims
                found.setdefault(os.path.realpath(program), str(program))
    return list(found.values())


@pytest.fixture(scope="session")
def gdb() -> Path:
    """The gdb that postmortem would use. CI must have one; elsewhere its absence skips."""
    return required.gdb()


@pytest.fixture(scope="session")
def take_core(gdb: Path, tmp_path_factory: pytest.TempPathFactory) -> Take:
    """Runs a program whose functions each run in a thread of their own, until all sleep, and takes its core."""

    def take(body: str, functions: List[str], python: str = sys.executable) -> Taken:
        folder = tmp_path_factory.mktemp("core")
        calls = "".join(f"run({name})\n" for name in functions)
        (folder / "program.py").write_text(f"{_PROLOGUE}{body}\ncount = {len(functions)}\n{calls}{_EPILOGUE}")
        with subprocess.Popen(
            [python, str(folder / "program.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        ) as process:
            try:
                assert process.stdout is not None
                words = process.stdout.readline().split()
                assert words[:1] == ["ready"], "the program did not start"
                tids = {name: int(tid) for name, tid in (word.split("=") for word in words[1:])}
                exe = Path(os.readlink(f"/proc/{process.pid}/exe"))
                core = folder / "core"
                said = subprocess.run(
                    [
                        str(gdb),
                        "-nx",
                        "-batch",
                        "-iex",
                        "set auto-solib-add off",
                        "-p",
                        str(process.pid),
                        "-ex",
                        f"generate-core-file {core}",
                    ],
                    check=False,
                    capture_output=True,
                    text=True,
                    timeout=120,
                )
                assert core.exists(), f"gdb took no core: {said.stderr[-500:]}"
                return Taken(core, exe, {"main": process.pid, **tids})
            finally:
                process.kill()

    return take
