"""Resources that tasks wait for: asyncio's primitives, futures, tasks, threads, descriptors and children."""

from __future__ import annotations

import heapq
import math
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.objects.builtins import NotThat
from ...evidence import HeldLock, PythonFrame, Resource, TaskWait, Waker, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import ResourceKind
from ...frameworks.asyncio.awaiting import Awaited, Awaiting
from ...frameworks.asyncio.deadlines import Deadlines, earlier
from ...frameworks.asyncio.eventloops import LoopState
from ...frameworks.asyncio.futures import Futures
from ...frameworks.asyncio.landmarks import Suspension
from ...frameworks.asyncio.primitives import Primitive, PrimitiveKind, Primitives, describe
from ...frameworks.asyncio.tasks import Asyncio, TaskState
from ...frameworks.channels import RECEIVING, SENDING
from ...frameworks.greenlet.links import Links, PoolOfGreenlets
from ...frameworks.tornado.coroutines import TornadoRead
from ...frameworks.trio.runners import TrioRead, TrioWait
from ...frameworks.twisted.deferreds import TwistedRead
from ...memory import Fault
from ..ownership.ownership import Ownership
from ..ownership.pools import FutureFacts
from ..ownership.taskholders import TaskHolders
from ..process.context import PythonContext
from .callbacks import called_back
from .endpoints import DescriptorBook
from .numbering import numbered

#: Names of asyncio's classes.
_CLASSES = {
    "lock": "Lock",
    "event": "Event",
    "condition": "Condition",
    "semaphore": "Semaphore",
    "queue": "Queue",
    "barrier": "Barrier",
}
#: Limits of the search for names, which reads all surrounding variables: frames per resource; places in the code in
#: total, and futures per place.
_MOST_USERS = 6
#: Waits for what one of several waiters gets: a timer that puts back one part ends one of them.
_ONE_AT_A_TIME = ("semaphore", "lock", "queue", "condition")
_MOST_NAMES, _MOST_NAMES_A_LINE = 2_000, 20


#: Look-up of the agents that could complete a concurrent.futures.Future.
Work = Callable[[int], Optional[FutureFacts]]
_KINDS: Dict[PrimitiveKind, ResourceKind] = {
    "lock": "async-lock", "event": "async-event", "condition": "async-condition", "semaphore": "async-semaphore",
    "queue": "async-queue", "barrier": "async-barrier",
}  # fmt: skip


class Limit(NamedTuple):
    """Limits of a task's wait: as ``endless``, ``timeout_s`` and ``remaining_s`` of evidence.TaskWait."""

    endless: Optional[bool]
    given: Optional[float] = None
    remaining: Optional[float] = None


class Draft(NamedTuple):
    """A resource that tasks wait for or hold, while tasks are being read."""

    ident: str
    kind: ResourceKind
    awaited: Awaited
    users: List[Frame]
    waiters: List[str]
    sends: Set[bool]  # of a channel: whether tasks wait to send, to receive
    ends: Set[int]  # of a channel: the objects whose methods wait

    @property
    def primitive(self) -> Optional[Primitive]:
        """Return the asyncio primitive that it is; None for a future."""
        return self.awaited.primitive


