"""Workers of task queues, in whichever process, whose jobs wait for the results of other jobs.

Frames of celery 5.3 (celery/app/trace.py, celery/result.py), billiard 4.2 (billiard/pool.py) and dramatiq 1.17
(dramatiq/worker.py, dramatiq/message.py, dramatiq/results). Of any other library the workers are the threads of one name whose
outermost frames are the same; a job waits for another one if it rests in a function of that library that waits for a result.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ....evidence import Process, PythonFrame, Thread
from ....evidence.vocabulary import WaitKind
from ....sourcepaths import package
from ...facts.knowledge import is_library, is_stdlib
from ...facts.view import View

#: Frames in which a worker runs a job: (library, end of the file, function).
_JOBS = (("celery", "/celery/app/trace.py", "trace_task"), ("dramatiq", "/dramatiq/worker.py", "process_message"))
#: Frames in which a job waits for the result of another one.
_WAITS = {
    "celery": ("/celery/result.py",),
    "dramatiq": ("/dramatiq/message.py", "/dramatiq/composition.py", "/dramatiq/results/backend.py"),
}
_WAITING = ("get", "join", "join_native", "get_result", "get_results", "wait")
#: Frames of a worker's own loop, and what it calls while it waits for a job; None: anything but a job.
_LOOPS = (("celery", "/billiard/pool.py", "workloop", None), ("dramatiq", "/dramatiq/worker.py", "run", "get"))
_TABLED = frozenset(("celery", "billiard", "dramatiq"))
#: Waits in which a job polls for a result, or waits for one inside its process.
_POLLS: FrozenSet[WaitKind] = frozenset(("sleep", "condition", "event", "lock", "futex"))
_Key = Tuple[str, str, str, str]


class Job(NamedTuple):
    """A worker that runs a job."""

    process: Process
    thread: Thread
    waits: bool  # for the result of another job
    frames: Tuple[PythonFrame, ...]  # of the job, most recent call first


class Workers(NamedTuple):
    """All captured workers of one library's queues."""

    library: str
    jobs: Tuple[Job, ...]
    free: Tuple[Tuple[Process, Thread], ...]  # those that wait for a job

    @property
    def all_wait(self) -> bool:
        """Return whether each worker runs a job that waits for another one."""
        return bool(self.jobs) and not self.free and all(job.waits for job in self.jobs)


def task_workers(view: View) -> Iterator[Workers]:
    """Yield the workers of each library that run jobs."""
    for library, file, function in _JOBS:
        jobs: List[Job] = []
        free: List[Tuple[Process, Thread]] = []
        for process in view.pythons:
            own = [job for thread in process.threads for job in _job(process, thread, library, file, function)]
            jobs += own
            busy = {job.thread.tid for job in own}
            idle = [tid for pool in process.pools if busy.intersection(pool.threads) for tid in pool.idle]
            free += [
                (process, thread)
                for thread in process.threads
                if thread.tid not in busy and (thread.tid in idle or _is_free(thread, library))
            ]
        if jobs:
            yield Workers(library, tuple(jobs), tuple(free))
    yield from _of_others(view)


def _of_others(view: View) -> Iterator[Workers]:
    """Yield the workers of libraries without a table, where a job waits for the result of another one."""
    groups: Dict[_Key, List[Tuple[Process, Thread]]] = {}
    for process in view.pythons:
        for thread in process.threads:
            key = _dispatch(thread)
            if key is not None:
                groups.setdefault(key, []).append((process, thread))
    for key, members in groups.items():
        jobs = [Job(p, t, _waits_for_own(t, key[0]), t.python) for p, t in members if _runs_a_job(t)]
        if any(job.waits for job in jobs):
            yield Workers(key[0], tuple(jobs), tuple(member for member in members if not _runs_a_job(member[1])))


def _dispatch(thread: Thread) -> Optional[_Key]:
    """Return a library, the thread's two outermost functions of it, and its name without numbers; None if it begins otherwise."""
    outer = [frame for frame in reversed(thread.python) if not is_stdlib(frame)][:2]
    library = package(outer[0].file) if outer else None
    if library is None or library in _TABLED or thread.is_main or package(outer[-1].file) != library:
        return None
    return library, outer[0].function, outer[-1].function, (thread.name or "").rstrip("0123456789")


def _runs_a_job(thread: Thread) -> bool:
    return any(not is_library(frame) for frame in thread.python)


def _waits_for_own(thread: Thread, library: str) -> bool:
    """Return whether the innermost frames, of this library alone, wait for a result."""
    inner: List[PythonFrame] = []
    for frame in thread.python:
        if not is_library(frame):
            break
        inner.append(frame)
    own = [frame for frame in inner if not is_stdlib(frame)]
    if thread.wait is None or thread.wait.kind not in _POLLS or not own:
        return False
    return all(package(frame.file) == library for frame in own) and any(frame.function in _WAITING for frame in own)


def _job(process: Process, thread: Thread, library: str, file: str, function: str) -> Iterator[Job]:
    frames = thread.python
    at = next((i for i, f in enumerate(frames) if f.function == function and f.file.endswith(file)), None)
    if at is not None:
        above = frames[:at]
        waits = any(f.function in _WAITING and f.file.endswith(_WAITS[library]) for f in above)
        yield Job(process, thread, waits, above)


def _is_free(thread: Thread, library: str) -> bool:
    """Return whether a thread is in a worker's loop, and waits for a job there."""
    frames: Sequence[PythonFrame] = thread.python
    for name, file, function, called in _LOOPS:
        for i, frame in enumerate(frames):
            if name == library and frame.function == function and frame.file.endswith(file):
                return called is None or (i > 0 and frames[i - 1].function == called)
    return False
