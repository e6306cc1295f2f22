"""Agents that could still signal what threads and tasks wait for, found by following references in memory.

The search runs once all resources are known:

- for resources without an owner that are awaited without a deadline, those with the fewest waiters first
- for at most ``SECONDS`` per process, and a part of ``_MORE`` for a large one

Cancellation of a waiting task is ignored: it ends the wait without providing what is awaited.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ...cpython.execution.lookup import Watched
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.heap.reachability import (
    MAX_LEVELS,
    MOST_REFERRERS,
    Actor,
    Obstacle,
    Reach,
    ReferredTo,
    Step,
    Surroundings,
    Walk,
    walk,
)
from ...cpython.heap.referrers import Referrers
from ...cpython.objects.wordsearch import WordSearch, near
from ...evidence import Fact, Gap, Loop, PythonFrame, Resource, Task, TaskWait, Thread, Wait, Waker, fact
from ...evidence import replace as changed
from ...evidence.facts import Value
from ...evidence.vocabulary import GapCode, WakerGrade
from ...frameworks.asyncio.landmarks import Landmarks, Suspension
from ...frameworks.asyncio.tasks import TaskState
from ...timelimits import TimeLimit
from ..process.context import PythonContext
from ..process.fastwords import best_means
from .grading import Grading
from .pools import QueuedJob
from .urgency import Urgency

SECONDS = 2.0
#: Seconds: who else could end a wait is searched also where a time limit ends it only later than that. Whether such a limit
#: counts is for the wait graph to say.
_FAR_S = 60.0
#: Further seconds for a process with _LARGEST bytes or more, in proportion for less: with numpy, without.
_MORE, _MORE_SLOWLY = 1.0, 10.0
_LARGEST = 250 << 20
_KINDS = (
    "lock", "condition", "event", "semaphore", "barrier", "queue", "future",
    "async-lock", "async-event", "async-condition", "async-semaphore", "async-barrier", "async-queue", "async-future",
)  # fmt: skip
#: Steps kept as proof.
_MOST_STEPS = 40
#: Queued jobs of a pool whose code is evaluated for one resource.
_MOST_JOBS = 50
#: Agents named in the conclusion.
_TOLD = 2
#: Walks that share one pass over memory. Limited, since all of them are unfinished when time is up during the pass.
_TOGETHER = 1024
#: Bytes; larger processes are first searched near known objects.
_LARGE = 32 << 20


class Books(NamedTuple):
    """Objects behind the evidence."""

    addresses: Mapping[str, int]  # resource → object
    tasks: Mapping[int, str]  # address → id of the task
    suspended: Mapping[int, Suspension] = {}  # tasks of other frameworks than asyncio, by address
    behind: Mapping[int, Tuple[int, ...]] = {}  # tasks that wait until all of several others have ended
    blind: Mapping[str, FrozenSet[str]] = {}  # resource → classes of its ends that cannot end a wait for it
    variables: Mapping[str, Watched] = {}  # resource → what changes the variable that its waiters poll


class Reaches:
    """A search for agents that can reach what others wait for."""

    def __init__(
        self,
        context: PythonContext,
        books: Books,
        shown: Callable[[PyFrame], PythonFrame],
        states: Optional[Mapping[str, TaskState]] = None,
        others: Optional[Mapping[str, TaskState]] = None,
        queued: Optional[Mapping[int, QueuedJob]] = None,
    ) -> None:
        self._context = context
        self._queued: Mapping[int, QueuedJob] = queued or {}
        #: Suspended greenlets, by address.
        self._greenlets = {
            state.address: state
            for state in (others or {}).values()
            if state.greenlet and state.state == "pending" and state.address in books.tasks
        }
        started = {ident: state for ident, state in (others or {}).items() if state.greenlet and state.frames}
        self._states: Mapping[str, TaskState] = {**(states or {}), **started}
        self._python = context.python
        self._core = context.core
        self._threads = context.threads
        self._books = books
        self._shown = shown
        self._gaps = context.gaps
        self._task_of = {ident: address for address, ident in books.tasks.items()}
        self._names: Mapping[int, str] = {}  # address → name of the task
        self._polls: Set[int] = set()  # threads and tasks that sleep on something else than what they wait for
        self._tasks_poll: Set[str] = set()
        self._means, self._seconds = best_means(0), SECONDS

    @cached_property
    def _grading(self) -> Grading:
        return Grading(self._context, self._states, self._landmarks.modules, self._books.variables)

    @cached_property
    def _landmarks(self) -> Landmarks:
        others = {**self._books.suspended, **{at: Suspension(0, state.waiter) for at, state in self._greenlets.items()}}
        return Landmarks(self._python, tuple(self._books.tasks), others, self._books.behind)

    def settle(
        self,
        resources: Sequence[Resource],
        threads: Sequence[Thread],
        tasks: Sequence[Task],
        loops: Sequence[Loop] = (),
    ) -> Tuple[Resource, ...]:
        """Return all resources, with wakers and conclusions added where the search found any."""
        self._polls = {t.tid for t in threads if t.wait is not None and t.wait.polls_s is not None}
        self._tasks_poll = {t.id for t in tasks if t.wait is not None and t.wait.polls_s is not None}
        endless = {t.tid for t in threads if t.wait is not None and _is_endless(t.wait)}
        endless_tasks = {t.id for t in tasks if t.wait is not None and _is_endless(t.wait)}
        wanted = [r for r in resources if self._is_wanted(r, endless, endless_tasks)]
        if not wanted:
            return tuple(resources)
        found, obstacle = self._search(wanted, tasks)
        others = any(task.id not in self._states for task in tasks)
        first = Urgency(threads, tasks, loops, resources)  # agents are evaluated only as long as there is time
        order = sorted((r for r in resources if r.id in found), key=lambda r: not first.holds_up(r))
        completed = {r.id: self._completed(r, found[r.id], others) for r in order}
        done = tuple(completed.get(r.id, r) for r in resources)
        open_ones = {r.id for r in done if r.closed is None}
        urgent = Urgency(threads, tasks, loops, done)
        left = [r for r in wanted if r.id in open_ones and not _is_answered(found.get(r.id)) and urgent.holds_up(r)]
        if left and obstacle is not None:
            self._say(len(left), obstacle)
        return done

    def _search(self, wanted: List[Resource], tasks: Sequence[Task]) -> Tuple[Dict[str, Reach], Optional[Obstacle]]:
        """Return what was found per resource, and the first obstacle that stopped the search."""
        if self._python.runtime.free_threaded:
            return {}, Obstacle("free-threaded")
        wanted.sort(key=lambda resource: len(resource.waiters) + len(resource.waiting_tasks))
        named = {task.id: task.name for task in tasks}
        self._names = {address: named.get(ident) or ident for address, ident in self._books.tasks.items()}
        size = _size(self._core.written)
        self._means = best_means(size)
        self._seconds = SECONDS + min(1.0, size / _LARGEST) * (_MORE_SLOWLY if self._means.lacks_numpy else _MORE)
        limit = TimeLimit(self._seconds)
        found: Dict[str, Reach] = {}
        for ranges in self._ranges(wanted):
            suspended = {address: state.frames for address, state in self._greenlets.items()}
            search = WordSearch(self._core, ranges, limit, self._means.finder)
            referrers = Referrers(self._python, search, suspended)
            left = [r for r in wanted if r.id not in found or found[r.id].obstacle is not None]
            found.update(self._walked(referrers, left, limit))
        if len(found) < len(wanted) and limit.passed():
            return found, Obstacle("late")
        obstacles = sorted(reach.obstacle for reach in found.values() if reach.obstacle is not None)
        return found, next((o for o in obstacles if o.kind == "uncounted"), next(iter(obstacles), None))

    def _ranges(self, wanted: Sequence[Resource]) -> Iterator[Sequence[Tuple[int, int]]]:
        """Yield the address ranges to search; in a large process those near known objects first.

        If all counted references are found in the first ranges, nothing else refers to the object.
        """
        written = self._core.written
        if _size(written) > _LARGE:
            known = [self._books.addresses[resource.id] for resource in wanted]
            known += [*self._books.tasks, *self._landmarks.modules, *self._landmarks.of_threads]
            for state in self._threads.states.values():
                known += [state.address, *(frame.address for frame in state.frames)]
            first = near(written, known)
            if 2 * _size(first) < _size(written):  # else they would be searched twice for little
                yield first
        yield written

    def _walked(self, referrers: Referrers, wanted: Sequence[Resource], limit: TimeLimit) -> Dict[str, Reach]:
        """Return what was found per resource whose waiters are known."""
        found: Dict[str, Reach] = {}
        for start in range(0, len(wanted), _TOGETHER):
            if limit.passed():
                break
            walks = {r.id: self._walk(referrers, r) for r in wanted[start : start + _TOGETHER]}
            begun = {ident: one for ident, one in walks.items() if one is not None}
            if not self._means.is_fast:  # else some passes more cost less than their avoidance
                targets = [address for one in begun.values() for address in one.front]
                referrers.expect(targets, [*self._books.tasks, *self._landmarks.modules])
            walk(referrers, list(begun.values()))
            found.update({ident: one.reach for ident, one in begun.items()})
        return found

    def _is_wanted(self, resource: Resource, threads: Set[int], tasks: Set[str]) -> bool:
        owned = (resource.owner_tid, resource.owner_task, resource.owner_pid, resource.owner_gone, resource.closed)
        return (
            resource.kind in _KINDS
            and resource.id in self._books.addresses
            and all(one is None for one in owned)
            and bool(resource.waiters or resource.waiting_tasks)
            and threads.issuperset(resource.waiters)
            and tasks.issuperset(resource.waiting_tasks)
        )

    def _say(self, count: int, obstacle: Obstacle) -> None:
        subject = f"who else could end {count} of the waits" if count != 1 else "who else could end one of the waits"
        if obstacle.kind == "late":
            remedy = None if self._means.lacks_numpy else ""  # the code's: the extra with numpy
            code: GapCode = "no-time-for-references"
            self._gaps.append(Gap.of("cpython", subject, code, remedy=remedy, seconds=round(self._seconds, 1)))
        else:
            self._gaps.append(_gap(subject, obstacle, self._core.is_whole))

    # ------------------------------------------------------------------ one resource

    def _walk(self, referrers: Referrers, resource: Resource) -> Optional[Walk]:
        """Return the walk that starts at what the waiters sleep on; None if that is unknown."""
        known = self._threads.states
        states = [known[tid] for tid in resource.waiters if tid in known]
        waiting = set(resource.waiting_tasks)
        tasks = {self._task_of[ident] for ident in waiting if ident in self._task_of}
        subject = self._books.addresses[resource.id]
        polls = self._polls
        starts = [
            self._landmarks.waits_on(known[t], subject) for t in resource.waiters if t in known and t not in polls
        ]
        sleeping = {self._task_of[ident] for ident in waiting - self._tasks_poll if ident in self._task_of}
        blind = self._books.blind.get(resource.id)
        # what a task sleeps on in a channel is known to the channel alone
        starts += [self._landmarks.future_of(task) if blind is None else subject for task in sleeping]
        begun = [start for start in starts if start is not None]
        if len(begun) < len(starts) or len(states) < len(resource.waiters) or len(tasks) < len(waiting):
            return None
        around = Surroundings(
            threads={state.address for state in states},
            tasks=self._landmarks.waiting_for(tasks),
            pending=self._landmarks.pending,
            ended=self._landmarks.ended,
            subject=subject,
            modules=self._landmarks.modules,
            registries=self._landmarks.registries,
            coroutines=self._landmarks.coroutines,
            of_threads=self._landmarks.of_threads,
            blind=blind or frozenset(),
            queued={
                at: [known[tid] for tid in (r.tid for r in job.runners) if tid in known]
                for at, job in self._queued.items()
            },
        )
        return Walk(self._python, referrers, around, self._names, [*dict.fromkeys(begun), subject])

    def _completed(self, resource: Resource, reach: Reach, others: bool) -> Resource:
        actors = sorted(reach.actors, key=lambda actor: (self._who(actor), _where(actor.way)))
        jobs = [self._queued[address] for address in reach.queued]
        if reach.obstacle is not None or not all(actor.is_agent for actor in reach.actors):
            jobs += self._naming_jobs(resource, reach)
        wakers = (
            *resource.wakers,
            *self._runners(resource, reach, jobs),
            *self._graded(resource, reach, [(each, self._waker(each)) for each in actors], others),
        )
        resource = changed(resource, left_behind=reach.left_behind or None)
        if not reach.complete:
            named = any(one.tid is None and one.task is None and one.grade != "refers" for one in wakers)
            return changed(resource, wakers=wakers, unnamed=True if reach.accounted and not named else None)
        because = (*resource.because, *self._of_queued(resource, jobs), *self._conclusion(resource, reach, actors))
        steps = tuple(map(_referred_to, sorted(reach.steps)[:_MOST_STEPS]))
        return changed(resource, wakers=wakers, closed=True, because=because, steps=steps)

    def _of_queued(self, resource: Resource, jobs: Sequence[QueuedJob]) -> Iterator[Fact]:
        """Yield the facts about the queued jobs that lead to a resource, pool by pool."""
        counts = Counter(job.pool for job in jobs)
        for job in {job.pool: job for job in jobs}.values():
            yield fact("job-queued", resource=resource.description, pool=job.pool, count=counts[job.pool])
            yield job.full

    def _graded(
        self, resource: Resource, reach: Reach, found: Sequence[Tuple[Actor, Waker]], others: bool
    ) -> Tuple[Waker, ...]:
        """Return the wakers with grades, and agents besides them that name the object.

        ``others``: there are tasks of other frameworks.
        """
        if reach.complete and not found:
            return ()
        tasks = {self._task_of[ident] for ident in resource.waiting_tasks if ident in self._task_of}
        blocked = {self._books.tasks.get(task, "") for task in self._landmarks.waiting_for(tasks)}
        return self._grading.graded(resource, found, reach, self._books.addresses[resource.id], blocked, others)

    def _naming_jobs(self, resource: Resource, reach: Reach) -> List[QueuedJob]:
        """Return the first queued job that names a resource to which not all references were followed, besides those found."""
        subject = self._books.addresses[resource.id]
        others = [job for address, job in sorted(self._queued.items()) if address not in reach.queued][:_MOST_JOBS]
        grades = ((job, self._grading.of_job(resource, reach, subject, job.item, False)) for job in others)
        return next(([job] for job, grade in grades if grade == "names"), [])

    def _runners(self, resource: Resource, reach: Reach, jobs: Sequence[QueuedJob]) -> Iterator[Waker]:
        """Yield the workers that would run queued jobs, with the grade of the jobs of their pool."""
        for one in {job.pool: job for job in jobs}.values():
            grade = self._grade_of_jobs(resource, reach, [job for job in jobs if job.pool == one.pool])
            yield from (changed(runner, grade=grade) for runner in one.runners)

    def _grade_of_jobs(self, resource: Resource, reach: Reach, jobs: Sequence[QueuedJob]) -> Optional[WakerGrade]:
        """Return the highest grade of a pool's queued jobs; None if it is unknown."""
        subject = self._books.addresses[resource.id]
        refer = {id(self._queued[address]) for address in reach.queued}
        grades = {
            self._grading.of_job(resource, reach, subject, job.item, id(job) in refer) for job in jobs[:_MOST_JOBS]
        }
        return "names" if "names" in grades else None if None in grades or len(jobs) > _MOST_JOBS else "refers"

    def _conclusion(self, resource: Resource, reach: Reach, actors: Sequence[Actor]) -> Iterator[Fact]:
        """Yield the conclusion that nothing else refers to a resource, and the ways that remain."""
        yield fact(
            "only-waiters-and-jobs-refer" if reach.queued else "only-waiters-refer",
            who=tuple(dict.fromkeys(map(self._who, actors[:_TOLD]))),
            more=max(0, len(actors) - _TOLD),
            resource=resource.description,
            references=reach.references,
        )
        for actor in actors[:_TOLD]:
            who = self._who(actor)
            way = actor.way[1:] if len(actor.way) > 1 and actor.way[0].text == who else actor.way
            yield fact("has-a-way", who=who, way=tuple(step.text for step in way))

    def _who(self, actor: Actor) -> str:
        if actor.task is not None:
            return f"task {self._names.get(actor.task, '?')}"
        if actor.thread is not None:
            return actor.thread.name or f"thread {self._threads.tid_of_state(actor.thread.address)}"
        return "anybody"

    def _waker(self, actor: Actor) -> Waker:
        if actor.task is not None:
            return Waker("reach", "memory", task=self._books.tasks.get(actor.task), name=_where(actor.way))
        if actor.thread is not None:
            frame = self._shown(actor.frame) if actor.frame is not None else None
            tid = self._threads.tid_of_state(actor.thread.address)
            return Waker("reach", "memory", tid=tid, frame=frame, name=_where(actor.way))
        return Waker("reach", "memory", name=_where(actor.way))


