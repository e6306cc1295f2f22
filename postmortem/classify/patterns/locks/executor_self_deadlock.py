"""Every worker of a thread pool waits for work that is queued in the same pool, or in pools that wait for it in turn.

**What it looks like.** All workers are in `Future.result` (or `wait`, `as_completed`, `map`), at 0 % CPU. The futures are
pending; their jobs are in the queue of the same pool, behind the jobs that wait for them. Or two pools are each full of
jobs that wait for the other's queue; or a worker waits for a coroutine that has submitted its work to the pool. Likewise
tasks of celery or dramatiq that call `get()` for tasks of their own queue, until no worker is free.

**Easily mistaken for** `pool-exhausted`, where connections or permits ran out; a pool that is merely busy, whose workers
make progress.

**Why it hangs.** A job submits other jobs to the pool that runs it and waits for them. Once every worker runs such a job,
none is left to run the inner ones.

**Remedy.** Do the inner work in the worker itself, give each level a pool of its own, or let the job end and continue it from
a callback. A larger pool only postpones the hang.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Sized, Tuple

from ....evidence import Pool, Process, PythonFrame, Thread
from ....findings import Slot, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent, Edge
from ...facts import clauses, native
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import is_stdlib, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .nativepools import NativePool, native_pools
from .queuedwork import (
    OF_THREADS,
    Link,
    asks_itself,
    asks_own_server,
    collects_itself,
    processes_that_ask_themselves,
    queued_behind,
    servers_that_ask_themselves,
    signalled_by_queued,
    stuck_pools,
    want_results,
    workers,
)
from .taskqueues import Job, Workers, task_workers

PATTERN = Pattern(
    id="executor-self-deadlock",
    tier="specific",
    title="every worker of a pool waits for work that is queued in the same pool",
    explanation=(
        "A job that runs in the pool waits for another job that is still queued, in the same pool or in one whose jobs wait "
        "for this pool in turn. Every worker is occupied by such a job, so none is left to run the queued ones."
    ),
    remedy=(
        "Do not wait inside a job for another job of the same pool: call the function directly, use a second pool for the "
        "inner jobs (they must wait for neither pool), or chain the jobs with Future.add_done_callback. More workers only make "
        "the deadlock rarer."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/concurrent.futures.html#threadpoolexecutor",
        "https://github.com/langchain-ai/langchain/pull/10638",
    ),
)

_SHOWN = 8

_SUMMARY = Template(
    "{number} of {names: and } cannot go on: {jobs:n job} of {pools:v the pool|these pools} {jobs:v wait}{at} for jobs that are "
    "still in {pools:v the pool's own queue|the queues of these pools}"
)
_ITSELF = Template(
    "{manager}, which collects the results of {pool}, waits{at} for {what}: a result of the same pool, which it alone collects"
)
_ALL = Template("all {count} workers")
_ONLY = Template("the only worker")
_CAN_GO_ON = Template("{worker}, a worker of {pool} in process {pid}, can go on")
_WAITS_ELSEWHERE = Template("the workers of {pool} in process {pid} wait for something other than jobs in its queue")
_BEHIND = Template(
    "{number} of {pool} cannot go on: the job waits{at} for code that waits for a job in the pool's own queue"
)
_IS_BEHIND = Template("{agent}, which is to end that wait, waits{at} for a job that only a worker of {pool} could run")
_RESULTS = Template(
    "{number} of {pool} cannot go on: the jobs wait{at} for results, and {count:n job} {count:v wait} in the pool's own queue"
)
_SIGNALS = Template(
    "{number} of {pool} cannot go on: the jobs wait{at} for what a job in the pool's own queue would signal ({count} queued)"
)
_BY_CODE = Template("the code of a queued job gives that signal, and no other code that can still run does")
_ORIGIN = Template(
    "which jobs are to provide these results could not be read: those in the queue have no other thread to run on"
)
_ASK = Template(
    "{number} of {pool} cannot go on: each runs a request of {library} that waits{at} for the answer to another request, to this "
    "process itself, which no worker is free to run"
)
_ASK_OWN = Template(
    "{number} of {pool} cannot go on: the jobs wait{at} for answers of this process's own server, and {count:n job} "
    "{count:v wait} in the pool's queue"
)
_ASKING_OWN = Template("{thread} waits{at} at a connection both ends of which are in this process alone")
_UNSERVED = Template(
    "no other thread or event loop of the process is at the other ends: only a worker of the pool would answer"
)
_SERVER = Template(
    "{count:v the only thread|all @ threads} of {module} that {count:v runs|run} requests {count:v waits|wait}{at} for "
    "answers of the same server, which no thread is free to give"
)
_NOBODY_SERVES = Template("no thread has the other ends of these connections, and each of them runs a request itself")
_SERVERS = Template(
    "{count:v the only worker process|all @ worker processes} of a server, {program}, {count:v runs a request that waits|run "
    "requests that wait}{at} for {count:v an answer|answers} of the same server, which no worker is free to give"
)
_ASKING_SERVER = Template("{process} runs a request and waits at {frame} at a connection to its own server")
_NOBODY_ACCEPTS = Template(
    "a connection is not accepted: only these workers, and the process that began them, have the listening socket"
)
_ASKING = Template("{thread} runs a request of {library} and waits{at} in {library}'s client")
_ALONE = Template("every connection that this process has opened leads to itself")
_FULL = Template("{pool} has {count:n job} in its queue, and no idle worker")
_WORKER_WAITS = Template("worker {worker} waits{at} for {what}")
_NEEDS = Template("{agent} {verb}{at} {what}")
_TASKS = Template(
    "{number} of {library} cannot go on: {count:v the job waits|each job waits}{at} for the result of another job, which no "
    "worker is free to run"
)
_TASK_WAITS = Template(
    "{thread} of process {pid} runs a job of {library}, which waits{at} for the result of another job"
)
_NO_FREE = Template(
    "no worker of {library} among the captured processes is free; others, elsewhere, may serve the same queue"
)
_IS_FREE = Template("{thread} of process {pid}, a worker of {library}, is free to run another job")
_JOB_RUNS = Template("{thread} of process {pid} runs a job of {library} that waits for no other job")
_NATIVE_POOL = Template(
    "{caller} waits{at} for work of a library's own threads, and {count:v the only one waits|all @ of them wait} in the same "
    "function, {where}, for further work that no thread is free to do"
)
_CALLER_WAITS = Template("{caller} waits{at} in {where}")
_NATIVE_WAITS = Template("{worker}, a thread of that library, is in a job that waits in {where}")
_NONE_IS_FREE = Template(
    "{count:n thread} of the library {count:v has|have} the same outermost function, and none is in its own loop"
)
_SOME_ARE_FREE = Template(
    "{count:n thread} with the same outermost function {count:v waits|wait} for jobs: if {count:v it is|they are} of the same "
    "pool, what is waited for is no job of it"
)
_NATIVE_REMEDY = Template(
    "Give the library's pool more threads (pyarrow.set_io_thread_count, or its environment variable), do not start work of the "
    "pool from work that runs in it, and upgrade the library: such nested waits are defects of its own."
)
_OTHERS = Template("{count:n other worker} {count:v wait} in the same way")


class _Told(NamedTuple):
    """What to say of workers that are all in use.

    - ``summary``: (number of workers, place) → the summary
    - ``fact``: (worker, its line) → the text on that one
    - ``basis``: what was, or was not, read
    - ``queue``: what was read of the pool's queue; None for threads of no known pool
    """

    summary: Callable[[Text, Slot], Text]
    fact: Callable[[Agent, Optional[PythonFrame]], Text]
    basis: Text
    queue: Optional[Text] = None


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each group of pools whose workers all wait for jobs queued in the group.

    It is only possible where another thread may come to cancel the jobs that they wait for.
    """
    for answer in _answers(view):
        process = view.by_pid.get(answer.pid or 0) if isinstance(answer, Match) else None
        cancelling = who_comes_to(view, process, "cancels") if process is not None else []
        if isinstance(answer, Match) and cancelling:
            evidence = (*answer.evidence, *later("cancels", cancelling))
            yield dataclasses.replace(answer, confidence="possible", evidence=evidence)
        else:
            yield answer


