"""Separate debug files that programs name and gdb opens: one that is no regular file would block gdb.

- A program's ``.gnu_debuglink`` names a file, which gdb looks for in the program's directory and in ``.debug`` below
  that, opens, and reads to its end for a checksum.
- Its build-id names one below ``/usr/lib/debug/.build-id`` of the sysroot.

A FIFO blocks, ``/dev/zero`` never ends. Source: "Debugging Information in Separate Files" in gdb's manual.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Iterator, Optional

from ..memory import ElfCore
from ..memory.elf import Elf, NotElf

_LONGEST = 4096


def endless(core: ElfCore, program: Optional[Path], sysroot: Optional[Path]) -> Optional[Path]:
    """Return the first debug file of a core's program, or of a file that it maps, that is no regular file; None if none.

    Unreadable files are skipped: gdb cannot read them either.
    """
    mapped = {Path(f"{sysroot or ''}{file.path}") for file in core.files if core.is_program(file.path)}
    for each in sorted({*mapped, *([program] if program is not None else [])}):
        for found in _led_to(each, sysroot):
            if _is_endless(found):
                return found
    return None


def _led_to(program: Path, sysroot: Optional[Path]) -> Iterator[Path]:
    try:
        elf = Elf(str(program))
    except (OSError, NotElf, ValueError):
        return
    try:
        section = elf.section(".gnu_debuglink")
        if section is not None:
            name = elf.data[section.offset : section.offset + min(section.size, _LONGEST)].split(b"\0")[0]
            if name:
                yield program.parent / os.fsdecode(name)
                yield program.parent / ".debug" / os.fsdecode(name)
        if sysroot is not None and elf.build_id:
            yield sysroot / "usr/lib/debug/.build-id" / elf.build_id[:2] / f"{elf.build_id[2:]}.debug"
    finally:
        elf.close()


def _is_endless(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
