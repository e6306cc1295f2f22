"""The part of a core that is read without gdb: interpreter, threads, locks, tasks and the sources that they name."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ...cpython.runtime.discovery import NoInterpreter
from ...cpython.state.interpreter import Python
from ...evidence import Gap
from ...foreign.processfiles import Files
from ...memory import CoreThread, ElfCore
from ..recorded.raw import NO_RAW, Raw
from ..sourcecode.scripts import located, script_directory
from .context import context_of
from .process import Reading, read_process


def read(
    core: ElfCore, pid: int, raw: Optional[Raw], files: Files, gaps: List[Gap], with_locals: bool
) -> Tuple[Reading, Optional[str]]:
    """Return everything read without native stacks, and the directory of the program's script (or None).

    ``files`` locates sources.
    """
    python = _python(core, gaps)
    _replace_lost_threads(core, python, gaps)
    directory = script_directory(python, files.lines) if python else None

    def lines(file: str) -> Optional[List[str]]:
        return files.lines(located(file, directory))

    reading = read_process(context_of(core, python, raw or NO_RAW, pid, lines), with_locals)
    for file in reading.files:
        files.parsed(located(file, directory))  # remembered for citations of sources
    return reading, directory


def _replace_lost_threads(core: ElfCore, python: Optional[Python], gaps: List[Gap]) -> None:
    """Add threads that the notes of a truncated core lack, from the interpreter.

    gcore writes the notes last. The interpreter knows its own threads, from 3.11 on by TID.
    """
    if core.threads and not core.truncated:
        return
    listed = len(core.threads)
    known = {thread.tid for thread in core.threads} | {thread.regs.get("fs_base") for thread in core.threads}
    states = [state for one in python.interpreters for state in one.threads] if python else []
    lost = [s.native_id for s in states if s.native_id and s.native_id not in known and s.ident not in known]
    core.threads += [CoreThread(tid, 0, {}) for tid in dict.fromkeys(lost)]
    if listed and not lost:
        return
    if listed:
        gaps.append(Gap.of("core", core.path, "threads-lost", listed=listed, lost=len(lost)))
    elif lost:
        gaps.append(Gap.of("core", core.path, "no-threads-listed", lost=len(lost)))
    else:
        gaps.append(Gap("core", core.path, code="no-threads"))


def _python(core: ElfCore, gaps: List[Gap]) -> Optional[Python]:
    try:
        return Python(core)
    except NoInterpreter as exc:
        if exc.python_file is not None:
            gaps.append(Gap("cpython", f"process {core.pid}", str(exc), exc.remedy, code="no-interpreter"))
        return None
