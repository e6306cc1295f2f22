"""Ranks: processes that run the same program and meet in collective operations, of any library."""

from __future__ import annotations

import re
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import NativeFrame, Process, PythonFrame, Thread
from ....waitgraph.edges import EdgeKind
from ...facts.knowledge import in_table, is_library, is_stdlib, multiprocessing
from ...facts.view import View

#: Names of collective operations in MPI, NCCL, Gloo, Horovod, JAX and home-made libraries, without underscores.
_NAMES = frozenset((
    "allreduce", "allgather", "reducescatter", "broadcast", "bcast", "barrier", "alltoall", "scatter", "gather", "reduce",
    "allgatherobject", "broadcastobjectlist", "allgatherintotensor", "reducescattertensor", "alltoallsingle",
    "monitoredbarrier", "scatterobjectlist", "gatherobject", "allreducecoalesced", "allgatherv", "gatherv", "scatterv",
    "scan", "exscan", "syncall", "syncglobaldevices",
))  # fmt: skip
#: Names among these that have other meanings as well. They count in a library for ranks; elsewhere only while the thread waits
#: for a peer, and never as certain.
_COMMON = frozenset(("broadcast", "scatter", "gather", "gatherv", "scatterv", "reduce", "scan"))
#: Libraries for ranks: by the path of a Python file, and by the name of a C function.
_LIBRARIES = re.compile(r"/(torch/distributed|mpi4py|horovod|jax|deepspeed|megatron|accelerate|oneccl)\w*/")
_NATIVE = re.compile(r"mpi|nccl|gloo|c10d|hvd|horovod", re.I)
#: Kinds of waits for another process.
_PEERS: FrozenSet[EdgeKind] = frozenset(
    ("socket", "pipe", "semaphore", "condition", "event", "barrier", "queue", "futex")
)
#: The frame of a multiprocessing child that calls the function given to it.
_RUNS = tuple((file, "run") for file in multiprocessing("process"))
_MOST_DEPTH = 12


_PARTS = re.compile(r"[\W\d_]+")


class Rank(NamedTuple):
    """A process of a job, with the collective operation that it waits in."""

    process: Process
    thread: Thread
    operation: Optional[str]  # None: in no operation
    site: Optional[PythonFrame]  # the program's line that called it
    sure: bool = False  # True: the name has no other meaning, or the function is one of a library for ranks


def jobs_of(view: View) -> Iterator[List[Process]]:
    """Yield groups of processes that do the same work.

    They run the same program, or multiprocessing started them for one function. A program's key has two parts, a
    function's three: processes of a program that run the function, such as the parent, belong to its group as well.
    """
    groups: Dict[Tuple[object, ...], List[Process]] = {}
    for process in view.pythons:
        main = view.main(process)
        frames = main.python if main is not None else ()
        outermost = [f for f in frames if not is_library(f)][-1:]
        made_for = next((frames[i - 1] for i, f in enumerate(frames) if i and in_table(f, _RUNS)), None)
        program = (process.exe, outermost[0].file if outermost else None)
        key: Tuple[object, ...] = program if made_for is None else (process.exe, made_for.file, made_for.function)
        groups.setdefault(key, []).append(process)
    for doing, group in groups.items():
        others = (p for other, several in groups.items() if len(other) < len(doing) for p in several)
        job = [*group, *(p for p in others if _runs(view, p, doing))]
        if len(job) > 1:
            yield job


def _runs(view: View, process: Process, function: Tuple[object, ...]) -> bool:
    """Return whether the main thread of a process runs a function."""
    main = view.main(process)
    return main is not None and any((process.exe, f.file, f.function) == function for f in main.python)


def rank_of(process: Process) -> Rank:
    """Return the rank of a process, from its first thread in a collective operation, the main thread first."""
    threads = sorted(process.threads, key=lambda t: not t.is_main)
    for thread in threads:
        frames = thread.python[:_MOST_DEPTH]
        at = max((i for i, f in enumerate(frames) if _is_operation(thread, f)), default=None)
        called = _in_c(thread) if at is None and frames else None
        if called is not None:
            return Rank(process, thread, called, next((f for f in frames if not is_library(f)), frames[0]), True)
        if at is not None:
            site = next((f for f in thread.python[at + 1 :] if not is_library(f) and f.file[:1] != "<"), None)
            return Rank(process, thread, frames[at].function, site or frames[at], _is_sure(frames[at]))
    return Rank(process, threads[0], None, None) if threads else Rank(process, Thread(process.pid), None, None)


def _is_sure(frame: PythonFrame) -> bool:
    """Return whether a frame is certainly a collective operation."""
    return _plain(frame.function) not in _COMMON or _LIBRARIES.search(frame.file) is not None


def _is_operation(thread: Thread, frame: PythonFrame) -> bool:
    """Return whether a frame is, or may be, a collective operation."""
    if is_stdlib(frame) or not _is_collective(frame.function):
        return False
    return _is_sure(frame) or (thread.wait is not None and thread.wait.kind in _PEERS)


def _in_c(thread: Thread) -> Optional[str]:
    """Return the operation that the innermost Python frame has called in C; None if there is none.

    It is named by the native frames, the nearest to Python first (mpi4py's wrappers before ``PMPI_Bcast``), or else by the
    frame's value stack.
    """
    above: List[str] = []
    for frame in thread.stack:
        if not isinstance(frame, NativeFrame):
            break
        above.append(frame.function or "")
    for function in reversed(above):
        parts = [part.lower() for part in _PARTS.split(function)]
        operation = next((part for part in parts if part in _NAMES and _is_meant(part, function)), None)
        if operation is not None or function.lower().startswith("nccl"):
            return operation or function.lower()[len("nccl") :]
    whole = thread.calling.function if thread.calling is not None else ""
    called = whole.rsplit(".", 1)[-1]
    return called if _is_collective(called) and _is_meant(called, whole) else None


def _is_meant(name: str, function: str) -> bool:
    """Return whether a name in a C function means the collective operation."""
    return _plain(name) not in _COMMON or _NATIVE.search(function) is not None


def _plain(function: str) -> str:
    return function.replace("_", "").lower()


def _is_collective(function: str) -> bool:
    return _plain(function) in _NAMES


def stays(view: View, thread: Thread) -> bool:
    """Return whether a thread was in the operation all the time, including polling inside it."""
    samples = list(view.samples(thread))
    if not samples:
        return not view.moves(thread)
    here = [f.function for f in thread.python[:_MOST_DEPTH] if _is_collective(f.function)]
    inside = sum(n for n, frames in samples if any(f.function in here for f in frames[:_MOST_DEPTH]))
    if not here:  # called in C
        inside = sum(n for n, frames in samples if frames[:1] and frames[0].line == thread.python[0].line)
    return inside >= 0.95 * sum(n for n, _frames in samples)
