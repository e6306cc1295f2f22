"""Holders of locks, from the `with` slots of frames, the records of RLocks and, failing these, from source."""

from __future__ import annotations

import itertools
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.iterated import iterated
from ...cpython.sync.locks import Locks, LockState
from ...evidence.vocabulary import OwnerBasis
from ...sourcepaths import is_stdlib
from ..process.context import PythonContext
from .acquires import LOCKS, QUEUES
from .ownership import Acquired, Ownership

_THREADING = "threading.py"
#: Frames searched per thread for `with` statements: real code nests a few hundred at most.
_MAX_SEARCHED = 1_000
_MAX_LOCALS = 50
#: Innermost frames of a thread that may be inside of a lock's own methods.
_MOST_INSIDE = 4
#: Methods of a lock's class that take it.
_TAKES = ("__enter__", "acquire")


class Wanted(NamedTuple):
    """Addresses of what threads wait for."""

    states: Mapping[int, LockState]
    permits: Set[int]  # semaphores and queues


class Holdings(NamedTuple):
    """Everything that threads hold.

    - ``owners``: by lock
    - ``gone``: locks that record a thread that has ended
    - ``permits``: by semaphore or queue: permits, and items to be put back
    - ``held``: everything that a frame accounts for
    - ``kept``: locks held by `with` statements, each with its frame
    """

    owners: Mapping[int, Ownership]
    gone: FrozenSet[int]
    permits: Mapping[int, Tuple[Ownership, ...]]
    held: Sequence[Ownership]
    kept: Sequence[Tuple[LockState, Frame]]


#: (thread, frames of a coroutine that waits on its event loop): what the coroutine holds counts as the thread's.
Suspended = Sequence[Tuple[int, Sequence[Frame]]]


def find_holders(context: PythonContext, wanted: Wanted, suspended: Suspended) -> Holdings:
    """Return the holders of what threads wait for, and of every lock in a `with` statement."""
    return ThreadHolders(context).find(wanted, suspended)