def _answers(view: View) -> Iterator[Answer]:
    """Yield the answers by what the workers of pools and servers wait for."""
    for process in view.pythons:
        groups = stuck_pools(view, process)
        for pools, links in groups:
            yield _match(view, process, pools, links)
        told = {pool.id for pools, _links in groups for pool in pools}
        for pool in process.pools:
            itself = collects_itself(view, process, pool)
            if itself is not None:
                yield _collects(view, process, pool, *itself)
            if not pool.threads or pool.idle or pool.id in told or pool.kind not in OF_THREADS:
                continue
            behind = queued_behind(view, process, pool) if pool.queued else []
            if behind:
                yield _behind(view, process, pool, behind)
                continue
            full = _occupied(view, process, pool)
            if full is not None:
                yield _full(view, process, *full)
                continue
            free = next((agent for agent in workers(process, pool) if not view.graph.stuck(agent)), None)
            if free is not None:
                yield No(_CAN_GO_ON(worker=free, pool=pool.description, pid=process.pid))
            else:
                yield No(_WAITS_ELSEWHERE(pool=pool.description, pid=process.pid))

        for threads in servers_that_ask_themselves(view, process):
            agents = [Agent(process.pid, thread.tid) for thread in threads]
            yield _full(view, process, agents, _asks_server(threads))
        yield from (_of_library(view, process, found) for found in native_pools(view, process))
    yield from map(partial(_of_tasks, view), task_workers(view))
    yield from map(partial(_of_server, view), processes_that_ask_themselves(view))


