"""Which file is the main program of a core, and whether it is still the same: on synthetic ELF files."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Dict, Optional

import pytest

from postmortem.cores.executable import AT_ENTRY, AT_EXECFN, AT_PHDR, check_executable, find_executable, main_program
from postmortem.memory import ElfCore, MappedFile

from ...support.elves import core, program
from ...support.inwords import reason, remedy

Make = Callable[..., ElfCore]
BASE, LIB, STACK = 0x400000, 0x7F0000000000, 0x7FFF00000000
ONE, OTHER = b"\x01" * 20, b"\x02" * 20


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a program (unless its content is None) and a core that maps it, and opens the core."""

    def make(
        on_disk: Optional[bytes],
        in_core: Optional[bytes],
        auxv: Optional[Dict[int, int]] = None,
        name: str = "prog",
        execfn: object = None,
    ) -> ElfCore:
        path = tmp_path / name
        if on_disk is not None:
            path.write_bytes(on_disk)
        pages = {BASE: in_core} if in_core else {}
        if execfn is not None:
            pages[STACK] = str(execfn).encode().ljust(4096, b"\0")
        files = [(BASE, BASE + 4096, 0, str(path)), (LIB, LIB + 4096, 0, "/lib/libc.so.6")]
        (tmp_path / "core").write_bytes(
            core(files, {AT_PHDR: BASE + 64, AT_EXECFN: STACK} if auxv is None else auxv, pages)
        )
        return ElfCore(str(tmp_path / "core"))

    return make


def test_the_mapping_with_the_program_headers_is_the_program() -> None:
    """AT_PHDR decides; AT_ENTRY does where it is missing or lies nowhere; names play no part."""
    files = [
        MappedFile(100, 200, 0, "/lib/first"),
        MappedFile(200, 300, 0, "/bin/a"),
        MappedFile(300, 400, 0, "/bin/b"),
    ]
    assert main_program(files, 250, 350) == files[1]
    assert main_program(files, None, 350) == files[2]
    assert main_program(files, 999, 399) == files[2]
    assert main_program(files, 400, None) is None
    assert main_program([], 250, 350) is None


def test_the_same_build_is_found_without_a_gap(make: Make, tmp_path: Path) -> None:
    """Build-ids of core and file agree: the path, and nothing to add."""
    assert find_executable(make(program(ONE), program(ONE))) == (tmp_path / "prog", None)


def test_the_entry_point_serves_when_the_headers_are_unknown(make: Make, tmp_path: Path) -> None:
    """A core whose auxiliary vector has AT_ENTRY alone still names its program."""
    assert find_executable(make(program(ONE), program(ONE), auxv={AT_ENTRY: BASE + 100}))[0] == tmp_path / "prog"


def test_another_build_is_refused(make: Make) -> None:
    """A rebuilt program would give wrong stacks: no path, and the gap says that it differs and what to pass."""
    path, gap = find_executable(make(program(OTHER), program(ONE)))
    assert path is None
    assert gap is not None
    assert "differ" in reason(gap)
    assert "--exe" in (remedy(gap) or "")


def test_a_missing_file_is_named(make: Make, tmp_path: Path) -> None:
    """No file at the path: no path, and the gap names it."""
    path, gap = find_executable(make(None, program(ONE)))
    assert path is None
    assert gap is not None
    assert str(tmp_path / "prog") in reason(gap)


def test_a_replaced_file_is_taken_by_build_id(make: Make, tmp_path: Path) -> None:
    """The kernel appends " (deleted)" when a file was replaced: the new file counts if it is the same build."""
    (tmp_path / "prog").write_bytes(program(ONE))
    assert find_executable(make(None, program(ONE), name="prog (deleted)")) == (tmp_path / "prog", None)
    (tmp_path / "prog").write_bytes(program(OTHER))
    assert find_executable(make(None, program(ONE), name="prog (deleted)"))[0] is None


def test_the_name_it_was_run_by_is_tried_too(make: Make, tmp_path: Path) -> None:
    """AT_EXECFN leads to a file that moved, if the build-id agrees; a relative one leads nowhere."""
    (tmp_path / "moved").write_bytes(program(ONE))
    assert find_executable(make(None, program(ONE), execfn=tmp_path / "moved"))[0] == tmp_path / "moved"
    assert find_executable(make(None, program(ONE), execfn="moved"))[0] is None


def test_a_core_without_the_first_page_leaves_a_doubt(make: Make, tmp_path: Path) -> None:
    """The file has a build-id that the core does not show: it is used, and the gap says that it may differ."""
    path, gap = find_executable(make(program(ONE), None))
    assert path == tmp_path / "prog"
    assert gap is not None
    assert "does not show the build-id" in reason(gap)


def test_files_without_build_ids_are_taken(make: Make, tmp_path: Path) -> None:
    """Nothing to compare on either side: the path, and no gap on every such machine."""
    assert find_executable(make(program(None), program(None))) == (tmp_path / "prog", None)


def test_a_program_run_through_the_loader_is_unknown(make: Make) -> None:
    """`ld.so PROGRAM` shows the loader where the program should be: better none than the loader."""
    path, gap = find_executable(make(program(ONE), program(ONE), name="ld-linux-x86-64.so.2"))
    assert path is None
    assert gap is not None
    assert "started through" in reason(gap)


@pytest.mark.parametrize("auxv", [{}, {AT_PHDR: 1}, {AT_PHDR: (1 << 64) - 1, AT_ENTRY: 0}])
def test_senseless_auxiliary_vectors_are_a_gap(make: Make, auxv: Optional[Dict[int, int]]) -> None:
    """Addresses that lie in no file say nothing about the program."""
    path, gap = find_executable(make(program(ONE), program(ONE), auxv=auxv))
    assert path is None
    assert gap is not None


def test_a_given_program_is_compared(make: Make, tmp_path: Path) -> None:
    """A program passed by hand gets a gap when both sides show build-ids and they differ, and none otherwise."""
    mine = tmp_path / "mine"
    mine.write_bytes(program(ONE))
    assert check_executable(make(None, program(ONE)), mine) is None
    assert check_executable(make(None, None), mine) is None
    gap = check_executable(make(None, program(OTHER)), mine)
    assert gap is not None
    assert str(mine) in reason(gap)
