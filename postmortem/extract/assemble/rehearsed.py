"""A process read during capture, to learn which pages and sources its diagnosis needs."""

from __future__ import annotations

import contextlib
from typing import List, Optional

from ...cpython.state.interpreter import Python
from ...foreign.held import Folder
from ...foreign.processfiles import Files
from ...memory import ElfCore, Fault
from ..cross_process.forks import spare_stacks
from ..process.process import Reading
from ..process.reading import read as read_core
from ..process.summary import process_of
from ..sourcecode.scripts import located
from .bundles import raw_of

#: Bytes at the end of a stack in which a thread's control block begins; static TLS lies below it.
_BLOCK = 8 << 10
_PAGE = 4 << 10


class ReadProcess:
    """An implementation of the protocol in ``capture.readers``."""

    def __init__(self, core: ElfCore, reading: Reading, directory: Optional[str]) -> None:
        self._core, self._reading, self._directory = core, reading, directory
        self.python: Optional[Python] = reading.context.python

    @property
    def sources(self) -> List[str]:
        """Return the paths of the source files that the process names."""
        return [located(file, self._directory) for file in self._reading.files]

    def finish(self) -> None:
        """Complete the process as evidence, and drop it: all that counts is which pages were read for it."""
        process_of(self._reading, {})
        for end in spare_stacks(self._core):  # a comparison with the parent's threads reads them
            for page in range(end - _BLOCK, end, _PAGE):
                with contextlib.suppress(Fault):
                    self._core.read(page, 8)


def read(core: ElfCore, pid: int, folder: Folder, files: Files, with_locals: bool) -> ReadProcess:
    """Read threads and frames.

    ``folder``: of the bundle, for the capture's facts.
    """
    return ReadProcess(core, *read_core(core, pid, raw_of(folder, pid), files, [], with_locals))
