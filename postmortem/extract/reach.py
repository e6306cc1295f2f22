"""Who could still signal what threads and tasks wait for: from who refers to it, as far as nothing simpler tells.

It runs when all resources are known, for those that nobody holds and that are awaited without end, those with the fewest
waiters first, and no longer than a process's share of seconds. Cancelling a waiting task is left aside: that ends its wait
without what it waits for.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..cpython.closure import Actor, Reach, Surroundings, Walk, walk
from ..cpython.frames import Frame as PyFrame
from ..cpython.interpreter import Python, ThreadState
from ..cpython.landmarks import Landmarks
from ..cpython.referrers import Referrers
from ..cpython.wordsearch import WordSearch, near
from ..evidence import Gap, PythonFrame, Resource, Task, Thread, Waker
from ..evidence import replace as changed
from ..memory import ElfCore

SECONDS = 2.0
_KINDS = (
    "lock", "condition", "event", "semaphore", "barrier", "queue", "future",
    "async-lock", "async-event", "async-condition", "async-semaphore", "async-barrier", "async-queue", "async-future",
)  # fmt: skip
#: Each has a reference on the way up; a reader wants to see how it is known, not all of it.
_MOST_STEPS = 12
#: Walks that go over memory together: more than are begun, should the time be up.
_TOGETHER = 32
#: Bytes that are searched in a moment.
_LARGE = 32 << 20
_REMEDY = "a core with every page (--core sparse) tells more, as long as no C code is in the way"


class Books(NamedTuple):
    """What other parts of the reading know of the objects behind the evidence."""

    addresses: Mapping[str, int]  # resource → the object
    tasks: Mapping[int, str]  # address → id of the task
    threads: Mapping[int, ThreadState]  # by tid


class Reaches:
    def __init__(
        self, python: Python, core: ElfCore, books: Books, shown: Callable[[PyFrame], PythonFrame], gaps: List[Gap]
    ) -> None:
        self._python = python
        self._core = core
        self._books = books
        self._shown = shown
        self._gaps = gaps
        self._tid_of = {state.address: tid for tid, state in books.threads.items()}
        self._task_of = {ident: address for address, ident in books.tasks.items()}
        self._landmarks = Landmarks(python, tuple(books.tasks))

    def settle(
        self, resources: Sequence[Resource], threads: Sequence[Thread], tasks: Sequence[Task]
    ) -> Tuple[Resource, ...]:
        """The resources, those completed of which more is known now."""
        endless = {t.tid for t in threads if t.wait is not None and t.wait.endless}
        endless_tasks = {t.id for t in tasks if t.wait is not None and t.wait.endless}
        wanted = [r for r in resources if self._is_wanted(r, endless, endless_tasks)]
        if not wanted:
            return tuple(resources)
        if self._python.runtime.free_threaded:
            self._say(len(wanted), "a free-threaded interpreter keeps no lists of its objects", None)
            return tuple(resources)
        wanted.sort(key=lambda resource: len(resource.waiters) + len(resource.waiting_tasks))
        names = {address: self._name(tasks, ident) for address, ident in self._books.tasks.items()}
        until = time.monotonic() + SECONDS
        found: Dict[str, Reach] = {}
        for ranges in self._ranges(wanted):
            referrers = Referrers(self._python, WordSearch(self._core, ranges, until))
            left = [r for r in wanted if r.id not in found or found[r.id].obstacle is not None]
            found.update(self._walked(referrers, left, names, until))
        late = len(wanted) - len(found)
        if late and time.monotonic() > until:
            self._say(late, f"the {SECONDS:g} s that a process gets for this were over", None)
        obstacles = [reach.obstacle for reach in found.values() if reach.obstacle is not None]
        if obstacles:
            uncounted = [obstacle for obstacle in obstacles if " counts " in obstacle]
            self._say(len(obstacles), (uncounted or obstacles)[0], _REMEDY if uncounted else None)
        return tuple(self._completed(r, found[r.id]) if r.id in found else r for r in resources)

    def _ranges(self, wanted: Sequence[Resource]) -> Iterator[Sequence[Tuple[int, int]]]:
        """What to search: of a large process first what lies near what is known. References that are all found there are
        all that there are."""
        written = self._core.written
        if sum(end - start for start, end in written) > _LARGE:
            known = [self._books.addresses[resource.id] for resource in wanted]
            known += [*self._books.tasks, *self._landmarks.modules, *self._landmarks.of_threads]
            for state in self._books.threads.values():
                known += [state.address, *(frame.address for frame in state.frames)]
            yield near(written, known)
        yield written

    def _walked(
        self, referrers: Referrers, wanted: Sequence[Resource], names: Mapping[int, str], until: float
    ) -> Dict[str, Reach]:
        """By resource, as far as its waiters are known."""
        found: Dict[str, Reach] = {}
        for start in range(0, len(wanted), _TOGETHER):
            if time.monotonic() > until:
                break
            walks = {r.id: self._walk(referrers, r, names) for r in wanted[start : start + _TOGETHER]}
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

    @staticmethod
    def _name(tasks: Sequence[Task], ident: str) -> str:
        number = int(ident.rpartition("-")[2])
        task = tasks[number - 1] if 0 < number <= len(tasks) else None
        return (task.name if task is not None else None) or ident

    def _say(self, count: int, reason: str, remedy: Optional[str]) -> None:
        subject = f"who else could end {count} of the waits" if count != 1 else "who else could end one of the waits"
        self._gaps.append(Gap("cpython", subject, reason, remedy))

    # ------------------------------------------------------------------ one resource

    def _walk(self, referrers: Referrers, resource: Resource, names: Mapping[int, str]) -> Optional[Walk]:
        """None when what its waiters sleep on is not known."""
        states = [self._books.threads[tid] for tid in resource.waiters if tid in self._books.threads]
        waiting = set(resource.waiting_tasks)
        tasks = {self._task_of[ident] for ident in waiting if ident in self._task_of}
        subject = self._books.addresses[resource.id]
        starts = [self._landmarks.waits_on(state, subject) for state in states]
        starts += [self._landmarks.future_of(task) for task in tasks]
        known = [start for start in starts if start is not None]
        if len(known) < len(starts) or len(states) < len(resource.waiters) or len(tasks) < len(waiting):
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
        return Walk(self._python, referrers, around, names, [*dict.fromkeys(known), subject])

    def _completed(self, resource: Resource, reach: Reach) -> Resource:
        wakers = list(resource.wakers)
        for actor in reach.actors:
            wakers.append(self._waker(actor))
        if not reach.complete:
            return changed(resource, wakers=tuple(wakers))
        because = (*resource.because, *reach.because[:_MOST_STEPS])
        return changed(resource, wakers=tuple(wakers), closed=True, because=because)

    def _waker(self, actor: Actor) -> Waker:
        if actor.task is not None:
            return Waker("reach", "memory", task=self._books.tasks.get(actor.task), name=actor.where)
        if actor.thread is not None:
            frame = self._shown(actor.frame) if actor.frame is not None else None
            tid = self._tid_of.get(actor.thread.address)
            return Waker("reach", "memory", tid=tid, frame=frame, name=actor.where)
        return Waker("reach", "memory", name=actor.where)
