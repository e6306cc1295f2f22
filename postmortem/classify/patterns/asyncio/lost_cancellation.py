"""A task was cancelled, caught the cancellation and went on; whoever cancelled it waits for its end.

**What it looks like.** A task counts a request to cancel it that was never withdrawn (`Task.cancelling()`, since Python 3.11), no
exception is on its way to it any more, and it is suspended as if nothing had happened. Another task awaits it, or `asyncio.run`
has come to its end and waits until all tasks have ended. Up to 3.11, `wait_for` waits in the same way for the end of the task
that it cancelled after the time limit; since 3.12 the cancelled task is the one that calls `wait_for`.

**Easily mistaken for** `future-never-resolved`, where nobody asked the task to end; `async-deadlock`, where the clean-up of a
cancelled task needs a lock that the canceller holds; a slow clean-up in an `except` or `finally` clause, which does end;
`blocking-call-in-coroutine`, where the cancellation has not reached the task yet.

**Why it hangs.** `cancel()` only raises CancelledError once, at the task's current `await`. A bare `except:`, an
`except BaseException:` around the body of a loop, or `contextlib.suppress(CancelledError)` ends the exception there; the loop
goes round again, and nobody asks a second time.

**Remedy.** Catch `Exception` instead of `BaseException`. Where CancelledError has to be caught, clean up and `raise`. Only who
called `cancel()` and awaits the task may swallow the error. Where a task really refuses to end, call `Task.uncancel()` (3.11).
"""

from __future__ import annotations

from typing import Iterator, List, Mapping, Optional, Tuple

from ....evidence import Cancellation, Process, PythonFrame, Task
from ....evidence.vocabulary import CancelBasis
from ....findings import Confidence, Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses, knowledge
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="lost-cancellation",
    tier="specific",
    title="a cancelled task caught the cancellation and went on; whoever cancelled it waits for its end",
    explanation=(
        "cancel() raises CancelledError once, at the await in which the task is suspended. If the task catches it and goes on, "
        "the request is lost: nobody repeats it, and whoever awaits the task waits as long as the task lives."
    ),
    remedy=(
        "Catch Exception instead of BaseException or everything; where CancelledError must be caught for a clean-up, end the "
        "clause with `raise`. Give waits for cancelled tasks a time limit: `await asyncio.wait({task}, timeout=5)`."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/asyncio-task.html#task-cancellation",
        "https://docs.python.org/3/library/asyncio-task.html#asyncio.Task.cancelling",
        "https://github.com/python/cpython/issues/86296",
    ),
)

_MOST = 8
#: Seconds that are left of a wait which is no clean-up.
_LASTING_S = 30.0

