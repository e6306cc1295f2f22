"""Events that could still wake an idle event loop."""

from __future__ import annotations

from typing import Dict

from ....evidence import Process
from ...facts import knowledge


def peers_only(process: Process) -> Dict[str, str]:
    """Return the tasks that only a peer can wake, as task → the first such connection.

    They await a future of the program's own, on a loop that only connections opened by the program can wake: it has no
    timer, no listening or accepted socket, and no other thread with anything else to do.
    """
    resources = {r.id: r for r in process.resources}
    found: Dict[str, str] = {}
    busy = {t.tid for t in process.threads if (t.wait is None or t.wait.kind != "socket") and t.python}
    for loop in process.loops:
        sockets = [resources[s] for s in loop.sockets if resources[s].remote or resources[s].listening]
        serves = any(s.listening or s.accepted is not False for s in sockets)
        if busy - {loop.tid} or loop.scheduled != 0 or not sockets or serves:
            continue
        for task in process.tasks:
            own = bool(task.stack) and not knowledge.is_stdlib(task.stack[0])
            if task.loop == loop.id and own and task.awaiting == "Future":
                found[task.id] = sockets[0].id
    return found
