"""The interpreters that live tests run on, and programs under them, synchronised by what they print."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional, Union

import pytest

from postmortem.cpython.runtime.releases import LAYOUTS

from ..interpreters import wanted

ROOT = Path(__file__).resolve().parents[2]
_REST_S = 0.2
REQUIRED = tuple(filter(None, os.environ.get("POSTMORTEM_REQUIRE_PYTHONS", "").split(",")))


def find(version: str) -> Optional[str]:
    """An interpreter of that minor version: pyenv's newest, else one on PATH."""
    found = wanted.find(wanted.BY_ID[version]) if version in wanted.BY_ID else None
    return str(found) if found is not None else shutil.which(f"python{version}")


def is_read(interpreter: wanted.Wanted) -> bool:
    """Whether the reader knows its layout."""
    return interpreter.version in LAYOUTS


def matrix(every: bool = False, ctypes: bool = False) -> List[object]:
    """Parameters for ``@pytest.mark.parametrize("python", matrix())``: an ``Interpreter`` each, which stands for its
    path and knows its id, version, free_threaded, debug and origin.

    Only those that the reader reads, unless ``every``; with ``ctypes``, only those that can call C: the one on musl has no
    libffi, and no library of the tests' own, which are glibc's. A missing one skips and says how to get it, and fails where
    POSTMORTEM_REQUIRE_PYTHONS lists its id.
    """
    return [one(each) for each in wanted.MATRIX if (every or is_read(each)) and not (ctypes and each.origin == "musl")]


#: One of each way in which frames, locks and the runtime are laid out and found.
_KINDS = ("3.8", "3.10", "3.11-stripped", "3.12", "3.14-shared", "3.15", "3.13t")


def kinds() -> List[object]:
    """The same for what depends little on the layout, and is tried on one interpreter of each kind."""
    return [one(wanted.BY_ID[name]) for name in _KINDS]


def old_and_new() -> List[object]:
    """Return an old interpreter and a new one, for what depends on nothing but how attributes and frames are stored."""
    return [one(wanted.BY_ID[name]) for name in ("3.8", "3.12")]


def one(chosen: wanted.Wanted) -> object:
    """A parameter for a single one of them."""
    found = wanted.find(chosen) or _own(chosen)
    if found is not None:
        return pytest.param(found, id=chosen.id)
    reason = wanted.missing(chosen)
    if chosen.id in REQUIRED:
        return pytest.param(Missing(reason), id=chosen.id)
    return pytest.param(Missing(reason), id=chosen.id, marks=pytest.mark.skip(reason=reason))


def _own(one: wanted.Wanted) -> Optional[wanted.Interpreter]:
    """The tests' own interpreter, which need not be on PATH."""
    if one.origin != "pyenv" or one.version != sys.version_info[:2] or sys.abiflags:
        return None
    return wanted.Interpreter(one, sys.executable)


class Missing:
    """Stands for an interpreter that is required and not there: any use of it fails with the remedy."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __fspath__(self) -> str:
        raise AssertionError(self._reason)

    def __str__(self) -> str:
        return self.__fspath__()

    def __getattr__(self, name: str) -> object:
        raise AssertionError(self._reason)


class Program:
    """A program under test, alive until the block ends; ``lines`` are what it printed up to ``ready``."""

    def __init__(
        self,
        python: Union[str, os.PathLike[str]],
        source: str,
        folder: Path,
        *args: str,
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[Path] = None,
    ) -> None:
        self.path = folder / "program.py"
        self.path.write_text(source)
        self.process = subprocess.Popen(
            [os.fspath(python), str(self.path), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            cwd=cwd,
        )
        self.lines: List[str] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Program:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == "ready":
                self._await_rest()
                return self
            self.lines.append(line.rstrip("\n"))
        raise AssertionError(f"the program ended with {self.process.wait()} before it was ready")

    def _await_rest(self) -> None:
        """What a program does after it said "ready" (going to sleep, mostly) takes it a moment that no handshake can see: until
        all of its threads wait in the same calls at two looks, or for a short while, for it may be made not to rest."""
        until, before = time.monotonic() + _REST_S, None
        while time.monotonic() < until:
            calls = [self._call(path) for path in Path(f"/proc/{self.pid}/task").iterdir()]
            if calls == before and not any(call.startswith("running") for call in calls):
                return
            before = calls
            time.sleep(0.003)

    @staticmethod
    def _call(task: Path) -> str:
        try:
            return (task / "syscall").read_text()
        except OSError:
            return ""

    def __exit__(self, *_: object) -> None:
        """Its children end too: they may hold the pipe that is read to its end here."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.communicate()

    def line_of(self, marker: str) -> int:
        """The line that carries ``# marker``."""
        for number, text in enumerate(self.path.read_text().splitlines(), 1):
            if text.rstrip().endswith(f"# {marker}"):
                return number
        raise AssertionError(f"no line is marked {marker}")
