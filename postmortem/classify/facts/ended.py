"""Processes that have ended, and what that says about those who wait for them."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from ...evidence import Ended, Process
from ...findings import Template, Text
from .knowledge import BEGINS, in_table
from .view import View

_BY_SIGNAL = Template("process {pid}{name:+ (@)} was ended by signal {signal}{killer}")
_BY_STATUS = Template("process {pid}{name:+ (@)} ended with exit status {status}")
_SOMEHOW = Template("process {pid}{name:+ (@)} has ended")
_MEMORY = Template("; the kernel ended {count:n process} of its control group for lack of memory during the window")
_KILL = 9


def ended_children(view: View, process: Process) -> Tuple[Ended, ...]:
    """Return the children of a process that have ended, zombies first."""
    found: Dict[int, Ended] = {}
    for child in view.children(process):
        if child.state in ("Z", "X"):
            found[child.pid] = Ended(child.pid, "zombie", status=child.exit_status)
    for one in process.ended:
        known = found.get(one.pid)
        if known is None or (known.status is None and one.status is not None):
            found[one.pid] = one
    return tuple(found.values())


def made_children(view: View, process: Process) -> List[Process]:
    """Return the children of a process that run what a Process object of multiprocessing has started."""
    return [
        child
        for child in view.children(process)
        if any(in_table(frame, BEGINS) for thread in child.threads if thread.is_main for frame in thread.python)
    ]


def lost_count(view: View, process: Process) -> int:
    """Return how many more Process objects of multiprocessing a process has made than it has children that run one."""
    return (process.children_made or 0) - len(made_children(view, process))


def near(view: View, process: Process) -> Tuple[Ended, ...]:
    """Return the ended children of a process, and those of its parent: its ended siblings."""
    parent = view.by_pid.get(process.ppid or 0)
    return (*ended_children(view, process), *(ended_children(view, parent) if parent is not None else ()))


def told(view: View, ended: Tuple[Ended, ...], most: int = 3) -> Iterator[Text]:
    """Yield a text on how each of these processes ended."""
    kills = max((p.cgroup.oom_kills or 0 for p in view.processes if p.cgroup is not None), default=0)
    for one in ended[:most]:
        if one.status is None:
            yield _SOMEHOW(pid=one.pid, name=one.name)
        elif one.status < 0:
            killer = _MEMORY(count=kills) if kills and one.status == -_KILL else None
            yield _BY_SIGNAL(pid=one.pid, name=one.name, signal=-one.status, killer=killer)
        else:
            yield _BY_STATUS(pid=one.pid, name=one.name, status=one.status)
