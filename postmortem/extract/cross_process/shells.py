"""Shells that wait for their children in a call that does not name them.

dash (from 0.5.11 on) waits in sigsuspend(2) until SIGCHLD comes, and calls wait(2) then. Source: waitproc in src/jobs.c,
dash 0.5.12.
"""

from __future__ import annotations

from typing import List, Sequence

from ...evidence import Process, Thread, Wait
from ...evidence import replace as changed

_CALL = "rt_sigsuspend"


def with_child_waits(processes: Sequence[Process]) -> List[Process]:
    """Return the processes; the only thread of one without Python that has children and waits for a signal waits for them."""
    parents = {process.ppid for process in processes}
    return [_waiting(process) if process.pid in parents else process for process in processes]


def _waiting(process: Process) -> Process:
    if len(process.threads) != 1 or process.interpreters:
        return process
    thread: Thread = process.threads[0]
    if thread.python or thread.wait is None or thread.wait.syscall != _CALL:
        return process
    return changed(process, threads=(changed(thread, wait=Wait("process", _CALL, endless=True)),))
