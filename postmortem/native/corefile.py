"""A core as gdb is given it: by its path, or by a descriptor of what was opened under that path."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Union

from ..memory import ElfCore, NotElf


class CoreFile(NamedTuple):
    """``path``: what the core is called wherever it is spoken of. With a descriptor, which has to stay open for as long as gdb
    runs, nothing is looked up by that."""

    path: Path
    descriptor: Optional[int] = None

    @property
    def for_gdb(self) -> str:
        """What gdb opens: it has inherited the descriptor."""
        return str(self.path) if self.descriptor is None else f"/proc/self/fd/{self.descriptor}"

    def renamed(self, text: str) -> str:
        """What gdb says, with the path where it has the descriptor."""
        return text if self.descriptor is None else re.sub(rf"{self.for_gdb}(?!\d)", lambda _: str(self.path), text)


#: What the functions of this package take for a core.
AnyCore = Union[Path, CoreFile]


def absolute(core: AnyCore) -> CoreFile:
    """gdb is started in another directory."""
    path, descriptor = (core.path, core.descriptor) if isinstance(core, CoreFile) else (core, None)
    return CoreFile(path.absolute(), descriptor)


@contextlib.contextmanager
def opened(core: CoreFile, sysroot: Optional[Path]) -> Iterator[Optional[ElfCore]]:
    """The core as this package reads it, files looked for under the sysroot; None when it is none."""
    try:
        copy = None if core.descriptor is None else os.dup(core.descriptor)
        image = ElfCore(
            str(core.path), (lambda name: f"{sysroot}{name}") if sysroot is not None else None, descriptor=copy
        )
    except (OSError, NotElf, ValueError):
        yield None
        return
    try:
        yield image
    finally:
        image.close()
