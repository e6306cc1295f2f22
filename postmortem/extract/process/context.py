"""What every pass over a process is given. It is made once, and nothing of it changes but the list of gaps."""

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
    """``raw``: what a capture noted of the process; ``gaps``: what could not be had."""

    core: ElfCore
    raw: Raw
    pid: int
    threads: ThreadTable
    usages: Usages
    gaps: List[Gap]
    python: Optional[Python]

    def probe(self, name: str) -> Dict[str, Any]:
        """What was read of the running interpreter over the window."""
        found = self.raw.window.probes.get(name)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class PythonContext(ProcessContext):
    """Of a process with an interpreter. ``names``: what the program calls things; ``acquires``: what its functions acquire
    by hand, as their sources tell, those of the threads' functions."""

    python: Python
    names: Names
    acquires: Acquires


def context_of(
    core: ElfCore, python: Optional[Python], raw: Raw, pid: int, lines: Lines, threads: Optional[ThreadTable] = None
) -> ProcessContext:
    """``lines``: the source of a file; ``threads``: None for those of the core."""
    table = threads if threads is not None else ThreadTable.of_core(core, python)
    usages = Usages(lines)
    if python is None:
        return ProcessContext(core, raw, pid, table, usages, [], None)
    files = (frame.code.filename for state in table.states.values() for frame in state.frames)
    names, acquires = Names(python.frames), Acquires(python.frames, lines, files)
    return PythonContext(core, raw, pid, table, usages, [], python, names, acquires)
