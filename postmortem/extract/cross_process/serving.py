"""Threads that serve the other end of a pipe or socket within the same process.

A descriptor belongs to the whole process. A thread that waits for it, or whose frame refers to its socket or
connection, is taken to serve it: otherwise a thread would seem to wait for its own process, and thus for itself.
"""

from __future__ import annotations

import itertools
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.objects.attributes import attribute
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...evidence import Resource, Thread, Waker
from ...evidence import replace as changed
from ...frameworks.asyncio.streams import descriptor_of_file, descriptor_of_socket
from ...memory import Fault

#: Limits: threads searched, frames of a thread, locals of a frame, threads named for one resource.
_MOST_LOOKED_AT, _MOST_FRAMES, _MOST_LOCALS, _MOST_THREADS = 1000, 60, 200, 16
_CONNECTION = "_handle"  # of Lib/multiprocessing/connection.py, _ConnectionBase


def with_servers(
    pid: int,
    resources: Sequence[Resource],
    threads: Sequence[Thread],
    frames: Mapping[int, Sequence[Frame]],
    python: Optional[Python],
) -> Tuple[Resource, ...]:
    """Return the resources, with threads in place of the process itself if it has several.

    ``frames``: by tid.
    """
    asked = [r for r in resources if r.kind in ("pipe", "socket") and r.waiters and any(w.pid == pid for w in r.wakers)]
    if not asked or len(threads) < 2:
        return tuple(resources)
    at_hand = _at_hand(threads, frames, python)
    by_tid = {t.tid: t for t in threads}
    made = {r.id: _named(pid, r, by_tid, at_hand) for r in asked}
    return tuple(made.get(r.id, r) for r in resources)


def _named(pid: int, resource: Resource, threads: Mapping[int, Thread], at_hand: Mapping[int, Set[int]]) -> Resource:
    waits = {t.wait.fd for tid in resource.waiters for t in [threads.get(tid)] if t is not None and t.wait is not None}
    ends = [end for end in resource.ends if end.pid == pid and end.fd not in waits]
    serving = [(tid, end.fd) for end in ends for tid in sorted(at_hand.get(end.fd, set()) - set(resource.waiters))]
    own: Tuple[Waker, ...]
    if serving:
        own = tuple(Waker("end", "inferred", pid, tid, name=f"descriptor {fd}") for tid, fd in serving[:_MOST_THREADS])
    elif len(resource.waiters) < len(threads) <= _MOST_THREADS:
        name = next((w.name for w in resource.wakers if w.pid == pid), None)
        own = tuple(Waker("end", "kernel", pid, tid, name=name) for tid in threads if tid not in resource.waiters)
    else:
        return resource
    wakers: List[Waker] = [w for w in resource.wakers if w.pid != pid]
    return changed(resource, wakers=(*wakers, *own))


def _at_hand(
    threads: Sequence[Thread], frames: Mapping[int, Sequence[Frame]], python: Optional[Python]
) -> Dict[int, Set[int]]:
    """Return descriptor → threads that wait for it or refer to it in a frame's variable."""
    found: Dict[int, Set[int]] = {}
    for thread in threads[:_MOST_LOOKED_AT]:
        numbers = {thread.wait.fd} if thread.wait is not None and thread.wait.fd is not None else set()
        numbers.update(_in_frames(python, frames.get(thread.tid, ())) if python is not None else ())
        for number in numbers:
            found.setdefault(number, set()).add(thread.tid)
    return found


def _in_frames(python: Python, frames: Iterable[Frame]) -> Iterator[int]:
    for frame in itertools.islice(frames, _MOST_FRAMES):
        for _name, value in itertools.islice(python.frames.locals(frame), _MOST_LOCALS):
            number = _descriptor(python, value)
            if number is not None:
                yield number


def _descriptor(python: Python, value: int) -> Optional[int]:
    objects = python.objects
    number = descriptor_of_socket(objects, value)
    if number is None:
        number = descriptor_of_file(objects, value)
    if number is None and (objects.type_name(value) or "").endswith("Connection"):
        handle = attribute(objects, value, _CONNECTION)
        try:
            number = objects.integer(handle) if handle else None
        except (Fault, NotThat):
            return None
    return number
