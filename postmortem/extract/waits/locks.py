"""Locks of one process: waiters, holders and names."""

from __future__ import annotations

import itertools
from typing import Dict, List, Optional, Sequence, Tuple

from ...cpython.execution.lookup import Watched
from ...cpython.frames.frame import Frame
from ...cpython.frames.names import MACHINERY
from ...cpython.objects.attributes import attribute
from ...cpython.state.interpreter import InterpreterState
from ...cpython.sync.freethreading import FreeThreading
from ...cpython.sync.locks import LockState
from ...cpython.sync.parking import parked_on
from ...cpython.sync.primitives import Layer, awaited_queue, condition_lock, ends_at, layers
from ...evidence import HeldLock, Resource, StopTheWorld, Waker
from ...evidence import replace as changed
from ..ownership.orphans import Orphans
from ..ownership.ownership import Ownership, plain
from ..ownership.pools import Pools
from ..ownership.threadholders import Holdings, Wanted
from ..process.context import PythonContext
from .numbering import numbered
from .polling import Polled, layer_of
from .primitives import Primitives
from .threadwaits import FutexFacts

_THREADING = "threading.py"
#: Frames above a wait that are searched for the program's name of a lock.
_USERS = 12


class LockWaits:
    """A collector of waits for locks and other primitives."""

    def __init__(self, context: PythonContext, pools: Pools) -> None:
        self._python = context.python
        self._threads = context.threads
        self._locks = context.python.locks
        self._free = FreeThreading(context.python)
        self.primitives = Primitives(context, pools)
        self.ids: Dict[int, str] = {}  # address of the lock → resource id
        self.states: Dict[int, LockState] = {}
        self.waiters: Dict[int, List[int]] = {}
        self.users: Dict[int, List[Frame]] = {}

    @property
    def wanted(self) -> Wanted:
        """Return the addresses of what threads wait for."""
        permits = self.primitives.wanted("semaphore", "queue")
        return Wanted({address: self.states[address] for address in self.waiters}, set(permits))

    # ------------------------------------------------------------------ waits

    def wait(self, word: int, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """Return the facts of a thread's wait for a futex word; None if unknown.

        ``frames``: most recent call first.
        """
        world = self._world(word, tid)
        if world is not None:
            return FutexFacts("mutex", None, world, "waits")
        lock = self._locks.awaited(frames, word) or self._free.awaited(word)
        layer = self._layer(word, frames, lock)
        if layer is not None:
            return self.primitives.wait(layer, tid, frames)._replace(over=self._locks.notified(frames[0], lock))
        if lock is None:
            # from 3.13 on a thread's end is awaited in C on a separate word; any other unknown word stays unknown
            joins = frames[0].is_in("_shutdown", _THREADING)
            return FutexFacts("lock", None, "for a thread to end", "waits") if joins else None
        ident = self.know(lock, frames[:_USERS])
        self.waiters.setdefault(lock.address, []).append(tid)
        if lock.kind == "mutex":
            return FutexFacts(lock.kind, ident, "for the lock of an object", "waits")
        return FutexFacts(lock.kind, ident, None)

    def polled(self, polled: Polled, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """Note a thread that polls for one of these objects and return the facts of its wait; None for other objects."""
        if polled.thing is None:
            return None
        layer = layer_of(polled)
        if layer is not None:
            return self.primitives.wait(layer, tid, frames)
        lock = self._locks.at(polled.thing) if polled.kind == "lock" else None
        if lock is None:
            return None
        ident = self.know(lock, frames[polled.depth : polled.depth + _USERS])
        self.waiters.setdefault(lock.address, []).append(tid)
        return FutexFacts(lock.kind, ident, "for a lock")

    def moved_on(self, ident: str, tid: int) -> None:
        """Forget that a thread waits for an object: it only pauses there."""
        self.primitives.forget(ident, tid)

    def address(self, ident: Optional[str]) -> Optional[int]:
        """Return the address of a resource; None if it is not known here."""
        known = {**{one: address for address, one in self.ids.items()}, **self.primitives.addresses()}
        return known.get(ident or "")

    def _layer(self, word: int, frames: Sequence[Frame], lock: Optional[LockState]) -> Optional[Layer]:
        """Return the synchronisation object that a thread waits for; None if it waits for a plain lock."""
        if not frames:
            return None
        queue = awaited_queue(self._python.frames, frames, word)
        if queue is not None:
            return Layer("queue", queue, "get", -1)
        if frames[0].is_in("_shutdown", _THREADING):
            thread = self._ending(word, frames[0])
            return Layer("thread", thread, "_shutdown", 0) if thread is not None else None
        found = layers(self._python.frames, frames)
        if not found:
            return None
        inner, address = found[0], lock.address if lock is not None else None
        if inner.kind == "condition":
            # a lock made for the wait or, when it is over, the lock that was released before
            given_up = condition_lock(self._python.objects, inner)
            known = self._locks.at(given_up) if given_up else None
            return None if address is None or (known is not None and known.address == address) else found[-1]
        if inner.kind == "import-lock":
            return inner if address and address == attribute(self._python.objects, inner.address, "wakeup") else None
        return inner if inner.kind == "thread" else None

    def _ending(self, word: int, frame: Frame) -> Optional[int]:
        """Return the threading.Thread whose end ``threading._shutdown`` waits for."""
        objects = self._python.objects
        known = self._threads.by_object
        lock = self._python.frames.local(frame, "lock")  # up to 3.12
        if lock is not None:
            return next((t for t in known if attribute(objects, t, "_tstate_lock") == lock), None)
        event = parked_on(self._python.memory, word)
        return next((t for t in known if event is not None and ends_at(objects, t, event)), None)

    def joined(self, tid: int) -> Optional[int]:
        """Return the thread that a thread joins; None if unknown."""
        return self.primitives.joined(tid)

    def _world(self, word: int, tid: int) -> Optional[str]:
        """Return the description of a wait for a stopped world; None if it is another wait."""
        state = self._threads.states.get(tid)
        what = self._free.world_wait(word, state) if state is not None else None
        if what != "stopped":
            return None if what is None else "for the other threads to pause, to stop the world"
        worlds = [self.stop_the_world(interpreter) for interpreter in self._python.interpreters]
        requester = next((world.requester_tid for world in worlds if world and world.requester_tid is not None), None)
        return "for a stopped world" if requester is None else f"until thread {requester} lets the world go on"

    def stop_the_world(self, interpreter: InterpreterState) -> Optional[StopTheWorld]:
        """Return the state of a free-threaded interpreter's stop-the-world; None if unknown and in other builds."""
        found = self._free.stop_the_world(interpreter)
        if found is None:
            return None
        return StopTheWorld(found.requested, found.stopped, self._threads.tid_of_state(found.requester))

    def know(self, lock: LockState, users: Sequence[Frame]) -> str:
        """Add a lock and frames that use it; return its resource id."""
        if lock.address not in self.ids:
            self.ids[lock.address] = f"{lock.kind}-{len(self.ids) + 1}"
            self.states[lock.address] = lock
        elif lock.through and not self.states[lock.address].through:
            self.states[lock.address] = lock
        self.users.setdefault(lock.address, []).extend(users)
        return self.ids[lock.address]


class LockBook:
    """Locks and primitives with their waiters and holders, including held locks that nothing waits for."""

    def __init__(self, context: PythonContext, waits: LockWaits, holdings: Holdings) -> None:
        self._python = context.python
        self._locks = context.python.locks
        self._primitives = waits.primitives
        self._holdings = holdings
        self._waits = waits
        self._shown = plain(context.python.frames)
        self._orphans = Orphans(context.python, context.threads.states, context.acquires)
        for lock, user in holdings.kept:
            waits.know(lock, [user])
        self._held: Dict[int, List[HeldLock]] = {}  # by thread
        for ownership in (*waits.primitives.imports(), *holdings.held):
            ident = waits.ids.get(ownership.thing) or waits.primitives.ident(ownership.thing)
            held = ownership.held(ident, self._shown) if ident is not None else None
            if held is not None:
                self._held.setdefault(ownership.agent, []).append(held)

    def held_by(self, tid: int) -> Tuple[HeldLock, ...]:
        """Return what a thread holds, the most recent call first."""
        return tuple(sorted(self._held.get(tid, ()), key=lambda h: (h.depth, h.resource)))

    def states(self) -> Dict[str, LockState]:
        """Return the locks as read, by resource id."""
        return {ident: self._waits.states[address] for address, ident in self._waits.ids.items()}

    def addresses(self) -> Dict[str, int]:
        """Return addresses of objects by resource id."""
        return {**{ident: address for address, ident in self._waits.ids.items()}, **self._primitives.addresses()}

    def variables(self) -> Dict[str, Watched]:
        """Return what changes the variables that threads and tasks poll, by resource id."""
        return self._primitives.variables()

    def resources(self) -> Tuple[Resource, ...]:
        """Return all resources; those with equal descriptions are numbered."""
        found = [self._resource(address, ident) for address, ident in self._waits.ids.items()]
        holders = {thing: tuple(map(self._waker, several)) for thing, several in self._holdings.permits.items()}
        found += [self._spent(one) for one in self._primitives.resources(holders)]
        return tuple(numbered(found))

    def _spent(self, made: Resource) -> Resource:
        """Return an awaited semaphore without a permit, with the places where permits are taken and released."""
        if made.kind != "semaphore" or made.value != 0 or not made.waiters:
            return made
        name, users = self._primitives.named(made.id)
        if not name:
            return made
        taken, released = self._orphans.taken_at(name, users), self._orphans.released_at(name, users)
        return changed(made, taken_at=taken, released_at=released)

    def _waker(self, ownership: Ownership) -> Waker:
        return Waker("holder", ownership.basis, tid=ownership.agent, frame=ownership.place(self._shown))

    def _resource(self, address: int, ident: str) -> Resource:
        lock, users = self._waits.states[address], self._waits.users.get(address, ())
        name = self._locks.name(address, users)
        what = lock.what or {"lock": "Lock", "rlock": "RLock"}.get(lock.kind, lock.kind)
        called = f"{what} {name}" if name else f"a {what} {self._inside(users)}"
        if lock.through:
            called = f"the lock of {lock.through} {name}" if name else called
        owner = self._holdings.owners.get(address)
        made = Resource(
            id=ident,
            kind=lock.kind,
            description=called,
            owner_tid=owner.agent if owner else None,
            owner_basis=owner.basis if owner else None,
            owner_gone=True if address in self._holdings.gone else None,
            waiters=tuple(self._waits.waiters.get(address, ())),
            locked=lock.locked,
            part_of=self._part_of(users),
        )
        return self._lost(made, name, users) if owner is None and made.waiters and name else made

    def _lost(self, made: Resource, name: str, users: Sequence[Frame]) -> Resource:
        """Return an awaited lock without a known holder, with the places where it is taken and released."""
        if made.owner_gone:
            return changed(made, taken_at=self._orphans.taken_at(name, users))
        because = self._orphans.accounts(name, users) if made.locked and made.kind == "lock" else ()
        if not because:
            return made
        taken, released = self._orphans.taken_at(name, users), self._orphans.released_at(name, users)
        return changed(made, taken_at=taken, released_at=released, because=because)

    def _inside(self, users: Sequence[Frame]) -> str:
        """Return a phrase that names the standard library's object that contains a lock."""
        for value in reversed(self._around(users)):
            name = self._primitives.name(value, users)
            if name:
                return f"in {(self._python.objects.type_name(value) or 'object').split('.')[-1]} {name}"
        return "whose name was not found"

    def _part_of(self, users: Sequence[Frame]) -> Optional[str]:
        return next((i for i in map(self._primitives.ident, self._around(users)) if i is not None), None)

    def _around(self, users: Sequence[Frame]) -> List[int]:
        """Return the standard library's objects whose methods use the lock, innermost first."""
        inside = itertools.takewhile(lambda frame: frame.code.filename.endswith(MACHINERY), users)
        found = (self._python.frames.local(frame, "self") for frame in inside)
        return [value for value in found if value]