def _occupied(view: View, process: Process, pool: Pool) -> Optional[Tuple[List[Agent], _Told]]:
    """Return the workers of a pool that all wait for what only one of them could do, and what to say of them; None if not."""
    library, asking = asks_itself(view, process, pool)
    if asking:
        return asking, _asks(pool, library)
    requests = asks_own_server(view, process, pool)
    if requests:
        return requests, _asks_own(pool)
    signals = signalled_by_queued(view, process, pool)
    if signals:
        return [worker for worker, _edge in signals], _signalled(pool, signals)
    wants = want_results(view, process, pool)
    return ([worker for worker, _edge in wants], _wants(pool, wants)) if wants else None


def _of_server(view: View, found: Sequence[Process]) -> Match:
    """Return the match of a server's worker processes that all wait for answers of that server."""
    mains = [(process, main) for process in found for main in [view.main(process)] if main is not None]
    places = [
        (process, main, frame) for process, main in mains for frame in [own_frame(main.python)] if frame is not None
    ]
    first = {frame: (process, main) for process, main, frame in reversed(places)}
    return Match(
        confidence="likely",
        summary=_SERVERS(
            count=len(mains), program=clauses.process(found[0]), at=clauses.at(places[0][2]) if places else None
        ),
        evidence=(
            *(
                _ASKING_SERVER(process=clauses.process(process), frame=frame)
                for process, _main, frame in places[:_SHOWN]
            ),
            _NOBODY_ACCEPTS(),
        ),
        culprits=tuple(view.culprit(process, frame, main) for frame, (process, main) in first.items()),
        victims=tuple(view.victim(process, main) for process, main in mains[1:]),
        pid=found[0].pid,
    )


def _of_library(view: View, process: Process, found: NativePool) -> Match:
    """Return the match of a pool of native threads."""
    frame, caller = own_frame(found.caller.python), clauses.named(found.caller)
    where = native.located(found.where)
    return Match(
        confidence="possible" if found.idle else "likely",  # the free ones may be of the same pool
        summary=_NATIVE_POOL(caller=caller, at=clauses.at(frame), where=where, count=len(found.workers)),
        evidence=(
            _CALLER_WAITS(caller=caller, at=clauses.at(frame), where=where),
            *(_NATIVE_WAITS(worker=clauses.named(worker), where=where) for worker in found.workers[:_SHOWN]),
            _SOME_ARE_FREE(count=found.idle) if found.idle else _NONE_IS_FREE(count=len(found.workers)),
        ),
        culprits=(view.culprit(process, frame, found.caller),) if frame is not None else (),
        victims=(view.victim(process, found.caller),),
        remedy=_NATIVE_REMEDY(),
        pid=process.pid,
    )


def _of_tasks(view: View, found: Workers) -> Answer:
    """Return the match of workers of a task queue whose jobs all wait for other jobs, or what lets them go on."""
    if not found.all_wait:
        if found.free:
            process, thread = found.free[0]
            return No(_IS_FREE(thread=clauses.named(thread), pid=process.pid, library=found.library))
        runs = next(job for job in found.jobs if not job.waits)
        return No(_JOB_RUNS(thread=clauses.named(runs.thread), pid=runs.process.pid, library=found.library))
    places = [(job, own_frame(job.frames)) for job in found.jobs]
    facts = [_task(job, frame, found.library) for job, frame in places[:_SHOWN]]
    if len(places) > _SHOWN:
        facts.append(_OTHERS(count=len(places) - _SHOWN))
    first = {frame: job for job, frame in reversed(places) if frame is not None}
    return Match(
        confidence="likely",
        summary=_TASKS(
            number=_number(places),
            library=found.library,
            count=len(places),
            at=clauses.at(next(iter(first), None)),
        ),
        evidence=(*facts, _NO_FREE(library=found.library)),
        culprits=tuple(view.culprit(job.process, frame, job.thread) for frame, job in first.items()),
        victims=tuple(view.victim(job.process, job.thread) for job, _frame in places[1:]),
        pid=places[0][0].process.pid,
    )


