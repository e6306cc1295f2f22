"""Details of a thread in the text report, beside its stack: exceptions, garbage collection, recursion, variables."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from ...evidence import Evidence, Local, Process, PythonFrame, Recursion, Thread, ThreadException
from .. import escape
from ..phrases import labels
from .page import Page
from .underline import Span, marks

_EXCEPTIONS = 3
_VARIABLES = 10
_TURN = 6
_OUTERMOST = 3
#: Least share of throttled periods, and of the memory limit in use, that is reported.
_THROTTLED, _FULL = 0.1, 0.98
_STATES = {
    "T": "It is stopped by a signal (SIGSTOP, Ctrl-Z): nothing in it runs until it gets SIGCONT.",
    "t": "A debugger has stopped it: nothing in it runs until the debugger continues it.",
}


def exceptions(page: Page, threads: Sequence[Thread], indent: int) -> None:
    """Print the exceptions of threads with the same stack, if they are the same for all of them."""
    first = threads[0].exceptions
    if any(_raised(thread.exceptions) != _raised(first) for thread in threads):
        page.text("They handle different exceptions.", indent)
        return
    for found in first[:_EXCEPTIONS]:
        page.text(exception(found), indent)
    if len(first) > _EXCEPTIONS:
        page.text(f"… and {len(first) - _EXCEPTIONS} more around it: the JSON report (`-f json`) has all.", indent)


def _raised(found: Tuple[ThreadException, ...]) -> object:
    return [(e.state, e.type, e.file, e.line) for e in found]


def exception(found: ThreadException) -> str:
    """Return an exception that a thread raises or handles, as a sentence."""
    message = f': "{escape.cut(found.message, 200)}"' if found.message else ""
    place = f", raised in {found.function} at {labels.short_path(found.file)}:{found.line or '?'}" if found.file else ""
    doing = "Raises" if found.state == "raised" else "While handling"
    return f"{doing} {found.type}{message}{place}."


def collecting(process: Process) -> str:
    """Return a sentence on a garbage collection that no known thread runs; "" without one."""
    unknown = [t for t in process.threads if t.gc is None]
    if not any(i.collecting for i in process.interpreters) or any(t.gc for t in process.threads) or not unknown:
        return ""
    return "A garbage collection is in progress; which thread runs it is not known."


def held_up(process: Process) -> str:
    """Return sentences on why the state or control group keeps a process from running; "" if neither does."""
    group = process.cgroup
    found = []
    if process.state in _STATES:
        found.append(_STATES[process.state])
    if process.tracer is not None:
        found.append(f"Process {process.tracer} traces it.")
    if group is not None and group.frozen:
        found.append(f"Its control group {group.path} is frozen: nothing in it runs until the group is thawed.")
    if group is not None and group.throttled is not None and group.throttled >= _THROTTLED:
        quota = "" if group.cpu_quota is None else f" ({group.cpu_quota:g} CPU)"
        found.append(
            f"Its control group used up its CPU quota{quota} in {group.throttled:.0%} of its periods, and had to wait."
        )
    if group is not None and group.memory_limit and (group.memory_used or 0) >= _FULL * group.memory_limit:
        found.append(
            f"Its control group uses {group.memory_used or 0:,} of the {group.memory_limit:,} bytes that it may use."
        )
    return " ".join(found)


def stopped_world(process: Process) -> str:
    """Return a sentence on a stop-the-world pause of a free-threaded build; "" without one."""
    for world in (i.stop_the_world for i in process.interpreters):
        if world is not None and (world.requested or world.stopped):
            who = f"Thread {world.requester_tid}" if world.requester_tid is not None else "Some thread"
            if world.stopped:
                return f"{who} has stopped the world: every other thread is paused until it is done."
            return f"{who} wants to stop the world: it waits for the threads that still run; the others are paused already."
    return ""


def recursion(page: Page, thread: Thread, shown: int, indent: int) -> None:
    """Print the rest of a deep stack after its first frames: the repeating part, and where it began."""
    found, python = thread.recursion, thread.python
    if found is None:
        return
    page.text(f"… {turns(found)}", indent, "dim")
    outer = python[max(shown, len(python) - _OUTERMOST) :]
    within = set(found.cycle)
    for frame in outer:
        if frame not in within:
            page.line(f"{frame.function} at {labels.short_path(frame.file)}:{frame.line or '?'}", indent, "dim")


def turns(found: Recursion) -> str:
    """Return the repeating part of a deep stack, and how often it repeats."""
    calls = [frame.function for frame in reversed(found.cycle)]
    turn = " → ".join(calls[:_TURN]) + (f" → … {len(calls) - _TURN} more" if len(calls) > _TURN else "")
    lines = "" if found.same_lines else ", not always at the same lines"
    return f"{turn}, {labels.count(found.times)} times over{lines}: {labels.count(found.depth)} frames in all"


def variables(page: Page, found: Optional[Tuple[Local, ...]], indent: int) -> None:
    """Print the variables of a frame; their values were bounded and masked when they were read."""
    for local in (found or ())[:_VARIABLES]:
        page.line(f"{local.name} = {local.text}", indent, "dim")
    if found and len(found) > _VARIABLES:
        page.line(f"… {len(found) - _VARIABLES} more: the JSON report (`-f json`) has all", indent, "dim")


def source(page: Page, evidence: Evidence, frame: PythonFrame, indent: int) -> None:
    """Print a frame's source line, with marks under its current expression."""
    text = evidence.source(frame.file, frame.line)
    if text is None or not text.strip():
        return
    margin = len(text) - len(text.lstrip())

    def shown(beginning: str) -> str:
        return escape.clean(beginning[margin:].expandtabs(4))

    page.line(shown(text.rstrip()), indent, "dim")
    span = Span(frame.line, frame.end_line, frame.column, frame.end_column)
    under = marks(text.rstrip("\r\n"), span, shown)
    if under.strip():
        page.line(under, indent, "dim")
