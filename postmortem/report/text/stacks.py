"""The processes of the text report: their threads, event loops and tasks."""

from __future__ import annotations

from typing import List, Optional, Sequence

from ...evidence import Evidence, Frame, NativeFrame, Process, PythonFrame, Thread
from ...findings import Diagnosis
from ...signalnames import signal_name
from ...waitgraph import Agent, graph_of
from .. import escape, grouping
from ..phrases import labels, tasks
from . import crashes, details
from .page import Page

# Limits for one process. The JSON report has everything, and the text says so.
_GROUPS = 12
_IDLE_GROUPS = 6
_TASK_GROUPS = 8
_LOOPS = 3
_FRAMES = 10
_FEW_FRAMES = 4
_PROCESSES = 8

_MORE = "the JSON report (`-f json`) has all"


def show(page: Page, evidence: Evidence, diagnosis: Diagnosis, term: labels.Glossary) -> None:
    """Print every group of processes: the program, its GIL, its threads in groups, its event loops and tasks."""
    groups = grouping.processes(evidence, diagnosis)
    for group in groups[:_PROCESSES]:
        process = group.first
        _header(page, group, evidence, first=group is groups[0])
        if process.gil is not None and labels.gil_tells(process.gil, process):
            page.text(labels.gil_line(process.gil, process, term), 2)
        page.text(details.collecting(process), 2)
        page.text(details.stopped_world(process), 2)
        _threads(page, evidence, process, diagnosis, term)
        _loops(page, process, term)
        _tasks(page, evidence, process, diagnosis)
    left = sum(len(group.processes) for group in groups[_PROCESSES:])
    if left:
        page.blank()
        page.text(f"{labels.plural(left, 'more process')} left out: {_MORE}.")


def kind_of(process: Process) -> str:
    """Return the kind of program: ``CPython 3.12.1``, or why it is unknown or not Python."""
    python = process.python
    if python is not None:
        extra = ", free-threaded" if python.free_threaded else ""
        return f"{python.implementation} {python.version}{extra}{', debug build' if python.debug else ''}"
    name = (process.exe or (process.argv[0] if process.argv else "")).rsplit("/", 1)[-1]
    if name.startswith(("python", "pypy")):
        return "a Python interpreter whose state could not be read"
    if process.state == "Z" and all(thread.state == "Z" for thread in process.threads):
        return "a zombie: it has ended, and its parent has not collected its exit status"
    if process.exe is None and not any(thread.stack for thread in process.threads):
        return "a program that could not be inspected"
    return "not a Python program"


def command(process: Process) -> str:
    """Return the command line of a process, or the best substitute."""
    name = next((thread.name for thread in process.threads if thread.is_main and thread.name), None)
    return " ".join(process.argv) or process.exe or (f"[{name}]" if name else "command unknown")


def _header(page: Page, group: grouping.ProcessGroup, evidence: Evidence, first: bool) -> None:
    process, alike = group.first, len(group.processes) - 1
    label = f"Process {process.pid}" + (f" and {alike:,} more like it" if alike else "")
    page.heading(f"{label}: {escape.cut(escape.clean(command(process)), page.width - len(label) - 2)}")
    number = labels.plural(len(process.threads), "thread") + (" each" if alike else "")
    parts = [kind_of(process), f"{number} (stacks: most recent call first)" if first else number]
    if any(p.pid == process.ppid for p in evidence.processes):
        parts.append(f"{'children' if alike else 'child'} of {process.ppid}")
    if process.own_pid is not None and not alike:
        parts.append(f"{process.own_pid} in its own pid namespace")
    if process.fatal_signal:
        parts.append(f"ended by {signal_name(process.fatal_signal)}")
    page.text(", ".join(parts), 2)
    page.text(details.held_up(process), 2)
    crashes.show(page, process, 2)


