"""The libraries of a truncated core, found for gdb, which cannot find them by itself.

Such a core lacks the loader's own list of them (``r_debug`` and its link map are in the last pages), but its notes
still show which file was mapped where.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple, Optional

from ..cores.executable import main_program_of
from ..memory import ElfCore
from .corefile import CoreFile, opened

#: Most libraries returned; stacks use fewer.
_MOST = 300
#: Paths that are one word of a gdb command; others are left out.
_PLAIN = re.compile(r"/[A-Za-z0-9/._+-]+\Z")


def plain(path: Path) -> bool:
    """Return whether an absolute path can be passed to gdb as one word of a command."""
    return _PLAIN.match(str(path)) is not None


class Mapped(NamedTuple):
    """A library: its addresses, its file on this machine, and its load bias."""

    start: int
    end: int
    file: str
    bias: int


def unlisted(core: CoreFile, sysroot: Optional[Path]) -> List[Mapped]:
    """Return the libraries of a truncated core whose exact builds are on this machine; none for a complete core."""
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
