"""Workers of task queues, in whichever process, whose jobs wait for the results of other jobs.

Frames of celery 5.3 (celery/app/trace.py, celery/result.py), billiard 4.2 (billiard/pool.py) and dramatiq 1.17
(dramatiq/worker.py, dramatiq/message.py, dramatiq/results).
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Sequence, Tuple

from ....evidence import Process, PythonFrame, Thread
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