class Awaits:
    """A collector of what the tasks of all interpreters wait for."""

    def __init__(
        self,
        context: PythonContext,
        shown: Callable[[Frame], PythonFrame],
        descriptors: DescriptorBook,
    ) -> None:
        self._python = context.python
        self._threads = context.threads
        self._names = context.names
        self._shown = shown
        self._descriptors = descriptors
        self._clocks = context.raw.clocks
        self._primitives = Primitives(context.python.objects)
        self._holders = TaskHolders(context)
        self._drafts: Dict[int, Draft] = {}
        self._waits: Dict[int, TaskWait] = {}  # by address of the task
        self._ids: Dict[int, str] = {}
        self._searched: Dict[Tuple[int, int], int] = {}  # place in the code → names looked for there
        self._others: List[Resource] = []
        self._futures: Optional[Futures] = None
        self._pooled: Dict[int, PoolOfGreenlets] = {}  # by their semaphores
        self._gone_greenlets: Set[int] = set()  # greenlets that have ended
        self._borrowers: Dict[int, int] = {}  # stand-in of a task in a limiter → the task
        #: Tasks that wait until all of several others have ended, by address.
        self.behind: Dict[int, Tuple[int, ...]] = {}
        #: Tasks of other frameworks than asyncio, by address.
        self.suspended: Dict[int, Suspension] = {}
        self._called_back: Dict[int, List[Waker]] = {}  # future → tasks whose completion calls a callback with it

    def read(
        self,
        asyncio: Asyncio,
        states: Sequence[TaskState],
        loops: Sequence[LoopState],
        ids: Dict[int, str],
        tornado: TornadoRead,
    ) -> None:
        """Read the tasks of one interpreter, Tornado's coroutines among them.

        ``ids``: address of a task → its id.
        """
        self._ids.update(ids)
        self._futures = asyncio.futures
        awaiting = Awaiting(self._python, asyncio.futures, tornado.futures)
        found = {
            state.address: awaiting.of(state.frames, state.waiter)
            for state in states
            if state.waiter and not state.ready
        }
        deadlines = Deadlines(self._python.objects, asyncio.functions, asyncio.futures, awaiting.primitives)
        ended = deadlines.ended(timer for loop in loops for timer in loop.timers or ())
        by_future = {state.waiter: found[state.address] for state in states if state.address in found}
        bounded = _bounded(found, ended, by_future)
        clocks = {loop.address: loop.timers is not None for loop in loops}
        self._holders.read(states, awaiting)
        self._called_back.update(called_back(asyncio, states, ids))
        waiters = {state.address: state.waiter for state in states}
        for task, coroutine in tornado.coroutines.items():
            self.suspended[task] = Suspension(coroutine, waiters.get(task, 0))
        for state in states:
            awaited = found.get(state.address)
            if awaited is not None:
                if awaited.all:
                    self.behind[state.address] = tuple(awaited.tasks)
                limit = self._limit(state, awaited, bounded, clocks, awaiting)
                users = [frame for frame in state.frames if not awaiting.own(frame)]
                self._waits[state.address] = self._wait(ids[state.address], users, awaited, limit)

    def read_greenlets(self, links: Links, states: Sequence[TaskState], ids: Dict[int, str]) -> None:
        """Read the greenlets of one interpreter, as ``read`` does asyncio's tasks."""
        self._ids.update(ids)
        waits = {state.address: links.of(state) for state in states if not state.ready}
        wanted = {w.awaited.primitive for w in waits.values() if w is not None and w.awaited.primitive is not None}
        self._holders.read_others(states, links, [primitive for primitive in wanted if primitive.kind == "lock"])
        self._pooled.update(links.pools)
        self._gone_greenlets.update(links.ended())
        for state in states:
            wait = waits.get(state.address)
            if wait is not None:
                users = [frame for frame in state.frames if not links.own(frame)]
                endless = None if wait.timed else True
                limit = Limit(False, wait.seconds, self._clocks.until(wait.due)) if wait.timed else Limit(endless)
                self._waits[state.address] = self._wait(ids[state.address], users, wait.awaited, limit)

    def read_trio(self, found: TrioRead, ids: Dict[int, str]) -> None:
        """Read the trio tasks of one interpreter.

        ``ids``: address of a task → its id.
        """
        self._ids.update(ids)
        self._borrowers.update(found.borrowers)
        self._holders.read(found.tasks, found.awaiting)
        for state in found.tasks:
            wait = found.waits.get(state.address)
            if wait is not None and wait.awaited.all:
                self.behind[state.address] = tuple(wait.awaited.tasks)
            if wait is not None:
                users = [frame for frame in state.frames if not found.awaiting.own(frame)]
                told = self._wait(ids[state.address], users, wait.awaited, self._limit_by_scope(wait))
                self._waits[state.address] = told
            self.suspended[state.address] = Suspension(
                found.coroutines.get(state.address, 0),
                (_address(wait.awaited) or 0) if wait is not None else 0,
            )

    def read_twisted(self, found: TwistedRead, ids: Dict[int, str]) -> None:
        """Read Twisted's tasks of one interpreter, as ``read`` does asyncio's."""
        self._ids.update(ids)
        locks = {wait.awaited.primitive for wait in found.waits.values() if wait.awaited.kind == "lock"}
        self._holders.read_others(found.tasks, found.awaiting, [lock for lock in locks if lock is not None])
        for state in found.tasks:
            wait = found.waits[state.address]
            if wait.awaited.all or wait.awaited.kind == "task":
                self.behind[state.address] = tuple(wait.awaited.tasks)
            users = [frame for frame in state.frames if not found.awaiting.own(frame)]
            limit = Limit(False, None, self._clocks.until_date(wait.due)) if wait.limited else Limit(True)
            self._waits[state.address] = self._wait(ids[state.address], users, wait.awaited, limit)
            self.suspended[state.address] = Suspension(state.address, wait.deferred)

    def _limit_by_scope(self, wait: TrioWait) -> Limit:
        """Return what limits a trio task's wait: the first deadline of the cancel scopes around it."""
        awaited, expiry = wait
        if awaited.stays or expiry.limited is False:
            return Limit(True)
        if expiry.limited is None:
            return Limit(None)
        return Limit(False, awaited.seconds, self._clocks.until(expiry.due))

    def _limit(
        self,
        state: TaskState,
        awaited: Awaited,
        bounded: Mapping[int, Optional[float]],
        clocks: Dict[int, bool],
        awaiting: Awaiting,
    ) -> Limit:
        """Return what limits a task's wait; ``endless`` is None if its loop's timers are unknown: any may cancel it."""
        primitive = awaited.primitive.address if awaited.primitive is not None else None
        ends = [end for end in (state.address, state.waiter, primitive) if end is not None and end in bounded]
        if not awaited.timed and not ends:
            return Limit(True if clocks.get(state.loop or 0) else None)
        if ends == [primitive] and awaited.kind in _ONE_AT_A_TIME:
            return Limit(None)  # the timer may let another waiter go on
        due: Optional[float] = None
        for end in ends:
            due = earlier(due, bounded[end])
        given = awaited.seconds if awaited.kind == "sleep" else awaiting.given(state.frames)
        return Limit(False, given, self._clocks.until(due))

    # ------------------------------------------------------------------ waits

    def wait(self, task: int) -> Optional[TaskWait]:
        """Return the wait of the task at an address; None if it does not wait."""
        return self._waits.get(task)

    def _wait(self, ident: str, users: Sequence[Frame], awaited: Awaited, limit: Limit) -> TaskWait:
        known = [self._ids[task] for task in awaited.tasks if task in self._ids]
        tasks = tuple(sorted(known, key=lambda task: int(task[len("task-") :])))  # sets have no stable order
        if len(tasks) < len(awaited.tasks) and awaited.any:
            tasks = ()  # some were not read
        resource = None if awaited.tasks else self._resource(ident, users, awaited)
        return TaskWait(
            awaited.kind,
            resource,
            tasks,
            awaited.any,
            limit.endless,
            self._detail(awaited),
            limit.given,
            limit.remaining,
        )

    @staticmethod
    def _detail(awaited: Awaited) -> Optional[str]:
        if awaited.pid is not None:
            return f"waits for process {awaited.pid} to end"
        return awaited.detail

    def _resource(self, ident: str, users: Sequence[Frame], awaited: Awaited) -> Optional[str]:
        if awaited.kind == "descriptor":
            return self._descriptors.note(awaited.fd) if awaited.fd is not None else None
        if awaited.pid is not None:
            return self.process(ident, awaited.pid)
        address = _address(awaited)
        if address is None or awaited.kind == "sleep":
            return None
        draft = self.note(address, awaited)
        draft.users.extend(users[:4] if len(draft.users) < 40 else ())
        draft.waiters.append(ident)
        if awaited.sends is not None:
            draft.sends.add(awaited.sends)
            draft.ends.update(() if awaited.end is None else (awaited.end,))
        return draft.ident

    def note(self, address: int, awaited: Awaited) -> Draft:
        """Return the draft of the resource at an address; create it if needed."""
        known = self._drafts.get(address)
        if known is None:
            kind: ResourceKind = "async-future" if awaited.primitive is None else _KINDS[awaited.primitive.kind]
            known = Draft(f"{kind}-{len(self._drafts) + 1}", kind, awaited, [], [], set(), set())
            self._drafts[address] = known
        return known

    def polled(self, address: int, ident: str, users: Sequence[Frame], kind: Optional[PrimitiveKind]) -> Optional[str]:
        """Note that a task polls an object of asyncio's, and return its resource; None if it cannot be read.

        ``kind``: of a primitive; None for a future.
        """
        primitive = self._primitives.at(address) if kind is not None else None
        if kind is not None and primitive is None:
            return None
        draft = self.note(address, Awaited(kind or "future", primitive=primitive, future=address))
        draft.users.extend(users[:4] if len(draft.users) < 40 else ())
        draft.waiters.append(ident)
        return draft.ident

    def process(self, ident: str, pid: int) -> str:
        """Note that a task waits for the end of a process, and return the process's resource."""
        resource = Resource(
            f"child-{len(self._others) + 1}",
            "process",
            f"process {pid}",
            owner_pid=pid,
            owner_basis="recorded",
            waiting_tasks=(ident,),
        )
        self._others.append(resource)
        return resource.id

    # ------------------------------------------------------------------ holders

    def holds(self, task: int) -> Tuple[HeldLock, ...]:
        """Return what a task holds.

        Call this before ``resources``, which names locks that nothing waits for.
        """
        found = []
        for primitive, claim in self._holders.of(task):
            draft = self.note(primitive.address, Awaited(primitive.kind, primitive=primitive))
            if claim.acquired_at is not None:
                draft.users.append(claim.acquired_at.frame)
            found.append(claim.held(draft.ident, self._shown))
        return tuple(held for held in found if held is not None)

    # ------------------------------------------------------------------ results

    @property
    def tasks(self) -> Dict[int, str]:
        """Return the ids of tasks by address."""
        return self._ids

    def addresses(self) -> Dict[str, int]:
        """Return addresses of objects by resource id."""
        return {draft.ident: address for address, draft in self._drafts.items()}

    def blind(self) -> Dict[str, FrozenSet[str]]:
        """Return, by id of a channel, the classes of the ends that cannot end the waits for it."""
        return {
            draft.ident: SENDING if True in draft.sends else RECEIVING
            for draft in self._drafts.values()
            if len(draft.sends) == 1
        }

    def kinds(self) -> Dict[str, ResourceKind]:
        """Return kinds of objects by resource id."""
        return {draft.ident: draft.kind for draft in self._drafts.values()}

    def resources(self, work: Work) -> Tuple[Resource, ...]:
        """Return all resources; those with equal descriptions are numbered."""
        found = [self._finished(address, draft, work) for address, draft in self._drafts.items()]
        return (*numbered(found), *self._others)

    def _finished(self, address: int, draft: Draft, work: Work) -> Resource:
        primitive = draft.primitive
        name = self._name(address, draft)
        found = Resource(
            draft.ident,
            draft.kind,
            _description(draft, name or None),
            waiting_tasks=tuple(draft.waiters),
            named=None if name is None else bool(name),
        )
        if primitive is None:
            found = changed(found, wakers=tuple(self._called_back.get(address, ())))
            return self._with_runner(found, draft.awaited, work)
        part_of = self._drafts.get(primitive.inner) if primitive.inner is not None else None
        found = changed(
            found,
            locked=primitive.locked,
            value=primitive.value,
            limit=primitive.limit,
            part_of=part_of.ident if part_of is not None else None,
        )
        claims = self._holders.claims(address)
        if draft.kind == "async-lock":
            return self._with_owner(found, name, draft, primitive)
        if draft.kind != "async-semaphore":
            return found
        if address in self._pooled:
            return self._of_pool(found, self._pooled[address])
        if primitive.holders:
            return self._with_borrowers(found, primitive, {claim.agent: claim for claim in claims})
        wakers = tuple(
            Waker("holder", claim.basis, task=self._ids.get(claim.agent), frame=claim.place(self._shown))
            for claim in claims
        )
        if not wakers and found.value == 0 and name:
            taken, released = (
                self._holders.taken_at(name, draft.users),
                self._holders.released_at(name, draft.users),
            )
            return changed(found, taken_at=taken, released_at=released)
        return changed(found, wakers=wakers)

    def _of_pool(self, found: Resource, pool: PoolOfGreenlets) -> Resource:
        """Return the semaphore of a pool of greenlets: each of these has a place until it ends.

        Other code could take one out of the pool, which is not known: the holders are inferred.
        """
        wakers = tuple(Waker("holder", "inferred", task=self._ids[m]) for m in pool.members if m in self._ids)
        closed = True if pool.full and found.value == 0 and len(wakers) == len(pool.members) else None
        return changed(found, wakers=wakers, limit=pool.size, closed=closed)

    def _with_borrowers(self, found: Resource, limiter: Primitive, claims: Mapping[int, Ownership]) -> Resource:
        """Return a limiter's resource with the tasks that it records; closed if these have all that it lends."""
        tasks = [self._borrowers.get(holder, holder) for holder in limiter.holders]
        known = sorted((self._ids[task], task) for task in tasks if task in self._ids)
        wakers = []
        for ident, task in known:
            claim = claims.get(task)
            frame = claim.place(self._shown) if claim is not None else None
            wakers.append(Waker("holder", "recorded", task=ident, frame=frame))
        found = changed(found, wakers=tuple(wakers))
        if len(known) < len(tasks) or limiter.limit is None or len(known) < limiter.limit:
            return found
        return changed(found, closed=True, because=(fact("parts-held", limit=limiter.limit, held=len(known)),))

    def _with_owner(self, found: Resource, name: Optional[str], draft: Draft, lock: Primitive) -> Resource:
        if lock.owner is not None:  # recorded by the lock; a task that was not read is an unknown owner
            if self._has_ended(lock):
                ended = fact("records-ended-task", lock=found.description)
                return changed(found, owner_gone=True, owner_basis="recorded", because=(ended,))
            return changed(found, owner_task=self._ids.get(lock.owner), owner_basis="recorded")
        because = self._holders.nobody(lock)
        if because:
            taken = self._holders.taken_at(name, draft.users) if name else ()
            return changed(found, because=because, taken_at=taken)
        owner = self._holders.owner(lock)
        if owner is None:
            return found
        return changed(found, owner_task=self._ids.get(owner.agent), owner_basis=owner.basis)

    def _has_ended(self, lock: Primitive) -> bool:
        """Return whether the owner that a lock records has ended.

        A task that has not ended keeps its address and its coroutine.
        """
        if lock.owner_ended is not None:
            return lock.owner_ended
        futures, owner = self._futures, lock.owner
        if owner in self._gone_greenlets:
            return True
        if futures is None or owner is None:
            return False
        try:
            if not futures.is_task(owner):  # a task of another framework, or another object has taken the address
                return owner not in self._ids and lock.owner_runs is not None
            if futures.state(owner) == "done":
                return True
            return lock.owner_runs is not None and futures.coroutine(owner) != lock.owner_runs
        except (Fault, NotThat):
            return False

    def _with_runner(self, resource: Resource, awaited: Awaited, work: Work) -> Resource:
        """Return a future's resource with the agents that could complete it."""
        if awaited.concurrent is not None:
            facts = work(awaited.concurrent)
            if facts is not None:
                return facts.added_to(resource)
        tid = self._threads.tid_of_object(awaited.thread)
        if tid is None:
            return resource
        if awaited.outcome is not None:
            because = fact("function-runs", worker=self._threads.label(tid))
            return changed(resource, wakers=(Waker("runner", "memory", tid=tid),), closed=True, because=(because,))
        return changed(
            resource,
            wakers=(Waker("runner", "memory", tid=tid),),
            closed=True,
            because=(fact("set-by-shutdown"),),
        )

    def _name(self, address: int, draft: Draft) -> Optional[str]:
        """Return the program's name for a resource; "" if it has none, None if it was not searched for."""
        users = list(dict.fromkeys(draft.users))
        if not users or len(self._searched) >= _MOST_NAMES:
            return None
        place = (users[0].code.address, users[0].lasti)
        if draft.primitive is None:
            self._searched[place] = self._searched.get(place, 0) + 1
            if self._searched[place] > _MOST_NAMES_A_LINE:
                return None
        first: Optional[str] = None
        for user in users[:_MOST_USERS]:
            name = self._names.find(lambda value: value == address or value in draft.ends, [user])
            if name and ("." in name or "[" in name):
                return name  # an attribute says more than a local variable of a function that received the object
            first = first or name
        return first or ""


