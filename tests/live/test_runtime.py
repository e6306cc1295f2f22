"""Finding the interpreter when its file says little, nothing, or the wrong thing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Optional

import pytest

from postmortem.cpython.runtime.discovery import NoInterpreter, find_runtime
from postmortem.cpython.state.interpreter import Python
from postmortem.memory import Elf, ProcMem

from ..support.interpreters import Program, matrix

pytestmark = [pytest.mark.live]

IDLE = 'import sys, threading\nprint("ready", flush=True)\nsys.stdin.read()\n'


class _Blind(ProcMem):
    """A process whose files show neither symbols nor, with ``sections`` false, sections; or are not here at all."""

    def __init__(self, pid: int, files: bool, sections: bool) -> None:
        super().__init__(pid)
        self._show, self._sections = files, sections

    def elf(self, path: str) -> Optional[Elf]:
        elf = super().elf(path) if self._show else None
        if elf is not None:
            elf.symbol = lambda name: None  # type: ignore[method-assign]
            if not self._sections:
                elf.section = lambda name: None  # type: ignore[method-assign]
        return elf


@pytest.mark.parametrize("python", matrix())
@pytest.mark.parametrize("files, sections", [(True, True), (True, False), (False, False)])
def test_without_symbols_sections_or_files_it_is_the_same_runtime(
    python: object, files: bool, sections: bool, tmp_path: Path
) -> None:
    """Each of the four ways leads to the same _PyRuntime and the same exact version."""
    with Program(str(python), IDLE, tmp_path) as program, ProcMem(program.pid) as memory:
        seen = find_runtime(memory)
        blind = find_runtime(_Blind(program.pid, files, sections))
    assert (blind.address, blind.version) == (seen.address, seen.version)
    assert seen.found_by == "symbol"
    assert blind.found_by in (("section", "cookie", "pointers") if sections else ("cookie", "pointers"))


class _Mute(ProcMem):
    """A process whose interpreter says nothing of itself: the cookie of its table of offsets is not there."""

    def read(self, address: int, size: int) -> bytes:
        return super().read(address, size).replace(b"xdebugpy", b"\0" * 8)


@pytest.mark.parametrize("python", [p for p in matrix() if p.id.startswith(("3.13", "3.14", "3.15"))])  # type: ignore[attr-defined]
def test_without_its_own_offsets_it_is_read_as_its_release(python: object, tmp_path: Path) -> None:
    """The release's row leads to the same interpreter, free-threaded or not, and a warning says so."""
    with Program(str(python), IDLE, tmp_path) as program:
        with ProcMem(program.pid) as memory:
            seen = find_runtime(memory)
        with _Mute(program.pid) as memory:
            mute = Python(memory)
    assert (mute.runtime.address, mute.runtime.version) == (seen.address, seen.version)
    assert mute.runtime.free_threaded == seen.free_threaded
    assert len(mute.problems) == 1 and "could not be read" in mute.problems[0]
    assert mute.interpreters[0].threads[0].frames[-1].function == "<module>"


@pytest.mark.parametrize("python", matrix())
def test_version_is_exact(python: object, tmp_path: Path) -> None:
    """The micro version comes from the interpreter itself, not from a file's name."""
    source = 'import sys\nprint("%d.%d.%d" % sys.version_info[:3])\n' + IDLE
    with Program(str(python), source, tmp_path) as program, ProcMem(program.pid) as memory:
        assert find_runtime(memory).version_text == program.lines[0]


def test_a_program_without_python_is_none(tmp_path: Path) -> None:
    """`sleep` has no interpreter, and nothing in it is taken for one by the scans."""
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            with ProcMem(process.pid) as memory, pytest.raises(NoInterpreter):
                Python(memory)
        finally:
            process.kill()
