"""Shells that wait for their children in a call that does not name them.

dash (from 0.5.11 on) waits in sigsuspend(2) until SIGCHLD comes, and calls wait(2) then. Source: waitproc in src/jobs.c,
dash 0.5.12.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from ...evidence import Process, Thread, Wait
from ...evidence import replace as changed

_CALLS = ("rt_sigsuspend", "pause")


def with_child_waits(processes: Sequence[Process]) -> List[Process]:
    """Return the processes; the only thread of one without Python that has children and waits for a signal waits for them."""
    children: Dict[int, int] = {}
    for process in processes:
        if process.ppid is not None:
            children[process.ppid] = children.get(process.ppid, 0) + 1
    return [_waiting(process) if children.get(process.pid) else process for process in processes]


def _waiting(process: Process) -> Process:
    if len(process.threads) != 1 or process.interpreters:
        return process
    thread: Thread = process.threads[0]
    if thread.python or thread.wait is None or thread.wait.syscall not in _CALLS:
        return process
    return changed(process, threads=(changed(thread, wait=Wait("process", thread.wait.syscall, endless=True)),))
