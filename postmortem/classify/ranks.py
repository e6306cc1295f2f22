"""Ranks: processes that run the same program and meet in collective operations, by whichever library."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..evidence import NativeFrame, Process, PythonFrame, Thread
from .knowledge import is_library
from .view import View

#: Names under which MPI, NCCL, Gloo, Horovod, JAX and those who build their own call them, without underscores.
_NAMES = frozenset((
    "allreduce", "allgather", "reducescatter", "broadcast", "bcast", "barrier", "alltoall", "scatter", "gather", "reduce",
    "allgatherobject", "broadcastobjectlist", "allgatherintotensor", "reducescattertensor", "alltoallsingle",
    "monitoredbarrier", "scatterobjectlist", "gatherobject", "allreducecoalesced", "allgatherv", "gatherv", "scatterv",
    "scan", "exscan", "syncall", "syncglobaldevices",
))  # fmt: skip
_MOST_DEPTH = 12


_PARTS = re.compile(r"[\W\d_]+")


class Rank(NamedTuple):
    process: Process
    thread: Thread
    operation: Optional[str]  # None: it is in none
    site: Optional[PythonFrame]  # the program's line that called it


def jobs_of(view: View) -> Iterator[List[Process]]:
    """Processes of the same program."""
    groups: Dict[Tuple[object, ...], List[Process]] = {}
    for process in view.pythons:
        main = view.main(process)
        outermost = [f for f in main.python if not is_library(f)][-1:] if main is not None else []
        key = (process.exe, outermost[0].file if outermost else None)
        groups.setdefault(key, []).append(process)
    for group in groups.values():
        if len(group) > 1:
            yield group


def rank_of(process: Process) -> Rank:
    """The first thread that is in a collective operation, the main one before others."""
    threads = sorted(process.threads, key=lambda t: not t.is_main)
    for thread in threads:
        frames = thread.python[:_MOST_DEPTH]
        at = max((i for i, f in enumerate(frames) if _is_collective(f.function)), default=None)
        called = _in_c(thread) if at is None and frames else None
        if called is not None:
            return Rank(process, thread, called, next((f for f in frames if not is_library(f)), frames[0]))
        if at is not None:
            site = next((f for f in thread.python[at + 1 :] if not is_library(f)), None)
            return Rank(process, thread, frames[at].function, site or frames[at])
    return Rank(process, threads[0], None, None) if threads else Rank(process, Thread(process.pid), None, None)


def _in_c(thread: Thread) -> Optional[str]:
    """The operation that the innermost Python frame has called in C: as its native frames are called, the nearest to
    Python first (mpi4py's wrappers before ``PMPI_Bcast``), else as its value stack says."""
    above: List[str] = []
    for frame in thread.stack:
        if not isinstance(frame, NativeFrame):
            break
        above.append(frame.function or "")
    for function in reversed(above):
        operation = next((part.lower() for part in _PARTS.split(function) if part.lower() in _NAMES), None)
        if operation is not None or function.lower().startswith("nccl"):
            return operation or function.lower()[len("nccl") :]
    called = thread.calling.function.rsplit(".", 1)[-1] if thread.calling is not None else ""
    return called if _is_collective(called) else None


def _is_collective(function: str) -> bool:
    return function.replace("_", "").lower() in _NAMES


def stays(view: View, thread: Thread) -> bool:
    """Was it in the operation all the time? Whoever polls there computes, or sleeps for moments."""
    samples = list(view.samples(thread))
    if not samples:
        return not view.moves(thread)
    here = [f.function for f in thread.python[:_MOST_DEPTH] if _is_collective(f.function)]
    inside = sum(n for n, frames in samples if any(f.function in here for f in frames[:_MOST_DEPTH]))
    if not here:  # in C
        inside = sum(n for n, frames in samples if frames[:1] and frames[0].line == thread.python[0].line)
    return inside >= 0.95 * sum(n for n, _frames in samples)