def _task(job: Job, frame: Optional[PythonFrame], library: str) -> Text:
    return _TASK_WAITS(thread=clauses.named(job.thread), pid=job.process.pid, library=library, at=clauses.at(frame))


def _behind(view: View, process: Process, pool: Pool, links: List[Tuple[Agent, Edge, Agent]]) -> Match:
    """Return the match of a pool whose workers wait for agents that wait for a job of the same pool."""
    facts: List[Said] = [_queued(pool)]
    places: List[Tuple[Agent, PythonFrame]] = []
    for worker, edge, agent in links[:_SHOWN]:
        frames = [(one, own_frame(view.graph.places.stack(one))) for one in (worker, agent)]
        places += [(one, frame) for one, frame in frames if frame is not None]
        facts.append(_WORKER_WAITS(worker=worker, at=clauses.at(frames[0][1]), what=edge.what))
        facts.append(_IS_BEHIND(agent=agent, at=clauses.at(frames[1][1]), pool=pool.description))
    first = {frame: agent for agent, frame in reversed(places)}
    return Match(
        confidence="likely",
        summary=_BEHIND(
            number=_number(links),
            pool=pool.description,
            at=clauses.at(places[0][1]) if places else None,
        ),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=tuple(view.culprit_of(first[frame], frame) for frame in dict.fromkeys(f for _a, f in places)),
        victims=tuple(
            view.victim_of(a) for a in view.graph.behind(frozenset(w for w, _e, _a in links)) if a.tid is not None
        ),
        pid=process.pid,
    )


def _full(view: View, process: Process, agents: List[Agent], told: _Told) -> Match:
    """Return the match of workers that are all in use, of which it was not read for which job each waits."""
    places = [(agent, own_frame(view.graph.places.stack(agent))) for agent in agents]
    facts: List[Said] = [told.fact(agent, frame) for agent, frame in places[:_SHOWN]]
    if len(places) > _SHOWN:
        facts.append(_OTHERS(count=len(places) - _SHOWN))
    first: Dict[PythonFrame, Agent] = {}
    for agent, frame in places:
        if frame is not None:
            first.setdefault(frame, agent)
    return Match(
        confidence="likely",
        summary=told.summary(_number(agents), clauses.at(next(iter(first), None))),
        evidence=(*((told.queue,) if told.queue is not None else ()), *facts, told.basis),
        culprits=tuple(view.culprit_of(agent, frame) for frame, agent in first.items()),
        victims=tuple(view.victim_of(a) for a in view.graph.behind(frozenset(agents)) if a.tid is not None),
        pid=process.pid,
    )


def _wants(pool: Pool, wants: List[Tuple[Agent, Edge]]) -> _Told:
    """Return what to say of workers that all wait for results, of which it is not known who is to provide them."""
    edges = dict(wants)
    return _Told(
        lambda number, at: _RESULTS(number=number, pool=pool.description, at=at, count=pool.queued or 0),
        lambda agent, frame: _WORKER_WAITS(worker=agent, at=clauses.at(frame), what=edges[agent].what),
        _ORIGIN(),
        _queued(pool),
    )


def _signalled(pool: Pool, signals: List[Tuple[Agent, Edge]]) -> _Told:
    """Return what to say of workers that all wait for signals which queued jobs would give."""
    edges = dict(signals)
    return _Told(
        lambda number, at: _SIGNALS(number=number, pool=pool.description, at=at, count=pool.queued or 0),
        lambda agent, frame: _WORKER_WAITS(worker=agent, at=clauses.at(frame), what=edges[agent].what),
        _BY_CODE(),
        _queued(pool),
    )


def _asks(pool: Pool, library: str) -> _Told:
    """Return what to say of a server's workers whose requests all wait for answers of the same server."""
    return _Told(
        lambda number, at: _ASK(number=number, pool=pool.description, at=at, library=library),
        lambda agent, frame: _ASKING(thread=agent, at=clauses.at(frame), library=library),
        _ALONE(),
        _queued(pool),
    )


