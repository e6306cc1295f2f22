"""The input of every pass over a process: made once, immutable except for the list of gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from ...cpython.frames.names import Names
from ...cpython.state.interpreter import Python
from ...evidence import Gap
from ...memory import ElfCore
from ..ownership.acquires import Acquires, Lines
from ..recorded.raw import Raw
from ..sourcecode.usages import Usages
from .threadtable import ThreadTable


@dataclass(frozen=True)
class ProcessContext:
    """A process to be read.

    - ``raw``: the capture's notes
    - ``gaps``: what could not be read; passes append to it
    """

    core: ElfCore
    raw: Raw
    pid: int
    threads: ThreadTable
    usages: Usages
    gaps: List[Gap]
    python: Optional[Python]

    def probe(self, name: str) -> Dict[str, Any]:
        """Return the window's reading of the running interpreter; empty without a window."""
        found = self.raw.window.probes.get(name)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class PythonContext(ProcessContext):
    """A process with an interpreter.

    - ``names``: the program's names of objects
    - ``acquires``: what functions acquire by hand, from the sources of the threads' frames
    """

    python: Python
    names: Names
    acquires: Acquires


def context_of(
    core: ElfCore, python: Optional[Python], raw: Raw, pid: int, lines: Lines, threads: Optional[ThreadTable] = None
) -> ProcessContext:
    """Return the context of a process.

    - ``lines``: reads a source file
    - ``threads``: None for the core's
    """
    table = threads if threads is not None else ThreadTable.of_core(core, python)
    usages = Usages(lines)
    if python is None:
        return ProcessContext(core, raw, pid, table, usages, [], None)
    files = (frame.code.filename for state in table.states.values() for frame in state.frames)
    names, acquires = Names(python.frames), Acquires(python.frames, lines, files)
    return PythonContext(core, raw, pid, table, usages, [], python, names, acquires)
