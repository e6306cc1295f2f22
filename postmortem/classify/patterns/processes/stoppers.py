"""The origin of a stop: a tracer or signal number reported by the kernel, or lines of the tree's programs that send signals.

The kernel does not confirm the latter.
"""

from __future__ import annotations

from typing import List, Tuple

from ....evidence import Process, Thread
from ....findings import Culprit
from ...facts.knowledge import own_frame, short
from ...facts.suspended import named, standing
from ...facts.view import View
from ..io.pipes import ancestors

_SELF = (
    "posix.kill",
    "posix.killpg",
    "signal.raise_signal",
    "_signal.raise_signal",
    "signal.pthread_kill",
    "_signal.pthread_kill",
)
_CALLS = ("kill", "tkill", "tgkill")
TERMINAL = (21, 22)
#: Signal numbers of Linux on every architecture that Python supports except MIPS.
_SIGNALS = {
    19: ("SIGSTOP", "which no process can refuse"),
    20: ("SIGTSTP", "which Ctrl-Z sends"),
    21: ("SIGTTIN", "which the kernel sends to a background job that reads its terminal"),
    22: ("SIGTTOU", "which the kernel sends to a background job that changes its terminal, or writes to it"),
}


def sends(thread: Thread) -> bool:
    """Return whether a thread was sending a signal."""
    if thread.wait is not None:
        return thread.wait.syscall in _CALLS
    return thread.calling is not None and thread.calling.function in _SELF


def signal_told(process: Process) -> List[str]:
    """Return a sentence on the signal that stopped the process, if known."""
    if process.stopped_by is None:
        return []
    name, why = _SIGNALS.get(process.stopped_by, (f"signal {process.stopped_by}", "of which nothing is known"))
    return [f"the signal that stopped it is {name}, {why}"]


def stoppers(view: View, process: Process) -> Tuple[Tuple[Culprit, ...], List[str]]:
    """Return the lines that stop a process, as far as known, and sentences on the source of that knowledge."""
    if process.tracer:
        return _tracer(view, process)
    for thread in process.threads:
        frame = own_frame(thread.python)
        if sends(thread) and frame is not None:
            return (view.culprit(process, frame, thread),), [
                f"it was stopped in its own call of kill at {short(frame)}"
            ]
    if process.stopped_by in TERMINAL:
        return standing(view, process), []
    order = dict.fromkeys(
        (*ancestors(view, process), *(p.pid for p in view.processes if p is not process), process.pid)
    )
    for other in [view.by_pid[pid] for pid in order if pid in view.by_pid]:
        if other.stops:
            places = ", ".join(map(short, other.stops[:4]))
            kin = (
                "its own" if other is process else "its parent's" if other.pid == process.ppid else "another process's"
            )
            said = f"{kin} code, {named(other)}, sends such a signal at {places}; who really sent it the kernel does not tell"
            return tuple(view.culprit(other, frame) for frame in other.stops), [said]
    return (), ["who sent the signal the kernel does not tell"]


def _tracer(view: View, process: Process) -> Tuple[Tuple[Culprit, ...], List[str]]:
    """Return the current line of the tracer, and a sentence that names it."""
    tid = process.tracer
    for other in view.processes:
        thread = view.thread(other, tid)
        if thread is not None or other.pid == tid:
            lines = standing(view, other)
            return lines, [f"the kernel says that {named(other)} traces it"]
    return (), [f"the kernel says that {process.tracer_name or 'a process outside of the tree'} (PID {tid}) traces it"]
