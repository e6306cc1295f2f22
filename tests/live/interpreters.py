"""The interpreters that live tests run on, and programs under them, synchronised by what they print."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What this version reads. A machine need not have them all; CI must (REQUIRED).
VERSIONS = ("3.11", "3.12", "3.13")
REQUIRED = tuple(filter(None, os.environ.get("POSTMORTEM_REQUIRE_PYTHONS", "").split(",")))


def find(version: str) -> Optional[str]:
    """An interpreter of that minor version: pyenv's newest, else one on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    releases = [f for f in pyenv.glob(f"{version}.*") if f.name[-1].isdigit() and (f / "bin" / "python").exists()]
    if releases:
        newest = max(releases, key=lambda folder: int(folder.name.rsplit(".", 1)[1]))
        return str(newest / "bin" / "python")
    return shutil.which(f"python{version}")


def matrix() -> List[object]:
    """Parameters for ``@pytest.mark.parametrize("python", matrix())``; a missing interpreter is named, and fails
    where it is required."""
    found: List[object] = []
    for version in VERSIONS:
        own = sys.executable if sys.version_info[:2] == tuple(map(int, version.split("."))) else None
        path = find(version) or own
        if path is not None:
            found.append(pytest.param(path, id=version))
        elif version in REQUIRED:
            found.append(pytest.param("", id=f"{version}-missing"))
        else:
            reason = f"no Python {version} on this machine"
            found.append(pytest.param("", id=version, marks=pytest.mark.skip(reason=reason)))
    stripped = "/usr/bin/python3.11"
    if os.path.exists(stripped):
        found.append(pytest.param(stripped, id="3.11-distribution"))
    return found


class Program:
    """A program under test, alive until the block ends; ``lines`` are what it printed up to ``ready``."""

    def __init__(
        self, python: str, source: str, folder: Path, *args: str, env: Optional[Dict[str, str]] = None
    ) -> None:
        assert python, "an interpreter that POSTMORTEM_REQUIRE_PYTHONS names is missing"
        self.path = folder / "program.py"
        self.path.write_text(source)
        self.process = subprocess.Popen(
            [python, str(self.path), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})}, start_new_session=True,
        )  # fmt: skip
        self.lines: List[str] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Program:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == "ready":
                return self
            self.lines.append(line.rstrip("\n"))
        raise AssertionError(f"the program ended with {self.process.wait()} before it was ready")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line_of(self, marker: str) -> int:
        """The line that carries ``# marker``."""
        for number, text in enumerate(self.path.read_text().splitlines(), 1):
            if text.rstrip().endswith(f"# {marker}"):
                return number
        raise AssertionError(f"no line is marked {marker}")
