"""A process's context with an interpreter that a test makes up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, List, Mapping, Optional

from postmortem.cpython.frames.names import Names
from postmortem.evidence import Gap
from postmortem.extract.ownership.acquires import Acquires, Lines
from postmortem.extract.process.context import PythonContext
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.recorded.raw import NO_RAW
from postmortem.extract.recorded.window import NO_WINDOW, Window
from postmortem.extract.sourcecode.usages import Usages


def made(
    python: Any,
    threads: ThreadTable,
    *,
    core: Any = None,
    lines: Lines = lambda _file: None,
    window: Window = NO_WINDOW,
    facts: Optional[Mapping[str, Any]] = None,
    gaps: Optional[List[Gap]] = None,
) -> PythonContext:
    """``python``: what the pass under test asks of it; ``facts``: what process.json says."""
    frames: Any = getattr(python, "frames", SimpleNamespace(objects=getattr(python, "objects", None)))
    raw = NO_RAW._replace(process=dict(facts or {}), window=window)
    names, acquires = Names(frames), Acquires(frames, lines)
    return PythonContext(
        core, raw, 1, threads, Usages(lines), gaps if gaps is not None else [], python, names, acquires
    )
