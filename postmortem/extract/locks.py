"""The locks of one process: who waits for which, who holds which, and what they are called."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..cpython.frames import Frame
from ..cpython.freethreading import FreeThreading
from ..cpython.interpreter import InterpreterState, Python, ThreadState
from ..cpython.locks import Locks, LockState
from ..evidence import HeldLock, PythonFrame, Resource, StopTheWorld
from ..evidence import replace as changed
from .acquires import Acquires, Lines
from .waits import FutexFacts

_THREADING = "threading.py"
#: Frames of a thread that are searched for `with` statements: real code nests a few hundred at most.
_MAX_SEARCHED = 1_000

#: Functions of threading.py that wait on a lock of their own making → what the wait is to people.
_PRIMITIVES = {
    "wait": ("condition", "waits to be notified"),
    "wait_for": ("condition", "waits to be notified"),
    "_wait_for_tstate_lock": ("lock", "waits for a thread to end"),
    "join": ("lock", "waits for a thread to end"),
    "_shutdown": ("lock", "waits for a thread to end"),
}


class _Claim(NamedTuple):
    tid: int
    frame: Frame
    depth: int
    line: Optional[int]
    lock: LockState


class LockBook:
    """Collects waits while threads are read; ``settle`` then finds owners; ``resources`` tells it all."""

    def __init__(self, python: Python, threads: Dict[int, ThreadState], lines: Lines) -> None:
        self._python = python
        self._acquires = Acquires(python.frames, lines)
        self._locks = Locks(python.frames)
        self._free = FreeThreading(python)
        self._threads = threads
        self._ids: Dict[int, str] = {}  # lock object → resource id
        self._states: Dict[int, LockState] = {}
        self._kinds: Dict[int, str] = {}
        self._waiters: Dict[int, List[int]] = {}
        self._users: Dict[int, List[Frame]] = {}
        self._claims: Dict[int, List[_Claim]] = {}
        self._owners: Dict[int, Tuple[int, str]] = {}
        self._held: Dict[int, List[HeldLock]] = {}
        self._suspended: List[Tuple[int, Sequence[Frame]]] = []

    # ------------------------------------------------------------------ waits

    def wait(self, word: int, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """What a futex word means to a thread with these frames (most recent first)."""
        world = self._world(word, tid)
        if world is not None:
            return FutexFacts("mutex", None, world)
        lock = self._locks.awaited(frames, word) or self._free.awaited(word)
        primitive = self._primitive(frames)
        if lock is None:
            # from 3.13 on Thread.join waits in C, on a word of its own; any other unknown word stays unknown
            joins = primitive is not None and frames[0].function in ("join", "_shutdown")
            return FutexFacts(primitive[0], None, primitive[1]) if joins and primitive else None
        if primitive is not None:
            # the lock is the primitive's own (a waiter of a Condition, a thread's _tstate_lock): nobody "holds" it
            return FutexFacts(primitive[0], None, primitive[1])
        ident = self._know(lock, frames[:4])
        self._waiters.setdefault(lock.address, []).append(tid)
        return FutexFacts(lock.kind, ident, "waits for the lock of an object" if lock.kind == "mutex" else None)

    def _world(self, word: int, tid: int) -> Optional[str]:
        """What a wait for a stopped world is to people; None when it is none."""
        state = self._threads.get(tid)
        what = self._free.world_wait(word, state) if state is not None else None
        if what != "stopped":
            return None if what is None else "waits for the other threads to pause, to stop the world"
        worlds = [self.stop_the_world(interpreter) for interpreter in self._python.interpreters]
        requester = next((world.requester_tid for world in worlds if world and world.requester_tid is not None), None)
        return (
            "waits for a stopped world" if requester is None else f"waits until thread {requester} lets the world go on"
        )

    def stop_the_world(self, interpreter: InterpreterState) -> Optional[StopTheWorld]:
        """Who has every thread of a free-threaded interpreter pause; None when it is unknown, and in other builds."""
        found = self._free.stop_the_world(interpreter)
        if found is None:
            return None
        requester = next((tid for tid, s in self._threads.items() if s.address == found.requester), None)
        return StopTheWorld(found.requested, found.stopped, requester)

    @staticmethod
    def _primitive(frames: Sequence[Frame]) -> Optional[Tuple[str, str]]:
        if not frames or not frames[0].code.filename.endswith(_THREADING):
            return None
        return _PRIMITIVES.get(frames[0].function)

    def _know(self, lock: LockState, users: Sequence[Frame]) -> str:
        if lock.address not in self._ids:
            self._ids[lock.address] = f"{lock.kind}-{len(self._ids) + 1}"
            self._states[lock.address] = lock
        self._users.setdefault(lock.address, []).extend(users)
        if lock.through:
            self._kinds[lock.address] = lock.through.lower()
        return self._ids[lock.address]

    # ------------------------------------------------------------------ holders

    def settle(self) -> None:
        """Finds who holds what, from every frame's `with` statements and from what RLocks record."""
        for tid in sorted(self._threads):
            self._claim(tid, self._threads[tid].frames[:_MAX_SEARCHED])
        for tid, frames in self._suspended:
            self._claim(tid, frames, len(self._threads[tid].frames) if tid in self._threads else 0)
        tid_of = {state.ident: tid for tid, state in self._threads.items()}
        doubted: Dict[int, List[_Claim]] = {}
        for address, lock in self._states.items():
            claims = self._claims.get(address, [])
            if lock.owner_ident is not None:
                owner = tid_of.get(lock.owner_ident)
                if owner is not None:
                    self._owners[address] = (owner, "recorded")
                    self._hold(address, [c for c in claims if c.tid == owner], "recorded")
            elif lock.locked and len({c.tid for c in claims}) == 1:
                if self._waiters.get(address) and any(self._doubtful(c) for c in claims):
                    doubted[address] = claims
                else:
                    self._owners[address] = (claims[0].tid, "with-slot")
                    self._hold(address, claims, "with-slot")
        self._infer(
            [a for a, lock in self._states.items() if self._waiters.get(a) and a not in self._owners and lock.locked]
        )
        for address, claims in doubted.items():
            if address not in self._owners:
                self._owners[address] = (claims[0].tid, "inferred")
                self._hold(address, claims, "inferred")

    def _infer(self, unowned: Sequence[int]) -> None:
        """Owners of wanted locks that no `with` and no record names: functions still running that acquired them."""
        if not unowned:
            return
        claims: Dict[int, List[_Claim]] = {}
        for tid in sorted(self._threads):
            for depth, frame in enumerate(self._threads[tid].frames[:_MAX_SEARCHED]):
                if frame.code.filename.endswith(_THREADING):
                    continue
                for line, lock in self._by_hand(frame):
                    if lock.address in unowned:
                        claims.setdefault(lock.address, []).append(_Claim(tid, frame, depth, line, lock))
        for address, found in claims.items():
            if len({c.tid for c in found}) == 1:
                self._owners[address] = (found[0].tid, "inferred")
                self._hold(address, found, "inferred")

    def _by_hand(self, frame: Frame) -> Iterator[Tuple[Optional[int], LockState]]:
        """Locks that a frame's function has acquired and not released, itself or through the context managers that it
        has entered: a class whose __enter__ acquires, a generator that did before it yielded."""
        if "acquire" in frame.code.used_names():  # others need not have their source parsed
            for line, value in self._acquires.of(frame):
                lock = self._locks.at(value)
                if lock is not None:
                    yield line, lock
        for manager, entered in self._locks.managers(frame):
            for lock in self._locks.guarded(manager):
                yield entered, lock
            generator = self._locks.generator_frame(manager)
            if generator is not None:
                yield from ((entered, lock) for _line, lock in self._by_hand(generator))

    def _doubtful(self, claim: _Claim) -> bool:
        """May the body of the `with` have let go of the lock for a while? When it, or what it calls, releases that very
        lock by hand, or enters a context manager that releases something, the slot proves nothing."""
        for frame in [*self._threads[claim.tid].frames[: claim.depth + 1], claim.frame]:
            if frame.code.filename.endswith(_THREADING):
                continue
            if frame.function in ("__exit__", "__aexit__") and frame is not claim.frame:
                return True  # it takes again what it had let go
            if "release" in frame.code.used_names() and claim.lock.address in self._released(frame):
                return True
            if any(self._locks.enter_uses(manager, "release") for manager, _line in self._locks.managers(frame)):
                return True
        return False

    def _released(self, frame: Frame) -> List[int]:
        found = (self._locks.at(value) for value in self._acquires.released(frame))
        return [lock.address for lock in found if lock is not None]

    def suspended(self, tid: int, frames: Sequence[Frame]) -> None:
        """A coroutine that waits on a thread's event loop: what it holds, that thread holds."""
        self._suspended.append((tid, frames))

    def _claim(self, tid: int, frames: Sequence[Frame], below: int = 0) -> None:
        """``below``: how many frames of the thread lie above these."""
        for depth, frame in enumerate(frames, below):
            for held in self._locks.held(frame):
                if held.lock.locked and not self._given_up(held.lock, frames[: depth - below]):
                    self._know(held.lock, [frame])
                    self._claims.setdefault(held.lock.address, []).append(
                        _Claim(tid, frame, depth, held.line, held.lock)
                    )

    def _given_up(self, lock: LockState, above: Sequence[Frame]) -> bool:
        """`with condition: condition.wait()` keeps the `with` slot while the lock is not held."""
        for frame in above:
            if frame.function == "wait" and frame.code.filename.endswith(_THREADING):
                condition = self._python.frames.local(frame, "self")
                inner = self._locks.at(condition) if condition else None
                if inner is not None and inner.address == lock.address:
                    return True
        return False

    def _hold(self, address: int, claims: Sequence[_Claim], basis: str) -> None:
        for claim in claims:
            code = claim.frame.code
            frame = PythonFrame(
                code.filename, claim.line or claim.frame.line, code.name, code.qualname,
                self._python.frames.module(claim.frame),
            )  # fmt: skip
            self._held.setdefault(claim.tid, []).append(HeldLock(self._ids[address], frame, claim.depth, basis))

    def held_by(self, tid: int) -> Tuple[HeldLock, ...]:
        return tuple(sorted(self._held.get(tid, ()), key=lambda h: (h.depth, h.resource)))

    # ------------------------------------------------------------------ what it comes to

    def states(self) -> Dict[str, LockState]:
        """By the id of its resource: each lock as it was read."""
        return {ident: self._states[address] for address, ident in self._ids.items()}

    def resources(self) -> Tuple[Resource, ...]:
        """Two locks that the program calls alike get a number each."""
        found = [self._resource(address, ident) for address, ident in self._ids.items()]
        names = [r.description for r in found]
        return tuple(
            changed(r, description=f"{r.description} #{names[:i].count(r.description) + 1}")
            if names.count(r.description) > 1 else r
            for i, r in enumerate(found)
        )  # fmt: skip

    def _resource(self, address: int, ident: str) -> Resource:
        lock = self._states[address]
        name = self._locks.name(address, self._users.get(address, ()))
        kind = self._kinds.get(address, lock.kind)
        what = lock.what or {"lock": "Lock", "rlock": "RLock", "condition": "Condition"}.get(kind, kind)
        owner, basis = self._owners.get(address, (None, None))
        return Resource(
            id=ident,
            kind=kind,
            description=f"{what} {name}" if name else f"a {what} whose name was not found",
            owner_tid=owner,
            owner_basis=basis,
            waiters=tuple(self._waiters.get(address, ())),
            locked=lock.locked,
        )
