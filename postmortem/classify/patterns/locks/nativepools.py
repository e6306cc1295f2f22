"""Thread pools inside native libraries whose workers all wait for results, as the program that called the library does."""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, NamedTuple, Tuple

from ....evidence import NativeFrame, Process, Thread
from ....evidence.vocabulary import WaitKind
from ...facts import native
from ...facts.view import View

_WAITS: FrozenSet[WaitKind] = frozenset(("condition", "futex", "semaphore"))


class NativePool(NamedTuple):
    """Workers of a native pool, in jobs, and the program's thread that waits in the same function as they do."""

    caller: Thread
    workers: Tuple[Thread, ...]
    where: NativeFrame
    idle: int = 0  # workers that run the same code and wait for jobs: of another pool, or of this one


def native_pools(view: View, process: Process) -> Iterator[NativePool]:
    """Yield the native pools whose workers in jobs all wait for a result, in the function in which a caller waits.

    Workers are native threads whose outermost functions are the same. A free one waits in that function itself.
    """
    helpers = [(thread, frames) for thread in process.threads for frames in [_helpers(thread)] if frames]
    told = set()
    for caller in process.threads:
        inside = native.called(caller) if caller.python and _sleeps(view, caller) else ()
        if not inside or inside[0].function is None:
            continue
        where = _place(inside[0])
        in_jobs = [frames for _thread, frames in helpers if _place(frames[0]) == where and len(frames) > 2]
        loops = {_place(frames[-1]) for frames in in_jobs}
        workers = [(thread, frames) for thread, frames in helpers if _place(frames[-1]) in loops]
        idle = [thread for thread, frames in workers if _place(frames[0]) in loops and _sleeps(view, thread)]
        busy = [(thread, frames) for thread, frames in workers if thread not in idle]
        stuck = all(_place(frames[0]) == where and _sleeps(view, thread) for thread, frames in busy)
        if busy and stuck and where not in told:
            told.add(where)
            yield NativePool(caller, tuple(thread for thread, _frames in busy), inside[0], len(idle))


def _place(frame: NativeFrame) -> Tuple[object, object]:
    return frame.module, frame.function


def _helpers(thread: Thread) -> List[NativeFrame]:
    """Return the frames of libraries of a thread that runs no Python code, most recent call first.

    None of one that runs code which lies in no file, as compiled at run time by a virtual machine: that may be any code.
    """
    if thread.python or any(frame.module is None for frame in thread.native):
        return []
    return [frame for frame in thread.native if native.is_program(frame) and frame.function is not None]


def _sleeps(view: View, thread: Thread) -> bool:
    """Return whether a thread waits natively, without a time limit, and did not go on."""
    wait = thread.wait
    return (
        wait is not None
        and wait.kind in _WAITS
        and wait.endless is not False
        and view.rests(thread)
        and not view.moves(thread)
    )
