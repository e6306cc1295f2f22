"""A module that is being imported waits for a thread that needs the same import.

**What it looks like.** A thread is inside the top level of a module, in a join, a `result()` or a wait. Another thread is in
`import` of that very module (or of something in it) and waits for the first one to finish it. Both at 0 % CPU.

**Easily mistaken for** `slow-import`, which makes progress; `lock-order-deadlock`, whose locks are the program's own.

**Why it hangs.** Each module has a lock that the importing thread holds until the module's last line has run. Until then, a
thread started during the import cannot import the module, or anything else that is still being imported; if the module
waits for that thread, neither can go on. (Two imports that only wait for each other do not hang: the interpreter detects
the cycle and goes on with a partially initialised module.)

**Remedy.** Start and wait for threads in a function that is called after the import, or import what the thread needs before
it starts.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ....findings import Culprit, Template
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .queuedwork import stays

PATTERN = Pattern(
    id="import-deadlock",
    tier="specific",
    title="an import waits for a thread that needs the same import",
    explanation=(
        "One thread imports a module and, from the module's top level, waits for another thread. That thread imports the "
        "same module, and so waits until the first one has finished importing it."
    ),
    remedy=(
        "Do not wait for a thread while a module is imported: move the wait into a function (`if __name__ == \"__main__\"`, a "
        "start-up hook), or import everything that the thread needs before starting it."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/threading.html#importing-in-threaded-code",
        "https://docs.python.org/3/reference/import.html#submodules",
    ),
)  # fmt: skip

_SUMMARY = Template(
    "{importer} imports {module} and waits{at}; that wait cannot end before {waiter} has imported {module}, too"
)
_GOES_ON = Template(
    "{count:n import} of process {pid} {count:v has|have} waiters, but "
    "{count:v the importing thread|the importing threads} can go on"
)
_IMPORTS = Template("{importer} is importing {module}{where}, and waits{at}")
_WAITS = Template("{waiter} waits{at} until {module} is imported")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each import whose thread cannot go on before a thread that waits for it."""
    for process in view.pythons:
        imports = [r for r in process.resources if r.kind == "import-lock" and r.waiters and r.owner_tid is not None]
        found = False
        for resource in imports:
            owner = view.thread(process, resource.owner_tid)
            waiters = [t for tid in resource.waiters for t in [view.thread(process, tid)] if t is not None]
            if owner is not None and (_depends(view, process, owner, waiters) or _named(view, process, owner, waiters)):
                found = True
                yield _match(view, process, resource, owner, waiters)
        if imports and not found:
            yield No(_GOES_ON(count=len(imports), pid=process.pid))


def _depends(view: View, process: Process, owner: Thread, waiters: List[Thread]) -> bool:
    """Return whether the importing thread cannot go on before one of the threads that wait for the import."""
    agent = Agent(process.pid, owner.tid)
    edge = view.graph.blocking(agent)
    if edge is None or view.graph.stuck(agent) is None:
        return False
    behind = view.graph.behind(frozenset(Agent(process.pid, t.tid) for t in waiters))
    return agent in behind or edge.everyone


def _named(view: View, process: Process, owner: Thread, waiters: List[Thread]) -> bool:
    """Return whether all whose code is known to signal the importing thread wait for the import, or have their loop wait for it.

    Others may, such as a handler that the program has set, but nothing says that they do.
    """
    edge = next(iter(view.edges(process, owner)), None)
    resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
    if edge is None or resource is None or view.moves(owner):
        return False
    if edge.endless is None or not stays(edge):
        return False
    behind = {Agent(process.pid, thread.tid) for thread in waiters}
    naming = [Agent(process.pid, w.tid, w.task) for w in resource.wakers if w.grade == "names" and (w.tid or w.task)]
    turns = {
        agent: {a for e in view.graph.edges.get(agent, ()) for a in e.wakers if e.kind == "turn"} for agent in naming
    }
    return bool(naming) and all(agent in behind or turns[agent] & behind for agent in naming)


def _match(view: View, process: Process, resource: Resource, owner: Thread, waiters: List[Thread]) -> Match:
    agent = Agent(process.pid, owner.tid)
    held = next((h.frame for h in owner.holds if h.resource == resource.id), None)
    inside = own_frame(owner.python)
    module = resource.module or "?"
    culprits: List[Culprit] = []
    for thread, frame in _places(owner, held, inside, waiters):
        culprits.append(view.culprit(process, frame, thread))
    importer, at = clauses.named(owner), clauses.at(inside)
    facts = [_IMPORTS(importer=importer, module=module, where=clauses.at(held), at=at)]
    for thread in waiters:
        wants = own_frame(thread.python)
        facts.append(_WAITS(waiter=clauses.named(thread), at=clauses.at(wants), module=module))
    behind = view.graph.behind(frozenset((agent, *(Agent(process.pid, t.tid) for t in waiters))))
    return Match(
        confidence=view.graph.stuck(agent) or "likely",
        summary=_SUMMARY(importer=importer, module=module, at=at, waiter=clauses.named(waiters[0])),
        evidence=tuple(dict.fromkeys((*facts, *view.graph.reasons(agent)))),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim_of(a) for a in behind if a.tid is not None),
        pid=process.pid,
    )


def _places(
    owner: Thread, held: Optional[PythonFrame], inside: Optional[PythonFrame], waiters: List[Thread]
) -> List[Tuple[Thread, PythonFrame]]:
    """Return the lines involved: where the import waits, where the other threads import, where the import began."""
    found = [(owner, inside)] + [(t, own_frame(t.python)) for t in waiters] + [(owner, held)]
    return [(thread, frame) for thread, frame in found if frame is not None]
