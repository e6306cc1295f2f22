"""A task awaits a future that nothing can set any more.

**What it looks like.** A task is suspended on a future, or on an event, queue or condition, that no timer, descriptor,
thread or other task can reach, or only ones that will never set it. Other tasks may wait for that task. The loop is idle, or
goes on with other things.

**Easily mistaken for** an idle server: its main task awaits a future for ever, on purpose, while sockets listen; a client
that waits for its peer (`network-wait`); `async-deadlock`, where several tasks need each other.

**Why it hangs.** The code that promised the result has ended without setting it: an exception on the way, an answer looked up
under another key, a callback that was never called, an event that was set before it was cleared.

**Remedy.** Set a result or an exception on every way out (`try`/`except`/`finally`), cancel what is pending when a
connection closes, and wait with `asyncio.timeout` for everything that comes from elsewhere.
"""

from __future__ import annotations

from typing import Iterator, List

from ....findings import Template
from ...facts.permits import is_spent
from ...facts.view import View
from ...pattern import Answer, No, Pattern
from .sharedresults import circles
from .stucktasks import StuckTask, alike, for_notifications, lost, mutual, stuck_tasks, unsignalled

PATTERN = Pattern(
    id="future-never-resolved",
    tier="wait",
    title="a task awaits a future that nothing can set any more",
    explanation=(
        "The task goes on only when other code sets the future, event or queue that it awaits. None of the code that is left "
        "can do so: it has ended, waits as well, or has no reference to the object any more."
    ),
    remedy=(
        "Give every future its result or an exception on every way out of the code that promised it, cancel what is still "
        "pending when its source goes away, and put a time limit around waits for it."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/asyncio-future.html",
        "https://docs.python.org/3/library/asyncio-task.html#timeouts",
    ),
)

_PARKED = Template(
    "{agent} of process {pid} is parked for ever, on purpose: nothing waits for it, and its loop goes on with other work"
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each process with tasks that await an object that nothing can set."""
    in_circles = {agent for cycle in view.graph.cycles for agent in cycle.agents}
    for process in view.pythons:
        found = [t for t in stuck_tasks(view, process) if t.agent not in in_circles and not _lacks_a_permit(view, t)]
        parked = [t for t in found if t.parked]
        waiting = [t for t in found if not t.parked]
        one_thing = _is_one(view, waiting)
        if not one_thing and not mutual(waiting) and unsignalled(waiting):
            waiting, one_thing = unsignalled(waiting), True
        if waiting and one_thing and not for_notifications(waiting) and not circles(view, process):
            yield lost(view, process, waiting)
        elif parked:
            yield No(_PARKED(agent=parked[0].agent, pid=process.pid))


def _is_one(view: View, waiting: List[StuckTask]) -> bool:
    """Return whether tasks wait for one thing, or one that somebody was to provide, rather than for each other."""
    objects = {t.edge.resource for t in waiting}
    return len(objects) == 1 or any(t.edge.kind == "async-future" for t in waiting) or alike(waiting, view)


def _lacks_a_permit(view: View, task: StuckTask) -> bool:
    """Return whether a task waits for a permit of a semaphore, see pool-exhausted, rather than for a signal."""
    resource = view.graph.places.resource(task.agent.pid, task.edge.resource)
    return resource is not None and is_spent(resource)
