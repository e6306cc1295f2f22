"""Agents that could still signal what threads and tasks wait for, found by following references in memory.

The search runs once all resources are known:

- for resources without an owner that are awaited without a deadline, those with the fewest waiters first
- for at most ``SECONDS`` per process

Cancellation of a waiting task is ignored: it ends the wait without providing what is awaited.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

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
from ...evidence import Fact, Gap, Loop, PythonFrame, Resource, Task, Thread, Waker, fact
from ...evidence import replace as changed
from ...evidence.facts import Value
from ...evidence.vocabulary import GapCode
from ...frameworks.asyncio.landmarks import Landmarks
from ..process.context import PythonContext
from .urgency import Urgency

SECONDS = 2.0
_KINDS = (
    "lock", "condition", "event", "semaphore", "barrier", "queue", "future",
    "async-lock", "async-event", "async-condition", "async-semaphore", "async-barrier", "async-queue", "async-future",
)  # fmt: skip
#: Steps kept as proof.
_MOST_STEPS = 40
#: Agents named in the conclusion.
_TOLD = 2
#: Walks that share one pass over memory. Limited, since all of them are unfinished when time is up during the pass.
_TOGETHER = 32
#: Bytes; larger processes are first searched near known objects.
_LARGE = 32 << 20


class Books(NamedTuple):
    """Objects behind the evidence."""

    addresses: Mapping[str, int]  # resource → object
    tasks: Mapping[int, str]  # address → id of the task


class Reaches:
    """A search for agents that can reach what others wait for."""

    def __init__(self, context: PythonContext, books: Books, shown: Callable[[PyFrame], PythonFrame]) -> None:
        self._python = context.python
        self._core = context.core
        self._threads = context.threads
        self._books = books
        self._shown = shown
        self._gaps = context.gaps
        self._task_of = {ident: address for address, ident in books.tasks.items()}
        self._names: Mapping[int, str] = {}  # address → name of the task

    @cached_property
    def _landmarks(self) -> Landmarks:
        return Landmarks(self._python, tuple(self._books.tasks))

    def settle(
        self,
        resources: Sequence[Resource],
        threads: Sequence[Thread],
        tasks: Sequence[Task],
        loops: Sequence[Loop] = (),
    ) -> Tuple[Resource, ...]:
        """Return all resources, with wakers and conclusions added where the search found any."""
        endless = {t.tid for t in threads if t.wait is not None and t.wait.endless}
        endless_tasks = {t.id for t in tasks if t.wait is not None and t.wait.endless}
        wanted = [r for r in resources if self._is_wanted(r, endless, endless_tasks)]
        if not wanted:
            return tuple(resources)
        found, obstacle = self._search(wanted, tasks)
        done = tuple(self._completed(r, found[r.id]) if r.id in found else r for r in resources)
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
        until = time.monotonic() + SECONDS
        found: Dict[str, Reach] = {}
        for ranges in self._ranges(wanted):
            referrers = Referrers(self._python, WordSearch(self._core, ranges, until))
            left = [r for r in wanted if r.id not in found or found[r.id].obstacle is not None]
            found.update(self._walked(referrers, left, until))
        if len(found) < len(wanted) and time.monotonic() > until:
            return found, Obstacle("late")
        obstacles = sorted(reach.obstacle for reach in found.values() if reach.obstacle is not None)
        return found, next((o for o in obstacles if o.kind == "uncounted"), next(iter(obstacles), None))

    def _ranges(self, wanted: Sequence[Resource]) -> Iterator[Sequence[Tuple[int, int]]]:
        """Yield the address ranges to search; in a large process those near known objects first.

        If all counted references are found in the first ranges, nothing else refers to the object.
        """
        written = self._core.written
        if sum(end - start for start, end in written) > _LARGE:
            known = [self._books.addresses[resource.id] for resource in wanted]
            known += [*self._books.tasks, *self._landmarks.modules, *self._landmarks.of_threads]
            for state in self._threads.states.values():
                known += [state.address, *(frame.address for frame in state.frames)]
            yield near(written, known)
        yield written

    def _walked(self, referrers: Referrers, wanted: Sequence[Resource], until: float) -> Dict[str, Reach]:
        """Return what was found per resource whose waiters are known."""
        found: Dict[str, Reach] = {}
        for start in range(0, len(wanted), _TOGETHER):
            if time.monotonic() > until:
                break
            walks = {r.id: self._walk(referrers, r) for r in wanted[start : start + _TOGETHER]}
            begun = {ident: one for ident, one in walks.items() if one is not None}
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
        self._gaps.append(_gap(subject, obstacle, self._core.is_whole))

    # ------------------------------------------------------------------ one resource

    def _walk(self, referrers: Referrers, resource: Resource) -> Optional[Walk]:
        """Return the walk that starts at what the waiters sleep on; None if that is unknown."""
        known = self._threads.states
        states = [known[tid] for tid in resource.waiters if tid in known]
        waiting = set(resource.waiting_tasks)
        tasks = {self._task_of[ident] for ident in waiting if ident in self._task_of}
        subject = self._books.addresses[resource.id]
        starts = [self._landmarks.waits_on(state, subject) for state in states]
        starts += [self._landmarks.future_of(task) for task in tasks]
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
        )
        return Walk(self._python, referrers, around, self._names, [*dict.fromkeys(begun), subject])

    def _completed(self, resource: Resource, reach: Reach) -> Resource:
        actors = sorted(reach.actors, key=lambda actor: (self._who(actor), _where(actor.way)))
        wakers = (*resource.wakers, *map(self._waker, actors))
        if not reach.complete:
            return changed(resource, wakers=wakers)
        because = (*resource.because, *self._conclusion(resource, reach, actors))
        steps = tuple(map(_referred_to, sorted(reach.steps)[:_MOST_STEPS]))
        return changed(resource, wakers=wakers, closed=True, because=because, steps=steps)

    def _conclusion(self, resource: Resource, reach: Reach, actors: Sequence[Actor]) -> Iterator[Fact]:
        """Yield the conclusion that nothing else refers to a resource, and the ways that remain."""
        yield fact(
            "only-waiters-refer",
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


def _where(way: Sequence[Step]) -> str:
    return " → ".join(step.text for step in way)


def _referred_to(step: ReferredTo) -> Fact:
    if not step.by:
        return fact("unreferred", object=step.object, times=step.times)
    more = max(0, len(step.by) - MOST_REFERRERS)
    return fact("referred-to", object=step.object, times=step.times, by=step.by[:MOST_REFERRERS], more=more)


_OBSTACLES: Dict[str, GapCode] = {
    "free-threaded": "no-object-lists",
    "late": "no-time-for-references",
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
    return Gap.of("cpython", subject, code, what=obstacle.what, seconds=SECONDS, levels=MAX_LEVELS)


def _is_answered(reach: Optional[Reach]) -> bool:
    """Return whether the walk was completed or reached code that any agent can run; more references change nothing."""
    if reach is None:
        return False
    return reach.obstacle is None or any(actor.thread is None and actor.task is None for actor in reach.actors)
