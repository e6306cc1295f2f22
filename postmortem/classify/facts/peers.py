"""What the processes at the other end of a socket or pipe may still do."""

from __future__ import annotations

from typing import FrozenSet, Optional

from ...evidence import Process, Resource
from ...evidence.vocabulary import WaitKind
from ...waitgraph import Agent
from .knowledge import own_frame
from .view import View

#: Waits for a signal, an item or a permit, which code of the same process gives; a wait for an event or a queue is of the
#: kind of the condition inside.
_SIGNALS: FrozenSet[WaitKind] = frozenset(("condition", "semaphore"))


def answers_later(view: View, process: Process, resource: Optional[Resource]) -> bool:
    """Return whether code of the program at the other end waits for a signal that a thread there is still to give.

    Then an answer may come: a dispatcher's thread for one of its clients waits so until there is work for that client.
    """
    if resource is None:
        return False
    pids = {waker.pid or process.pid for waker in resource.wakers}
    return any(_is_signalled_later(view, view.by_pid[pid]) for pid in pids if pid in view.by_pid)


def _is_signalled_later(view: View, peer: Process) -> bool:
    known = {resource.id: resource for resource in peer.resources}
    for thread in peer.threads:
        wait = thread.wait
        if wait is None or wait.kind not in _SIGNALS or not wait.endless or own_frame(thread.python) is None:
            continue
        wanted = known.get(wait.resource or "")
        givers = [w for w in wanted.wakers if w.grade == "names"] if wanted is not None else []
        if any(view.graph.stuck(Agent(w.pid or peer.pid, w.tid, w.task)) is None for w in givers):
            return True
    return False
