"""Threads that may come to read a pipe, release a lock, end a transaction or a child process, as far as their code tells."""

from __future__ import annotations

from typing import Dict, List

from ...evidence import Process, Thread
from ...evidence.vocabulary import Deed
from ...findings import Template, Text
from .clauses import named
from .view import View

_LATER: Dict[Deed, Template] = {
    "reads": Template(
        "what would decide it: whether {thread}, which goes on later and whose code reads, comes to read this"
    ),
    "releases": Template(
        "what would decide it: whether {thread}, which goes on later and whose code releases something, comes to release this"
    ),
    "unlocks": Template(
        "what would decide it: whether {thread}, which goes on later and whose code releases a lock, comes to release this"
    ),
    "cancels": Template(
        "what would decide it: whether {thread}, which goes on later and whose code cancels something, comes to cancel this"
    ),
    "commits": Template(
        "what would decide it: whether {thread}, which goes on and whose code uses a database, comes to end its transaction"
    ),
    "continues": Template(
        "what would decide it: whether {thread}, which goes on later and whose code continues processes, comes to continue this"
    ),
    "ends": Template(
        "what would decide it: whether {thread}, which goes on and whose code ends processes, comes to end this one"
    ),
}


def who_comes_to(view: View, process: Process, deed: Deed, *apart: Thread) -> List[Thread]:
    """Return the threads of a process that go on, and whose code names what would end a wait.

    A thread that woke during the window had its chance to read or release, unless it computes.

    ``apart``: threads not to return
    """
    found = [thread for thread in process.threads if thread not in apart and deed in (thread.deeds or ())]
    if deed in ("commits", "ends"):  # as a watchdog does that looks at the clock now and then
        return found
    return [thread for thread in found if not view.moves(thread) or view.computes(thread)]


def later(deed: Deed, threads: List[Thread]) -> List[Text]:
    """Return the text on the first of these threads; none without one."""
    return [_LATER[deed](thread=named(thread)) for thread in threads[:1]]


def who_above(view: View, process: Process, deed: Deed) -> List[Thread]:
    """Return the threads of a process's ancestors that go on, and whose code ends processes, or continues stopped ones."""
    above = [view.by_pid[pid] for pid in view.ancestors(process) if pid in view.by_pid]
    return [thread for one in above for thread in who_comes_to(view, one, deed)]