def _threads(page: Page, evidence: Evidence, process: Process, diagnosis: Diagnosis, term: labels.Glossary) -> None:
    groups = grouping.threads(process, diagnosis)
    # Idle threads are folded only beside more informative ones; without a finding there may be no others.
    fold = bool(diagnosis.findings)
    stuck = graph_of(evidence).stuck
    folded = [
        g
        for g in groups
        if fold
        and g.idle
        and not g.cited
        and not g.first.is_main
        and not any(stuck(Agent(process.pid, t.tid)) for t in g.threads)
    ]
    shown = [g for g in groups if g not in folded]
    for group in shown[:_GROUPS]:
        _group(page, evidence, process, group, term)
    _left_out(page, shown[_GROUPS:], "stack")
    if folded:
        page.blank()
        page.text("Other threads, which wait and use hardly any CPU:", 2, "dim")
        for group in folded[:_IDLE_GROUPS]:
            _folded(page, process, group, term)
        _left_out(page, folded[_IDLE_GROUPS:], "such stack")


def _left_out(page: Page, groups: Sequence[grouping.ThreadGroup], noun: str) -> None:
    if groups:
        threads = labels.plural(sum(len(group.threads) for group in groups), "thread")
        page.blank()
        page.text(f"{labels.plural(len(groups), f'more {noun}')} ({threads}) left out: {_MORE}.", 2)


def _group(
    page: Page, evidence: Evidence, process: Process, group: grouping.ThreadGroup, term: labels.Glossary
) -> None:
    thread = group.first
    page.blank()
    page.line(_who(group), 2, "bold" if group.cited or thread.is_main else "cyan")
    state = labels.now(group.threads, process, term)
    if thread.gil == "holds" and thread.wait is not None:
        state += f"; holds the {term('GIL')}"
    work = labels.work(group.threads)
    if work:
        work = f" {'Together they ' if len(group.threads) > 1 else 'It '}{work}."
    if all(t.gc for t in group.threads):
        state += "; runs the garbage collector"
    page.text(f"{state[:1].upper()}{state[1:]}.{work}", 4)
    for ident, frame in dict.fromkeys((held.resource, held.frame) for held in thread.holds):
        what = labels.find_resource(process, ident)
        place = f"{labels.short_path(frame.file)}:{frame.line}"
        page.text(f"Holds {what.description if what else ident}, acquired in {frame.function} at {place}.", 4)
    details.exceptions(page, group.threads, 4)
    limit = _FRAMES if group.cited or thread.is_main else _FEW_FRAMES
    _frames(page, evidence, thread.stack, limit, thread)


def _who(group: grouping.ThreadGroup) -> str:
    thread = group.first
    main = " (main)" if thread.is_main and thread.name != "MainThread" else ""
    if len(group.threads) == 1:
        return f"{labels.label(thread)}{main}"
    names = list(dict.fromkeys(t.name for t in group.threads if t.name))
    label = f' "{names[0]}"' + (f' … "{names[-1]}"' if len(names) > 1 else "") if names else ""
    return f"×{len(group.threads)} threads{label}{main}, first {thread.tid}"


def _folded(page: Page, process: Process, group: grouping.ThreadGroup, term: labels.Glossary) -> None:
    place = _place(group.first)
    what = labels.now(group.threads, process, term)
    number = len(group.threads)
    many = f"×{number} threads: each " if number > 1 else f"{labels.label(group.first)}: "
    page.text(f"{many}{what}{f'; in {place}' if place else ''}", 4, "dim", first="- ")


def _place(thread: Thread) -> Optional[str]:
    frame = labels.own_place(thread.python)
    if frame is not None:
        return f"{frame.function} at {labels.short_path(frame.file)}:{_number(frame.line)}"
    named = [frame.function for frame in thread.native if frame.function]
    return named[0] if named else None


def _number(line: Optional[int]) -> str:
    return "?" if line is None else str(line)


def _frames(
    page: Page, evidence: Evidence, stack: Sequence[Frame], limit: int, thread: Optional[Thread] = None
) -> None:
    """Print Python frames, with the names of the native ones above them in one line; without Python, native frames."""
    python = [frame for frame in stack if isinstance(frame, PythonFrame)]
    if not python:
        _native(page, [frame for frame in stack if isinstance(frame, NativeFrame)], limit)
        return
    above = _above(stack)
    if above and (thread is None or _native_tells(thread)):
        page.line(f"in native code: {' < '.join(above[:_FEW_FRAMES])}", 6, "dim")
    own = next((f for f in python[:limit] if labels.short_path(f.file) == f.file), None)
    for number, frame in enumerate(python[:limit]):
        _frame(page, frame.function, f"{labels.short_path(frame.file)}:{_number(frame.line)}")
        if number == 0 or frame is own:
            details.source(page, evidence, frame, 10)
        details.variables(page, frame.locals, 10)
    if thread is not None and thread.recursion is not None and len(python) > limit:
        details.recursion(page, thread, limit, 6)
    elif len(python) > limit:
        page.text(f"… {labels.plural(len(python) - limit, 'older frame')}", 6, "dim")


