"""Thread pools of Twisted with jobs in their queue.

Source: twisted/_threads/_team.py of Twisted 15.0-26.10: ``Team`` keeps the jobs that no worker is free for in ``_pending``;
``_coordinateThisTask`` gives a worker a function ``doWork``, which refers to the ``Team`` as ``self`` and to its job as
``task``. A job is put into ``_pending`` only when the pool may start no further worker (twisted/_threads/_pool.py).
"""

from __future__ import annotations

from typing import Dict, Final, List, Optional, Sequence, Set

from ...cpython.frames.calls import callable_name
from ...cpython.frames.frame import Frame, Frames
from ...cpython.objects.attributes import attributes
from ...cpython.objects.builtins import NotThat
from ...memory import Fault
from ..executors import ThreadPool, WorkItem

_FILE = "twisted/_threads/_team.py"
#: Outermost frames searched for the pool's: ``_bootstrap``, ``_bootstrap_inner``, ``run``, ``work``, ``doWork``.
_OUTERMOST = 8
KIND: Final = "twisted.ThreadPool"


def team_of(reader: Frames, frames: Sequence[Frame]) -> Optional[int]:
    """Return the address of the ``Team`` whose job a thread runs; None if it runs none."""
    frame = next((f for f in frames[-_OUTERMOST:] if f.is_in("doWork", _FILE)), None)
    return reader.local(frame, "self") if frame is not None else None


def full_pools(reader: Frames, stacks: Sequence[Sequence[Frame]]) -> List[ThreadPool]:
    """Return the pools of these threads that have jobs in their queue, in order of their first thread."""
    threads: Dict[int, Set[Optional[int]]] = {}
    for frames in stacks:
        team = team_of(reader, frames)
        if team:
            threads.setdefault(team, set()).add(reader.local(frames[-1], "self"))
    found = (_pool(reader, team, several) for team, several in threads.items())
    return [pool for pool in found if pool is not None and pool.items]


def _pool(reader: Frames, team: int, threads: Set[Optional[int]]) -> Optional[ThreadPool]:
    """Return a pool; None if unreadable. It has as many workers as it may have, for a job is queued."""
    objects = reader.objects
    try:
        values = attributes(objects, team)
        pending, idle = list(objects.deque_items(values["_pending"])), objects.set_items(values["_idle"])
        busy = objects.integer_or_none(values.get("_busyCount"))
    except (Fault, NotThat, KeyError):
        return None
    items = tuple(WorkItem(one, 0, callable_name(objects, one), one) for one in pending)
    known = tuple(thread for thread in threads if thread is not None)
    limit = busy + len(list(idle)) if busy is not None else None
    return ThreadPool(team, None, limit, known if None not in threads else None, items, None, None, KIND)