def _is_endless(wait: Union[Wait, TaskWait]) -> bool:
    """Return whether no time limit ends a wait, or only one that is far away; of a poll nothing that is known to."""
    endless = wait.endless is not False if wait.polls_s is not None else bool(wait.endless)
    return endless or (wait.remaining_s or 0.0) >= _FAR_S


def _size(ranges: Sequence[Tuple[int, int]]) -> int:
    return sum(end - start for start, end in ranges)


def _where(way: Sequence[Step]) -> str:
    return " → ".join(step.text for step in way)


def _referred_to(step: ReferredTo) -> Fact:
    if not step.by:
        return fact("unreferred", object=step.object, times=step.times)
    more = max(0, len(step.by) - MOST_REFERRERS)
    return fact("referred-to", object=step.object, times=step.times, by=step.by[:MOST_REFERRERS], more=more)


_OBSTACLES: Dict[str, GapCode] = {
    "free-threaded": "no-object-lists",
    "no-count": "no-reference-count",
    "weak": "weak-reference-unread",
    "overcounted": "references-overcounted",
    "objects": "too-many-referrers",
    "levels": "referrers-too-deep",
}


def _gap(subject: str, obstacle: Obstacle, whole: bool) -> Gap:
    """Return a gap that says why the other possible wakers are unknown; ``whole``: the core has every page."""
    if obstacle.kind == "unreadable":
        return Gap("cpython", subject, obstacle.what, code="referrers-unread")
    if obstacle.kind == "uncounted":
        counts: Dict[str, Value] = {"references": obstacle.references}
        code: GapCode = "references-unfound"
        if obstacle.found:
            counts["found"], code = obstacle.found, "references-uncounted"
        return Gap.of("cpython", subject, code, remedy="" if whole else None, what=obstacle.what, **counts)
    code = _OBSTACLES[obstacle.kind]
    return Gap.of("cpython", subject, code, what=obstacle.what, levels=MAX_LEVELS)


def _is_answered(reach: Optional[Reach]) -> bool:
    """Return whether the walk was completed or reached code that any agent can run; more references change nothing."""
    if reach is None:
        return False
    return reach.obstacle is None or not all(actor.is_agent for actor in reach.actors)
