"""Events that could still wake an idle event loop."""

from __future__ import annotations

from typing import Dict

from ....evidence import Process, Resource, Task
from ...facts import knowledge

#: Methods of asyncio's protocols that a transport calls when its peer has sent something (documentation of asyncio,
#: "Protocols"). Not ``connection_lost``: the program can close the connection, too.
_OF_A_PEER = ("data_received", "buffer_updated", "datagram_received", "eof_received", "error_received")


def peers_only(process: Process) -> Dict[str, str]:
    """Return the tasks that only a peer can wake, as task → the first such connection.

    They await a future of the program's own, on a loop without a timer, and without a listening or accepted socket. Either only
    protocols set it when data comes, or no other thread has anything else to do.
    """
    resources = {r.id: r for r in process.resources}
    found: Dict[str, str] = {}
    busy = {t.tid for t in process.threads if (t.wait is None or t.wait.kind != "socket") and t.python}
    for loop in process.loops:
        sockets = [resources[s] for s in loop.sockets if resources[s].remote or resources[s].listening]
        serves = any(s.listening or s.accepted is not False for s in sockets)
        if not sockets or serves or loop.scheduled != 0:
            continue
        alone = not busy - {loop.tid}
        for task in process.tasks:
            own = bool(task.stack) and not knowledge.is_stdlib(task.stack[0])
            if task.loop != loop.id or not own or task.awaiting != "Future":
                continue
            if alone or set_by_protocols(resources, task):
                found[task.id] = sockets[0].id
    return found


def set_by_protocols(resources: Dict[str, Resource], task: Task) -> bool:
    """Return whether only methods that a transport calls for its peer set what a task awaits, as far as the code tells."""
    awaited = resources.get(task.wait.resource or "") if task.wait is not None else None
    wakers = awaited.wakers if awaited is not None else ()
    sites = [
        waker.site for waker in wakers if waker.grade is not None or waker.tid is not None or waker.task is not None
    ]
    return bool(sites) and all(site is not None and site.function in _OF_A_PEER for site in sites)