_LOST = Template("{agent} was cancelled{by}, but it caught that{caught} and waits again{at} for {what}{waiter}")
_SOMETHING = Template("something else")
_CAUGHT = Template(" in {frame}")
_WAITER, _CLOSER = (
    Template("; {agent} waits{at} for its end"),
    Template("; the run of the event loop ends only after it"),
)
_BY: Mapping[CancelBasis, Template] = {
    "closing": Template(" when its event loop was to end"),
    "awaited": Template(" by wait_for after its time limit"),
    "gather": Template(" with the gather that it belongs to"),
    "limit": Template(" by a time limit around its own code"),
}
_COUNTED = Template("{agent} counts {requests:n request} to cancel it that {requests:v was|were} not withdrawn")
_DELIVERED = Template(
    "no CancelledError is on its way to {agent}, and none of its coroutines is in a clause that handles one"
)
_CLAUSE = Template("a cancellation raised{at} is caught in {frame}, and the loop around it goes on")
_AWAITED = Template("{agent} has been awaited{at} since it was cancelled")
_LIKEWISE = Template("{count:n other cancelled task} {count:v has|have} not ended either")
_DUE = Template("the cancellation of {agent} has not been delivered yet: it is raised when the task runs next")
_HANDLES = Template("{agent} was cancelled and is still handling that, in an `except` or `finally` clause")
_NOBODY = Template("{agent} was cancelled and goes on, but nobody waits for its end")
_NONE = Template("no task of process {pid} is known to have been cancelled")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each process with tasks that went on after they were cancelled."""
    for process in view.pythons:
        cancelled = [task for task in process.tasks if task.cancellation is not None and task.state == "pending"]
        if process.tasks and not cancelled:
            yield No(_NONE(pid=process.pid))
        names = {task.id for task in cancelled}
        found = []
        for task in cancelled:
            agent, known = Agent(process.pid, task=task.id), task.cancellation
            if known is None or task.wait is None or task.ready or names.intersection(task.wait.tasks):
                continue  # it waits for the end of others that were cancelled as well
            if known.due or (known.handled and not (known.basis and _waiting(view, agent))):
                yield No((_DUE if known.due else _HANDLES)(agent=agent))
                continue
            confidence = _confidence(view, process, task, known)
            if confidence is None:
                yield No(_NOBODY(agent=agent))
            else:
                found.append((confidence, task, known))
        if found:
            yield _match(view, process, found)


def _confidence(view: View, process: Process, task: Task, known: Cancellation) -> Optional[Confidence]:
    """Return how sure it is that the end of a task is awaited in vain; None where nobody is known to await it.

    A count alone may be of an earlier request that was met by other means, such as a time limit of a library.
    """
    agent = Agent(process.pid, task=task.id)
    awaited = bool(_waiting(view, agent))
    if known.handled:
        return "possible"  # it cleans up, and whoever cancelled it waits for that
    counted = bool(known.requests) and awaited and known.due is False and known.handled is False
    if known.basis is None and not awaited and not (known.caught_at and view.graph.is_awaited(agent)):
        return None
    stuck = view.graph.stuck(agent)
    told = known.basis is not None or bool(known.requests and known.caught_at)
    lost = known.basis is not None and bool(known.requests) and awaited  # whoever cancelled it waits for its end
    exact = bool(known.requests) or known.basis in ("closing", "awaited", "gather", "limit")
    if stuck == "proven" and told and exact and known.due is False and known.handled is False:
        return "proven"
    if known.handled is None:
        return "possible"
    if told and (stuck is not None or known.caught_at or lost or (awaited and _is_over_it(task, known))):
        return "likely"
    return "possible" if told or stuck is not None or counted else None


def _is_over_it(task: Task, known: Cancellation) -> bool:
    """Return whether a cancelled task waits in ordinary code for something that no time limit ends soon.

    So it does after a library has swallowed the CancelledError, and the program's own code catches none.
    """
    wait = task.wait
    lasting = wait is not None and (wait.endless is True or (wait.remaining_s or 0.0) >= _LASTING_S)
    return known.due is False and known.handled is False and lasting


def _waiting(view: View, agent: Agent) -> Tuple[Agent, ...]:
    """Return the tasks that await a task itself."""
    return tuple(one for one in view.graph.waiters(agent) if one.task is not None)


def _match(view: View, process: Process, found: List[Tuple[Confidence, Task, Cancellation]]) -> Match:
    order = ("proven", "likely", "possible")
    found.sort(key=lambda one: (order.index(one[0]), not one[2].caught_at))
    confidence, task, known = found[0]
    agent, frame = Agent(process.pid, task=task.id), knowledge.own_frame(task.stack)
    facts: List[Said] = []
    if known.requests:
        facts.append(_COUNTED(agent=agent, requests=known.requests))
    if known.due is False and known.handled is False:
        facts.append(_DELIVERED(agent=agent))
    facts += [_HANDLES(agent=agent)] if known.handled else []
    facts += [_CLAUSE(at=clauses.at(frame), frame=clause) for clause in known.caught_at[:2]]
    if known.basis == "called":
        facts += [_AWAITED(agent=agent, at=clauses.at(_own(view, one))) for one in _waiting(view, agent)[:1]]
    if len(found) > 1:
        facts.append(_LIKEWISE(count=len(found) - 1))
    facts += view.graph.reasons(*(Agent(process.pid, task=one.id) for _c, one, _k in found[:_MOST]))
    edge = view.graph.blocking(agent) or next(iter(view.graph.edges.get(agent, ())), None)
    by = _BY.get(known.basis) if known.basis is not None else None
    behind = view.graph.behind(frozenset(Agent(process.pid, task=one.id) for _c, one, _k in found))
    return Match(
        confidence=confidence,
        summary=_LOST(
            agent=agent,
            by=by() if by is not None else None,
            caught=_CAUGHT(frame=known.caught_at[0]) if known.caught_at else None,
            at=clauses.at(frame),
            what=edge.what
            if edge is not None
            else task.wait.detail
            if task.wait and task.wait.detail
            else _SOMETHING(),
            waiter=_waiter(view, agent, known),
        ),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=tuple(dict.fromkeys(_culprits(view, process, found))),
        victims=tuple(view.victim_of(one) for one in behind),
        pid=process.pid,
    )


def _waiter(view: View, agent: Agent, known: Cancellation) -> Optional[Text]:
    waiters = _waiting(view, agent) or view.graph.waiters(agent)
    if not waiters or known.basis == "closing":
        return _CLOSER() if known.basis == "closing" else None
    return _WAITER(agent=waiters[0], at=clauses.at(_own(view, waiters[0])))


def _own(view: View, agent: Agent) -> Optional[PythonFrame]:
    return knowledge.own_frame(view.graph.places.stack(agent))


def _culprits(view: View, process: Process, found: List[Tuple[Confidence, Task, Cancellation]]) -> Iterator[Culprit]:
    """Yield the clauses that catch, the lines that wait again, and the lines that wait for the end."""
    for _confidence_of, task, known in found[:_MOST]:
        agent, frame = Agent(process.pid, task=task.id), knowledge.own_frame(task.stack)
        for clause in known.caught_at:
            yield view.culprit_of(agent, clause)
        if frame is not None:
            yield view.culprit_of(agent, frame)
        for waiter in _waiting(view, agent)[:2]:
            at = _own(view, waiter)
            if at is not None:
                yield view.culprit_of(waiter, at)