def _native_tells(thread: Thread) -> bool:
    """Return whether native function names add anything: not to a wait for a lock, child or socket described in words."""
    return thread.wait is None or thread.wait.kind in ("futex", "mutex", "other") or thread.gil in ("holds", "unknown")


def _above(stack: Sequence[Frame]) -> List[str]:
    """Return the names of native frames above the first Python one, without internals of the C library (``__futex…``)."""
    names: List[str] = []
    for frame in stack:
        if isinstance(frame, PythonFrame):
            break
        if frame.function:
            names.append(frame.function)
    return [name for name in names if not name.startswith("__")] or names


def _native(page: Page, frames: Sequence[NativeFrame], limit: int) -> None:
    for frame in frames[:limit]:
        module = (frame.module or "").rsplit("/", 1)[-1]
        where = f"{labels.short_path(frame.file)}:{_number(frame.line)}" if frame.file else module
        _frame(page, frame.function or f"{frame.address:#x}", where)
    if len(frames) > limit:
        page.text(f"… {labels.plural(len(frames) - limit, 'older frame')}", 6, "dim")


def _frame(page: Page, function: str, where: str) -> None:
    room = page.width - 6
    left = escape.cut(escape.clean(function), max(20, room // 2))
    pad = " " * max(2, 28 - escape.columns(left))
    right = escape.tail(escape.clean(where), room - escape.columns(left) - len(pad))
    page.line(f"{left}{pad}{right}", 6)


def _loops(page: Page, process: Process, term: labels.Glossary) -> None:
    if not process.loops:
        return
    page.blank()
    page.text(f"{labels.plural(len(process.loops), 'event loop')} ({labels.TERMS['event loop']})", 2)
    busiest = sorted(process.loops, key=lambda loop: (-(loop.spins_per_s or 0), -(loop.ready or 0)))
    for loop in busiest[:_LOOPS]:
        parts = [f"runs in thread {loop.tid}" if loop.tid is not None else "runs in no known thread"]
        if loop.ready is not None:
            parts.append(f"{loop.ready} ready to run")
        if loop.scheduled is not None:
            parts.append(labels.plural(loop.scheduled, "timer"))
        if loop.watched is not None:
            parts.append(f"watches {labels.plural(loop.watched, 'descriptor')}")
        if loop.spins_per_s is not None:
            parts.append(f"turns per second: {labels.count(loop.spins_per_s)}")
        page.text(f"{loop.id}: {', '.join(parts)}", 4, first="- ")
    if len(busiest) > _LOOPS:
        page.text(f"{len(busiest) - _LOOPS} more: {_MORE}.", 4, first="- ")


def _tasks(page: Page, evidence: Evidence, process: Process, diagnosis: Diagnosis) -> None:
    groups = grouping.tasks(process, diagnosis)
    if not groups:
        return
    total, waits = sum(len(group.tasks) for group in groups), tasks.Waits(process)
    page.blank()
    page.text(f"{labels.plural(total, 'unfinished task')} (coroutines that their event loops run)", 2)
    for group in groups[:_TASK_GROUPS]:
        task = group.first
        count = f"×{len(group.tasks)} tasks" if len(group.tasks) > 1 else "task"
        page.blank()
        page.line(f'{count}, {_awaits(task.awaiting, task.state)}: "{task.name or task.id}"', 4, "cyan")
        awaited = waits.of(group.tasks)
        if awaited:
            page.text(awaited, 6)
        _frames(page, evidence, task.stack, _FRAMES if group.cited else _FEW_FRAMES)
    left = groups[_TASK_GROUPS:]
    if left:
        page.text(f"{labels.plural(sum(len(g.tasks) for g in left), 'more task')} left out: {_MORE}.", 4)


def _awaits(awaiting: Optional[str], state: str) -> str:
    if awaiting:
        return f"awaiting {awaiting}"
    return {"running": "running", "pending": "pending"}.get(state, "state unknown")
