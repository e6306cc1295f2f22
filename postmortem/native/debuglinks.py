"""Separate debug files that programs name, and that gdb would open beside them: what is no regular file would keep gdb waiting.

A program's ``.gnu_debuglink`` names a file, which gdb looks for in the program's directory and in ``.debug`` below that
("Debugging Information in Separate Files" in gdb's manual), opens, and reads to its end for a checksum. A FIFO there is
waited for, ``/dev/zero`` never ends.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Iterable, Iterator, Optional

from ..memory.elf import Elf, NotElf

_LONGEST = 4096


def endless(programs: Iterable[Path]) -> Optional[Path]:
    """Return the first file that one of these programs and libraries leads gdb to and that is no regular one; None when there
    is none. What cannot be read is passed over: gdb cannot read it either."""
    for program in programs:
        for name in _names(program):
            for folder in (program.parent, program.parent / ".debug"):
                found = folder / name
                if _is_endless(found):
                    return found
    return None


def _names(program: Path) -> Iterator[str]:
    try:
        elf = Elf(str(program))
    except (OSError, NotElf, ValueError):
        return
    try:
        section = elf.section(".gnu_debuglink")
        if section is not None:
            name = elf.data[section.offset : section.offset + min(section.size, _LONGEST)].split(b"\0")[0]
            if name:
                yield os.fsdecode(name)
    finally:
        elf.close()


def _is_endless(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
