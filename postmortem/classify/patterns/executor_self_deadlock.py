"""Every worker of a thread pool waits for work that is queued in the same pool.

**What it looks like.** All workers are in `Future.result` (or `wait`, `as_completed`, `map`), at 0 % CPU. The futures are
pending; their jobs lie in the queue of this very pool, behind the jobs that wait for them.

**Easily mistaken for** `pool-exhausted`, where the things that ran out are connections or permits; a pool that is merely
busy, whose workers do something.

**Why it hangs.** A job submits other jobs to the pool that runs it and waits for them. As soon as as many such jobs run as
there are workers, nobody is left to take the inner ones.

**Remedy.** Do the inner work in the worker itself, give each level a pool of its own, or let the job end and continue it from
a callback. A larger pool only moves the day.
"""

from __future__ import annotations

from typing import Iterator, List, Tuple

from ...evidence import Pool, Process, PythonFrame, Resource, Thread
from ...waitgraph import Agent
from ..knowledge import own_frame, short
from ..pattern import Answer, Match, No, Pattern
from ..view import View, label, plural

PATTERN = Pattern(
    id="executor-self-deadlock",
    title="every worker of a pool waits for work that is queued in the same pool",
    explanation=(
        "A job that runs in this pool waits for a job that is still in the pool's queue. All workers are taken by jobs of "
        "that kind, so nobody is left to run what they wait for."
    ),
    remedy=(
        "Do not wait inside a job for another job of the same pool: call the function directly, use a second pool for the "
        "inner jobs, or chain them with Future.add_done_callback. More workers only make it rarer."
    ),
    needs=("python",),
    outranks=("pool-exhausted", "missed-wakeup", "shutdown-join", "child-wait", "network-wait", "sleeping"),
    references=(
        "https://docs.python.org/3/library/concurrent.futures.html#threadpoolexecutor",
        "https://github.com/langchain-ai/langchain/pull/10638",
    ),
)

Worker = Tuple[Thread, Resource]


def match(view: View) -> Iterator[Answer]:
    for process in view.pythons:
        for pool in process.pools:
            if not pool.threads:
                continue
            queued = _waiting_for_queued(process, pool)
            agents = [Agent(process.pid, tid) for tid in pool.threads]
            stuck = [view.graph.stuck(agent) for agent in agents]
            if queued and all(stuck):
                yield _match(view, process, pool, queued, "proven" if set(stuck) == {"proven"} else "likely")
            elif not pool.idle:
                yield No(f"a worker of {pool.description} in process {process.pid} can go on")


def _waiting_for_queued(process: Process, pool: Pool) -> List[Worker]:
    """Its workers that wait for a future which only its workers could finish."""
    resources = {r.id: r for r in process.resources}
    found = []
    for thread in process.threads:
        resource = resources.get(thread.wait.resource or "") if thread.wait is not None else None
        if (
            thread.tid not in pool.threads
            or resource is None
            or resource.kind != "future"
            or resource.closed is not True
        ):
            continue
        if set(pool.threads) <= {waker.tid for waker in resource.wakers}:
            found.append((thread, resource))
    return found


def _match(view: View, process: Process, pool: Pool, queued: List[Worker], confidence: str) -> Match:
    facts = [f"{pool.description} has {plural(pool.queued or 0, 'job')} in its queue, and no idle worker"]
    places: List[Tuple[Thread, PythonFrame]] = []
    for thread, resource in queued:
        frame = own_frame(thread.python)
        at = f" at {short(frame)}" if frame else ""
        facts.append(f"{label(thread)}, a worker of it, waits{at} for the {resource.description}")
        facts += resource.because
        places += [(thread, frame)] if frame else []
    first = {frame: thread for thread, frame in reversed(places)}
    rest = [t for t in process.threads if t.tid in pool.threads and t.tid not in {w.tid for w, _r in queued}]
    facts += view.graph.reasons(*(Agent(process.pid, t.tid) for t in rest)) if rest else ()
    behind = view.graph.behind(frozenset(Agent(process.pid, tid) for tid in pool.threads))
    at = f" at {short(places[0][1])}" if places else ""
    workers = f"all {len(pool.threads)} workers" if len(pool.threads) > 1 else "the only worker"
    return Match(
        confidence=confidence,
        summary=f"{workers} of {pool.description.split(' (')[0]} cannot go on: {plural(len(queued), 'job')} of the pool "
        f"{'waits' if len(queued) == 1 else 'wait'}{at} for jobs that are still in its own queue",
        evidence=tuple(dict.fromkeys(facts)),
        culprits=tuple(view.culprit(process, frame, thread) for frame, thread in first.items()),
        victims=tuple(view.victim_of(agent) for agent in behind if agent.tid is not None),
        pid=process.pid,
    )
