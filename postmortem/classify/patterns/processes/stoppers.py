"""The origin of a stop: a tracer or signal number reported by the kernel, or lines of the tree's programs that send signals.

The kernel does not confirm the latter.
"""

from __future__ import annotations

from typing import List, Tuple

from ....evidence import Process, Thread
from ....findings import Culprit, Template, Text
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.suspended import standing
from ...facts.view import View

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
    19: Template("SIGSTOP, which no process can catch or ignore"),
    20: Template("SIGTSTP, which Ctrl-Z sends"),
    21: Template("SIGTTIN, which the kernel sends to a background job that reads its terminal"),
    22: Template("SIGTTOU, which the kernel sends to a background job that changes its terminal, or writes to it"),
}

_STOPPED_BY = Template("the signal that stopped it is {signal}")
_OTHER_SIGNAL = Template("number {number}")
_BY_ITSELF = Template("it was stopped during its own call of kill at {frame}")
_SENDS = Template(
    "{whose} code, in {process}, sends such a signal at {frames}; the kernel does not report the actual sender"
)
_ITS_OWN, _ITS_PARENTS, _ANOTHERS = Template("its own"), Template("its parent's"), Template("another process's")
_UNTOLD = Template("the kernel does not report who sent the signal")
_TRACES = Template("the kernel reports that {process} traces it")
_TRACER = Template("{program} (PID {pid})")
_OUTSIDE = Template("a process outside the tree")


def sends(thread: Thread) -> bool:
    """Return whether a thread was sending a signal."""
    if thread.wait is not None:
        return thread.wait.syscall in _CALLS
    return thread.calling is not None and thread.calling.function in _SELF


def signal_told(process: Process) -> List[Text]:
    """Return a text on the signal that stopped the process, if known."""
    number = process.stopped_by
    if number is None:
        return []
    return [_STOPPED_BY(signal=_SIGNALS[number]() if number in _SIGNALS else _OTHER_SIGNAL(number=number))]


def stoppers(view: View, process: Process) -> Tuple[Tuple[Culprit, ...], List[Text]]:
    """Return the lines that stop a process, as far as known, and texts on the source of that knowledge."""
    if process.tracer:
        return _tracer(view, process)
    for thread in process.threads:
        frame = own_frame(thread.python)
        if sends(thread) and frame is not None:
            return (view.culprit(process, frame, thread),), [_BY_ITSELF(frame=frame)]
    if process.stopped_by in TERMINAL:
        return standing(view, process), []
    order = dict.fromkeys((*view.ancestors(process), *(p.pid for p in view.processes if p is not process), process.pid))
    for other in [view.by_pid[pid] for pid in order if pid in view.by_pid]:
        if other.stops:
            whose = _ITS_OWN if other is process else _ITS_PARENTS if other.pid == process.ppid else _ANOTHERS
            said = _SENDS(whose=whose(), process=clauses.process(other), frames=other.stops[:4])
            return tuple(view.culprit(other, frame) for frame in other.stops), [said]
    return (), [_UNTOLD()]


def _tracer(view: View, process: Process) -> Tuple[Tuple[Culprit, ...], List[Text]]:
    """Return the current line of the tracer, and a text that names it."""
    tid = process.tracer
    for other in view.processes:
        thread = view.thread(other, tid)
        if thread is not None or other.pid == tid:
            lines = standing(view, other)
            return lines, [_TRACES(process=clauses.process(other))]
    return (), [_TRACES(process=_TRACER(program=process.tracer_name or _OUTSIDE(), pid=tid))]
