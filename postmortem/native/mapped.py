"""Libraries that gdb must be told of: a core that is cut short has lost the loader's own list of them (``r_debug`` and
its link map lie in the last pages), but its notes still say what was mapped where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple, Optional

from ..cores.executable import main_program_of
from ..memory import ElfCore
from .corefile import CoreFile, opened

#: More than these are on no stack.
_MOST = 300
#: gdb reads a file's name as words of a command; one with other characters is left out.
_PLAIN = re.compile(r"/[A-Za-z0-9/._+-]+\Z")


def plain(path: Path) -> bool:
    """May gdb be given this absolute path as a word of a command?"""
    return _PLAIN.match(str(path)) is not None


class Mapped(NamedTuple):
    """A library: the addresses that it takes, its file on this machine, and how far it was moved when it was loaded."""

    start: int
    end: int
    file: str
    bias: int


def unlisted(core: CoreFile, sysroot: Optional[Path]) -> List[Mapped]:
    """The libraries of a core that is cut short, as far as the same builds are here; nothing for a whole one."""
    with opened(core, sysroot) as image:
        return _libraries(image) if image is not None and image.truncated else []


def _libraries(image: ElfCore) -> List[Mapped]:
    main = main_program_of(image)
    found: List[Mapped] = []
    for path in dict.fromkeys(file.path for file in image.files):
        base = image.base(path)
        if base is None or (main is not None and path == main.path) or len(found) >= _MOST:
            continue
        elf = image.elf(path)
        if elf is not None and plain(Path(elf.path)):
            end = max(file.end for file in image.files if file.path == path)
            found.append(Mapped(base, end, elf.path, base - elf.first_vaddr))
    return found
