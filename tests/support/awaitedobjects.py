"""Processes read out of cores, and the objects that their threads and tasks wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Tuple

from postmortem.evidence import Gap, Process, Resource
from postmortem.extract.process.reading import read
from postmortem.extract.process.summary import process_of
from postmortem.foreign.processfiles import NO_FILES
from postmortem.memory import ElfCore


def process_in(core: Path, pid: int) -> Tuple[Process, List[Gap]]:
    gaps: List[Gap] = []
    reading, _directory = read(ElfCore(str(core)), pid, None, NO_FILES, gaps, False)
    return process_of(reading, {}).process, [*gaps, *reading.context.gaps]


def awaited(process: Process) -> Dict[str, Resource]:
    """By the function that waits: of a thread its name, of a task its outermost coroutine."""
    resources = {resource.id: resource for resource in process.resources}
    found = {}
    for thread in process.threads:
        if thread.name and thread.wait is not None and thread.wait.resource in resources:
            found[thread.name] = resources[thread.wait.resource]
    for task in process.tasks:
        if task.wait is not None and task.wait.resource in resources:
            found[task.stack[-1].function] = resources[task.wait.resource]
    return found
