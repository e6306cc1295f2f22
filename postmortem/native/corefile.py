"""A core as passed to gdb: by its path, or by the descriptor of the open file."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Union

from ..memory import ElfCore, NotElf


class CoreFile(NamedTuple):
    """A core file.

    - ``path``: its name in messages, and its location without a descriptor
    - ``descriptor``: must stay open while gdb runs; the path is not looked up then
    """

    path: Path
    descriptor: Optional[int] = None

    @property
    def for_gdb(self) -> str:
        """The path that gdb opens; gdb inherits the descriptor."""
        return str(self.path) if self.descriptor is None else f"/proc/self/fd/{self.descriptor}"

    def renamed(self, text: str) -> str:
        """Replace gdb's name of the core by its path in a text."""
        return text if self.descriptor is None else re.sub(rf"{self.for_gdb}(?!\d)", lambda _: str(self.path), text)


#: Any core that the functions of this package accept.
AnyCore = Union[Path, CoreFile]


def absolute(core: AnyCore) -> CoreFile:
    """Return a core with an absolute path: gdb is started in another directory."""
    path, descriptor = (core.path, core.descriptor) if isinstance(core, CoreFile) else (core, None)
    return CoreFile(path.absolute(), descriptor)


@contextlib.contextmanager
def opened(core: CoreFile, sysroot: Optional[Path]) -> Iterator[Optional[ElfCore]]:
    """Open a core with its files below the sysroot, for the duration of the block; None if it is no core."""
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
