"""Programs with another loader, on copies of the machine's own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Tuple

import pytest

from tests.interpreters import elf

PROGRAM = Path("/bin/cat")


@pytest.fixture
def moved(tmp_path: Path) -> Tuple[Path, Path, Path]:
    """A copy of a program, and of the loader and the libc that it runs on, in a folder of their own."""
    loader = Path(elf.loader(PROGRAM)).resolve()
    maps = subprocess.run([PROGRAM, "/proc/self/maps"], stdout=subprocess.PIPE, text=True, check=True).stdout
    libc = next(line.split()[-1] for line in maps.splitlines() if "libc.so" in line or "libc-" in line)
    for file, name in ((PROGRAM, "cat"), (loader, loader.name), (Path(libc), "libc.so.6")):
        shutil.copy(file, tmp_path / name)
    return tmp_path / "cat", tmp_path / loader.name, tmp_path / "libc.so.6"


def test_a_program_runs_on_the_loader_and_libc_that_it_is_given(moved: Tuple[Path, Path, Path]) -> None:
    """Its process is itself, with that ld.so and that libc, and nothing of what it was linked for."""
    program, loader, libc = moved
    elf.rehome(program, str(loader), str(libc.parent))
    assert elf.loader(program) == str(loader)
    maps = subprocess.run([program, "/proc/self/maps"], stdout=subprocess.PIPE, text=True, check=True).stdout
    code = {line.split()[-1] for line in maps.splitlines() if "r-xp" in line and "/" in line}
    assert code == {str(program), str(loader), str(libc)}


def test_nothing_that_is_loaded_moves(moved: Tuple[Path, Path, Path]) -> None:
    """As long as before, and but for the two strings and the headers that point at them the same bytes."""
    program, loader, libc = moved
    before = program.read_bytes()
    elf.rehome(program, str(loader), str(libc.parent))
    after = program.read_bytes()
    assert len(after) == len(before)
    changed = sum(1 for old, new in zip(before, after) if old != new)
    assert 0 < changed < len(str(loader)) + len(str(libc.parent)) + 64


@pytest.mark.parametrize("damage", ["text", "cut", "no room", "twice"])
def test_what_cannot_be_patched_is_left_alone(moved: Tuple[Path, Path, Path], damage: str) -> None:
    """No ELF file, one without an end, strings longer than a page, a library path that is there already."""
    program, loader, libc = moved
    library_path = str(libc.parent)
    if damage == "text":
        program.write_text("#!/bin/sh\n")
    elif damage == "cut":
        program.write_bytes(program.read_bytes()[:80])
    elif damage == "no room":
        library_path = "/x" * 4096
    else:
        elf.rehome(program, str(loader), library_path)
    before = program.read_bytes()
    with pytest.raises(elf.NotPatchable):
        elf.rehome(program, str(loader), library_path)
    assert program.read_bytes() == before