def _asks_own(pool: Pool) -> _Told:
    """Return what to say of a server's workers that all wait for answers of the server that they work for."""
    return _Told(
        lambda number, at: _ASK_OWN(number=number, pool=pool.description, at=at, count=pool.queued or 0),
        lambda agent, frame: _ASKING_OWN(thread=agent, at=clauses.at(frame)),
        _UNSERVED(),
        _queued(pool),
    )


def _asks_server(threads: Sequence[Thread]) -> _Told:
    """Return what to say of a server's threads, of no known pool, that all wait for answers of that server."""
    begun = next(frame for frame in reversed(threads[0].python) if not is_stdlib(frame))
    module = "/".join(begun.file.split("/")[-2:])
    return _Told(
        lambda _number, at: _SERVER(count=len(threads), module=module, at=at),
        lambda agent, frame: _ASKING_OWN(thread=agent, at=clauses.at(frame)),
        _NOBODY_SERVES(),
    )


def _queued(pool: Pool) -> Text:
    """Return how many jobs are queued in a pool."""
    return _FULL(pool=pool.description, count=pool.queued or 0)


def _number(several: Sized) -> Text:
    return _ALL(count=len(several)) if len(several) > 1 else _ONLY()


def _collects(view: View, process: Process, pool: Pool, manager: Agent, edge: Edge) -> Match:
    """Return the match of a process pool whose manager thread waits for a result that it would collect itself."""
    frames = view.graph.places.stack(manager)
    at, frame = clauses.at(own_frame(frames)), own_frame(frames)
    return Match(
        confidence="proven" if view.graph.stuck(manager) == "proven" else "likely",
        summary=_ITSELF(manager=manager, pool=pool.description, at=at, what=edge.what),
        evidence=(_NEEDS(agent=manager, verb=edge.verb, at=at, what=edge.what), *view.graph.reasons(manager)),
        culprits=(view.culprit_of(manager, frame),) if frame is not None else (),
        victims=tuple(view.victim_of(a) for a in view.graph.behind(frozenset((manager,))) if a.tid is not None),
        pid=process.pid,
    )


def _match(view: View, process: Process, pools: List[Pool], links: List[Link]) -> Match:
    """Return the match of one group of pools."""
    agents = [agent for pool in pools for agent in workers(process, pool)]
    facts: List[Said] = [_queued(pool) for pool in pools]
    for link in links[:_SHOWN]:
        facts += _facts(view, link)
    if len(links) > _SHOWN:
        facts.append(_OTHERS(count=len(links) - _SHOWN))
    rest = [agent for agent in agents if agent not in {link.worker for link in links}]
    facts += view.graph.reasons(*rest) if rest else ()
    places = [
        (frame, agent)
        for link in links
        for agent in (link.worker, *link.via)
        for frame in [own_frame(view.graph.places.stack(agent))]
        if frame is not None
    ]
    first = {frame: agent for frame, agent in reversed(places)}
    behind = view.graph.behind(frozenset(agents))
    return Match(
        confidence="proven" if {view.graph.stuck(agent) for agent in agents} == {"proven"} else "likely",
        summary=_summary(pools, agents, links, places),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=tuple(view.culprit_of(first[frame], frame) for frame in dict.fromkeys(f for f, _agent in places)),
        victims=tuple(view.victim_of(agent) for agent in behind if agent.tid is not None),
        pid=process.pid,
    )


def _summary(
    pools: List[Pool], agents: List[Agent], links: List[Link], places: List[Tuple[PythonFrame, Agent]]
) -> Text:
    return _SUMMARY(
        number=_number(agents),
        names=tuple(pool.description.split(" (")[0] for pool in pools),
        pools=len(pools),
        jobs=len(links),
        at=clauses.at(places[0][0]) if places else None,
    )


def _facts(view: View, link: Link) -> Iterator[Said]:
    """Yield the waits that lead from a worker to a queued job."""
    graph = view.graph
    at = clauses.at(own_frame(graph.places.stack(link.worker)))
    yield _WORKER_WAITS(worker=link.worker, at=at, what=link.wait.what)
    for agent in link.via:
        edge, at = graph.blocking(agent), clauses.at(own_frame(graph.places.stack(agent)))
        if edge is not None:
            yield _NEEDS(agent=agent, verb=edge.verb, at=at, what=edge.what)
    yield from link.job.because