class ThreadHolders:
    """A search for what threads hold; used once."""

    def __init__(self, context: PythonContext) -> None:
        self._python = context.python
        self._table, self._threads = context.threads, context.threads.states
        self._locks: Locks = context.python.locks
        self._acquires = context.acquires
        self._claims: Dict[int, List[Ownership]] = {}
        self._owners: Dict[int, Ownership] = {}
        self._gone: Set[int] = set()
        self._held: List[Ownership] = []
        self._kept: List[Tuple[LockState, Frame]] = []

    def find(self, wanted: Wanted, suspended: Suspended) -> Holdings:
        """Return what threads and their suspended coroutines hold."""
        permits = wanted.permits
        for tid in sorted(self._threads):
            self._claim(tid, self._threads[tid].frames[:_MAX_SEARCHED], permits)
        for tid, frames in suspended:
            self._claim(tid, frames, permits, len(self._threads[tid].frames) if tid in self._threads else 0)
        states = dict(wanted.states)
        for lock, _frame in self._kept:
            states.setdefault(lock.address, lock)
        self._search(states, wanted)
        by_permit = {address: tuple(self._claims.get(address, ())) for address in permits}
        for (
            claims
        ) in by_permit.values():  # each frame counts as one permit: a thread that enters a semaphore twice holds two
            self._held.extend(claims)
        return Holdings(self._owners, frozenset(self._gone), by_permit, self._held, self._kept)

    def _search(self, states: Mapping[int, LockState], searched: Wanted) -> None:
        wanted, permits = set(searched.states), searched.permits
        doubted = self._settle_locks(states, wanted)
        unowned = {a for a in wanted if a not in self._owners and a not in self._gone and states[a].locked}
        if unowned or permits:
            self._infer(unowned, permits)
        for address, claims in doubted.items():
            if address not in self._owners and not self._others_may({claim.agent for claim in claims}):
                self._own(address, claims, "inferred")

    # ------------------------------------------------------------------ what is certain

    def _settle_locks(self, states: Mapping[int, LockState], wanted: Set[int]) -> Dict[int, List[Ownership]]:
        """Settle the owners of locks; return the claims that may have been released temporarily."""
        certain = self._python.all_threads and not self._python.finalizing
        doubted: Dict[int, List[Ownership]] = {}
        for address, lock in states.items():
            claims = self._claims.get(address, [])
            if lock.owner_ident is not None:
                owner = self._table.tid_of_ident(lock.owner_ident)
                if owner is not None:
                    self._record(address, owner, [c for c in claims if c.agent == owner])
                elif certain and lock.locked:
                    self._gone.add(address)
            elif lock.locked and len({c.agent for c in claims}) == 1:
                if address in wanted and any(self._doubtful(c) for c in claims):
                    doubted[address] = claims
                else:
                    self._own(address, claims, "with-slot")
        return doubted

    def _record(self, address: int, owner: int, claims: Sequence[Ownership]) -> None:
        """Add the owner that a lock records.

        An ident is reused after its thread has ended, except the main thread's. The owner is therefore only inferred
        when:

        - no function of the thread accounts for the record, and it is not the main thread
        - the thread currently runs no Python code
        """
        state = self._threads.get(owner)
        if state is None:
            self._owners[address] = Ownership(address, owner, "inferred")
            return
        if not claims:
            claims = [
                Ownership(address, owner, "recorded", Acquired(frame, depth, line))
                for depth, frame in enumerate(state.frames[:_MAX_SEARCHED])
                for line, what in self._by_hand(frame)
                if what == address
            ]
        main = self._python.objects.type_name(state.object or 0) == "_MainThread"
        if claims:
            self._own(address, claims, "recorded")
        else:
            self._owners[address] = Ownership(address, owner, "recorded" if main else "inferred")

    def _claim(self, tid: int, frames: Sequence[Frame], permits: Set[int], below: int = 0) -> None:
        """Collect what a thread's `with` statements hold.

        ``below``: number of the thread's frames above these.
        """
        for depth, frame in enumerate(frames, below):
            above = frames[: depth - below]
            for manager, line in self._entered(frame, above[-1] if above else None):
                lock = self._locks.at(manager)
                if lock is None and manager in permits:
                    what = manager
                elif lock is not None and lock.locked and not self._given_up(lock, above):
                    self._kept.append((lock, frame))
                    what = lock.address
                else:
                    continue
                claim = Ownership(what, tid, "with-slot", Acquired(frame, depth, line))
                self._claims.setdefault(what, []).append(claim)

    def _entered(self, frame: Frame, inner: Optional[Frame]) -> Iterator[Tuple[int, Optional[int]]]:
        """Yield (context manager, line) of a frame's `with` statements, and of those in generators that it iterates over."""
        for entered in self._locks.entered(frame):
            yield entered.manager, entered.line
        for generator in iterated(self._python.frames, frame, inner):
            for entered in self._locks.entered(generator):
                if entered.line is not None:
                    yield entered.manager, frame.line

    def _given_up(self, lock: LockState, above: Sequence[Frame]) -> bool:
        """Return whether `condition.wait()` has released the lock while `with condition` keeps the slot."""
        for frame in above:
            if frame.function == "wait" and frame.code.filename.endswith(_THREADING):
                condition = self._python.frames.local(frame, "self")
                inner = self._locks.at(condition) if condition else None
                if inner is not None and inner.address == lock.address:
                    return True
        return False

    def _doubtful(self, claim: Ownership) -> bool:
        """Return whether the body of a `with` may have released the lock temporarily.

        The slot proves nothing if the body, or a function that it calls, does one of these:

        - release the lock by hand, or pass on its `release` method
        - enter a context manager that releases something, or run the exit of one that takes the lock again
        """
        at = claim.acquired_at
        for frame in [*self._threads[claim.agent].frames[: at.depth + 1], at.frame] if at is not None else ():
            if frame.code.filename.endswith(_THREADING):
                continue
            if frame.function in ("__exit__", "__aexit__") and at is not None and frame is not at.frame:
                return True  # it takes the released lock again
            if claim.thing in map(self._lock, self._releasable(frame)):
                return True
            if any(self._locks.enter_uses(manager, "release") for manager, _line in self._locks.managers(frame)):
                return True
        return False

    def _releasable(self, frame: Frame) -> Iterator[int]:
        """Yield what a frame's function has released by hand, and objects whose `release` method it has passed on."""
        if "release" in frame.code.used_names():
            yield from self._acquires.released(frame)
            yield from self._acquires.passes_on(frame, "release")
        yield from self._locks.methods(frame, "release")

    def _lock(self, address: int) -> Optional[int]:
        """Return the lock that an object is or, for a Condition, contains; None if it is neither."""
        found = self._locks.at(address)
        return found.address if found is not None else None

    # ------------------------------------------------------------------ what is inferred

    def _infer(self, unowned: Set[int], permits: Set[int]) -> None:
        """Infer owners of wanted locks, permits and items that neither a `with` nor a record names."""
        claims: Dict[int, List[Ownership]] = {}
        for tid in sorted(self._threads):
            for depth, frame in enumerate(self._threads[tid].frames[:_MAX_SEARCHED]):
                if frame.code.filename.endswith(_THREADING):
                    continue
                for line, address in self._by_hand(frame) if unowned else ():
                    if address in unowned:
                        claim = Ownership(address, tid, "inferred", Acquired(frame, depth, line))
                        claims.setdefault(address, []).append(claim)
                for line, address in self._taken_out(frame) if permits else ():
                    if address in permits:
                        claim = Ownership(address, tid, "inferred", Acquired(frame, depth, line))
                        self._claims.setdefault(address, []).append(claim)
        for address, found in claims.items():
            if len({c.agent for c in found}) == 1:
                self._own(address, found, "inferred")
        for address, found in self._through_objects({a for a in unowned if a not in self._owners}).items():
            if len({c.agent for c in found}) == 1:
                self._own(address, found, "inferred")

    def _through_objects(self, unowned: Set[int]) -> Dict[int, List[Ownership]]:
        """Return, by lock, who is in a `with` of the object in whose ``__enter__`` or ``acquire`` others wait for that lock."""
        inside: Dict[int, Set[int]] = {}
        for state in self._threads.values() if unowned else ():
            for depth, frame in enumerate(state.frames[:_MOST_INSIDE]):
                owner = self._python.frames.local(frame, "self")
                if owner is not None and self._enters(owner, state.frames[depth : depth + _MOST_INSIDE]):
                    values = [
                        value for _name, value in itertools.islice(self._python.frames.locals(frame), _MAX_LOCALS)
                    ]
                    inside.setdefault(owner, set()).update(unowned.intersection(map(self._lock, values)))
        claims: Dict[int, List[Ownership]] = {}
        for tid in sorted(self._threads) if any(inside.values()) else ():
            for depth, frame in enumerate(self._threads[tid].frames[:_MAX_SEARCHED]):
                for manager, line in self._locks.managers(frame):
                    for lock in inside.get(manager, ()) if line is not None else ():
                        claim = Ownership(lock, tid, "inferred", Acquired(frame, depth, line))
                        claims.setdefault(lock, []).append(claim)
        return claims

    def _enters(self, owner: int, frames: Sequence[Frame]) -> bool:
        """Return whether the outermost of an object's methods, from the first frame on, is one that takes a lock."""
        local = self._python.frames.local
        inside = list(itertools.takewhile(lambda frame: local(frame, "self") == owner, frames))
        return bool(inside) and inside[-1].function in _TAKES and not is_stdlib(inside[-1].code.filename)

    def _others_may(self, tids: Set[int]) -> bool:
        """Return whether other threads may have acquired something that their source does not show."""
        others = [state.frames[:_MAX_SEARCHED] for tid, state in self._threads.items() if tid not in tids]
        return any(self._acquires.unread(f) for f in itertools.chain.from_iterable(others))

    def _by_hand(self, frame: Frame) -> Iterator[Tuple[Optional[int], int]]:
        """Yield (line, lock) for locks that a frame's function has acquired by hand and not released.

        Sources:

        - its own calls and those of functions that it called
        - context managers that it entered: a class whose ``__enter__`` acquires, or a generator that did before its
          yield
        - ExitStacks in its variables
        """
        taken: Dict[int, Optional[int]] = {}
        for line, value in self._acquires.of(frame):
            taken.setdefault(value, line)
        for value in self._acquires.pending(frame):
            taken.setdefault(value, None)
        for value in self._stacked(frame):
            taken.setdefault(value, None)
        for value, at in taken.items():
            lock = self._lock(value)
            yield at, lock if lock is not None else value
        for manager, entered in self._locks.managers(frame):
            yield from ((entered, lock.address) for lock in self._locks.guarded(manager))
            yield from ((entered, self._lock(what) or what) for what in self._acquires.entered(manager))
            generator = self._locks.generator_frame(manager)
            if generator is not None:
                yield from ((entered, address) for _line, address in self._by_hand(generator))

    def _stacked(self, frame: Frame) -> Iterator[int]:
        """Yield what the ExitStacks filled by a frame will leave; those stored in objects belong to no frame."""
        if "enter_context" not in frame.code.used_names():
            return
        for _name, value in list(self._python.frames.locals(frame))[:_MAX_LOCALS]:
            if self._python.objects.type_name(value) == "ExitStack":
                yield from self._locks.stacked(value)

    def _taken_out(self, frame: Frame) -> Iterator[Tuple[Optional[int], int]]:
        """Yield (line, object) for queues whose item a frame must put back and semaphores that it acquired by hand."""
        back = self._acquires.pending(frame, QUEUES)
        if back:
            yield from ((line, queue) for line, queue in self._acquires.of(frame, QUEUES) if queue in back)
        yield from self._acquires.of(frame)
        for manager, entered in self._locks.managers(frame):
            for verbs in (QUEUES, LOCKS):
                yield from ((entered, what) for what in self._acquires.entered(manager, verbs))
            generator = self._locks.generator_frame(manager)
            if generator is not None:
                yield from ((entered, address) for _line, address in self._taken_out(generator))

    # ------------------------------------------------------------------ results

    def _own(self, address: int, claims: Sequence[Ownership], basis: OwnerBasis) -> None:
        self._owners[address] = claims[0]._replace(basis=basis)
        self._hold(claims, basis)

    def _hold(self, claims: Sequence[Ownership], basis: OwnerBasis) -> None:
        self._held.extend(claim._replace(basis=basis) for claim in claims)