def _description(draft: Draft, name: Optional[str]) -> str:
    if draft.primitive is not None:
        state = describe(draft.primitive)
        called = draft.primitive.called or _CLASSES[draft.primitive.kind]
        what = f"{draft.primitive.library}{' ' if ' ' in called else '.'}{called}"
        return f"{what} {name or _awaited_in(draft.users)}" + (f" ({state})" if state else "")
    if draft.awaited.outcome is not None:
        return f"{draft.awaited.outcome}, {_awaited_in(draft.users)}"
    what = draft.awaited.what or "Future"
    if name is None or "." in name or "[" in name:
        return f"{what} {name or _awaited_in(draft.users)}"
    return f"{what} {name}, {_awaited_in(draft.users)}"


def _address(awaited: Awaited) -> Optional[int]:
    """Return the address of the object that a task waits for; None if it is none."""
    return awaited.primitive.address if awaited.primitive is not None else awaited.future


def _awaited_in(users: Sequence[Frame]) -> str:
    if not users:
        return "whose name was not found"
    return f"awaited in {users[0].function} ({users[0].code.filename.rsplit('/', 1)[-1]}:{users[0].line or '?'})"


def _bounded(
    found: Dict[int, Awaited], ended: Mapping[int, Optional[float]], by_future: Dict[int, Awaited]
) -> Dict[int, Optional[float]]:
    """Map what timers end, directly or by cancelling a task that awaits it, to when the first one is due.

    Cancellation continues to what a task, or the future of a gather, awaits. ``by_future``: wait of the task that waits
    for a future.
    """
    wave = [(_order(due), address) for address, due in ended.items()]
    for future, due in ended.items():
        wave += [(_order(due), task) for task in _cancelled_with(by_future.get(future))]
    for awaited in found.values():
        if awaited.timed and awaited.passes_on:
            wave += [(math.inf, task) for task in awaited.tasks]
    heapq.heapify(wave)
    bounded: Dict[int, Optional[float]] = {}
    while wave:  # the earliest first, so that each address is reached by its first timer
        due, address = heapq.heappop(wave)
        if address in bounded:
            continue
        bounded[address] = due if due < math.inf else None
        for task in _cancelled_with(found.get(address)):
            if task not in bounded:
                heapq.heappush(wave, (due, task))
    return bounded


def _order(due: Optional[float]) -> float:
    return math.inf if due is None else due


def _cancelled_with(awaited: Optional[Awaited]) -> Iterable[int]:
    return awaited.tasks if awaited is not None and awaited.passes_on else ()
