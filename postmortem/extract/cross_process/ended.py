"""Child processes that have ended, from zombies and from their parents' own records."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ...evidence import Ended, Process
from ...evidence import replace as changed
from ...frameworks.children import started_children
from ...frameworks.processpools import Worker
from ..process.context import ProcessContext
from .forks import Trace

_SIGNAL, _STATUS_SHIFT, _STATUS = 0x7F, 8, 0xFF


def exit_status(code: object) -> Optional[int]:
    """Return the exit status of a wait status: minus the signal's number if one ended the process.

    None if unknown. The kernel shows 0 where the status may not be read (proc_pid_stat(5)), so 0 is unknown, too.
    """
    if not isinstance(code, int) or code <= 0:
        return None
    return -(code & _SIGNAL) if code & _SIGNAL else code >> _STATUS_SHIFT & _STATUS


def children_of(context: ProcessContext, own_pid: int) -> List[Worker]:
    """Return the children that a process's objects record; ``own_pid``: its PID in its own namespace."""
    return started_children(context.python, own_pid) if context.python is not None else []


def recorded(children: Sequence[Worker]) -> Tuple[Ended, ...]:
    """Return the children whose exit status is recorded."""
    return tuple(Ended(c.pid, "recorded", c.name, c.status) for c in children if c.pid is not None and c.ended)


def running(children: Sequence[Worker]) -> Dict[int, Optional[str]]:
    """Return PID → name of the children that have no exit status yet."""
    return {c.pid: c.name for c in children if c.pid is not None and c.ended is False}


def with_ended(processes: Sequence[Process], traces: Mapping[int, Trace]) -> List[Process]:
    """Return the processes of a whole tree, with the children that are recorded and no longer run.

    Left out where PIDs are those of a namespace: they would be compared with others.
    """
    alive = {p.pid for p in processes if p.state not in ("Z", "X")}
    zombies = {p.pid: p for p in processes if p.state in ("Z", "X")}
    return [_completed(p, traces.get(p.pid), alive, zombies) for p in processes]


def _completed(process: Process, trace: Optional[Trace], alive: Set[int], zombies: Mapping[int, Process]) -> Process:
    if trace is None or not trace.children or process.own_pid not in (None, process.pid):
        return process
    known = {one.pid for one in process.ended}
    missing = []
    for pid, name in trace.children.items():
        zombie = zombies.get(pid)
        if pid not in alive and pid not in known:
            status = zombie.exit_status if zombie is not None else None
            missing.append(Ended(pid, "zombie" if zombie is not None else "missing", name, status))
    return changed(process, ended=(*process.ended, *missing)) if missing else process
