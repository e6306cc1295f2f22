"""Holders of asyncio's and trio's locks and semaphore permits.

``async with`` keeps the lock's ``__aexit__`` on the coroutine's frame while its body runs, as `with` does on a
function's. An ``await lock.acquire()`` is inferred from source, as for threads (``acquires``).
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ...cpython.frames.frame import Frame
from ...cpython.frames.iterated import iterated
from ...evidence import Fact, PythonFrame, fact
from ...frameworks.asyncio.awaiting import Awaiting
from ...frameworks.asyncio.primitives import Primitive
from ...frameworks.asyncio.tasks import TaskState
from ...frameworks.greenlet.links import Links
from ...frameworks.trio.awaiting import TrioAwaiting
from ...frameworks.twisted.deferreds import TwistedAwaiting
from ..process.context import PythonContext
from .acquires import Acquires
from .orphans import Orphans
from .ownership import Acquired, Ownership

_LOCKS, _THREADING, _TRIO = "asyncio/locks.py", "/threading.py", "trio/_sync.py"
_BACKENDS = (_LOCKS, _TRIO, "trio/_threads.py", "anyio/_backends/_asyncio.py", "anyio/_core/_synchronization.py")
#: Frames searched per task for `async with`: real code nests a few dozen at most.
_MAX_SEARCHED = 200

#: Recognises locks: asyncio's, gevent's and eventlet's, trio's, or Twisted's.
_Primitives = Union[Awaiting, Links, TrioAwaiting, TwistedAwaiting]


class TaskHolders:
    """Holders of asyncio's primitives; call ``read`` for each interpreter first."""

    def __init__(self, context: PythonContext) -> None:
        self._python = context.python
        self._locks = context.python.locks
        self._acquires = context.acquires
        self._claims: Dict[int, List[Ownership]] = {}  # by primitive
        self._of: Dict[int, List[Ownership]] = {}  # by task
        self._primitives: Dict[int, Primitive] = {}
        self._tasks = 0
        self._unread = False  # whether a function may have acquired something that its source does not show

    def read(self, states: Sequence[TaskState], awaiting: _Primitives) -> None:
        """Read the tasks of one interpreter.

        The frames of a running task are taken from its thread's stack, with the functions that it has called.
        """
        stacks = [(state.address, self._stack(state)) for state in states if state.state in ("pending", "running")]
        self._tasks += len(stacks)
        for task, frames in stacks:
            for primitive, claim in self._by_with(task, frames, awaiting):
                self._note(primitive, claim)
        unowned = self._unowned(states, awaiting)
        if unowned:
            files = (f.code.filename for _task, frames in stacks for f in frames if not awaiting.own(f))
            acquires = self._acquires.among(files)
            for task, frames in stacks:
                self._unread = self._unread or any(acquires.unread(f) for f in frames if not awaiting.own(f))
                for primitive, claim in self._by_hand(task, frames, awaiting, acquires):
                    if primitive.address in unowned:
                        self._note(primitive, claim)

    def read_others(
        self, states: Sequence[TaskState], links: Union[Links, TwistedAwaiting], wanted: Sequence[Primitive]
    ) -> None:
        """Read the greenlets of one interpreter, or Twisted's tasks.

        ``wanted``: the locks that they wait for. One that records its holder needs no search.
        """
        stacks = [(state.address, state.frames[:_MAX_SEARCHED]) for state in states if state.frames]
        self._tasks += len(stacks)
        for task, frames in stacks:
            for primitive, claim in self._by_with(task, frames, links):
                self._note(primitive, claim)
        unowned = {p.address for p in wanted if p.owner is None and p.locked and p.address not in self._claims}
        if unowned:
            acquires = self._acquires.among(
                f.code.filename for _t, frames in stacks for f in frames if not links.own(f)
            )
            for task, frames in stacks:
                self._unread = self._unread or any(acquires.unread(f) for f in frames if not links.own(f))
                for primitive, claim in self._by_hand(task, frames, links, acquires):
                    if primitive.address in unowned:
                        self._note(primitive, claim)

    def _note(self, primitive: Primitive, claim: Ownership) -> None:
        self._primitives[primitive.address] = primitive
        self._claims.setdefault(primitive.address, []).append(claim)
        self._of.setdefault(claim.agent, []).append(claim)

    def _stack(self, state: TaskState) -> Sequence[Frame]:
        if state.state != "running" or not state.frames:
            return state.frames[:_MAX_SEARCHED]
        outermost = state.frames[-1].address
        for interpreter in self._python.interpreters:
            for thread in interpreter.threads:
                for depth, frame in enumerate(thread.frames[:1_000]):
                    if frame.address == outermost:
                        return thread.frames[: depth + 1][-_MAX_SEARCHED:]
        return state.frames

    # ------------------------------------------------------------------ claims

    def _by_with(
        self, task: int, frames: Sequence[Frame], awaiting: _Primitives
    ) -> Iterator[Tuple[Primitive, Ownership]]:
        for depth, frame in enumerate(frames):
            if frame.code.filename.endswith(_BACKENDS):
                continue
            for entered in self._locks.entered(frame):
                if entered.line is None:
                    continue  # it still waits for the lock: no handler occupies the slot yet
                primitive = _lockable(awaiting, entered.manager)
                if primitive is not None and not self._given_up(primitive, frames[:depth], awaiting):
                    at = Acquired(frame, depth, entered.line)
                    yield primitive, Ownership(primitive.address, task, "with-slot", at)
            for generator in iterated(self._python.frames, frame):
                for entered in self._locks.entered(generator):
                    primitive = _lockable(awaiting, entered.manager) if entered.line is not None else None
                    if primitive is not None:
                        at = Acquired(frame, depth, frame.line)
                        yield primitive, Ownership(primitive.address, task, "with-slot", at)

    def _given_up(self, primitive: Primitive, above: Sequence[Frame], awaiting: _Primitives) -> bool:
        """Return whether `condition.wait()` has released the lock while `async with condition` keeps the slot."""
        for frame in above:
            if frame.is_in("wait", _LOCKS, _THREADING, _TRIO):
                condition = awaiting.primitives.at(self._python.frames.local(frame, "self"))
                if condition is not None and condition.inner == primitive.address:
                    return True
        return False

    def _unowned(self, states: Sequence[TaskState], awaiting: _Primitives) -> List[int]:
        """Return locked locks that tasks wait for and no task is known to hold."""
        found = {}
        for state in states:
            for frame in state.frames[:2]:
                if frame.is_in("acquire", _LOCKS):
                    lock = awaiting.primitives.at(self._python.frames.local(frame, "self"))
                    if lock is not None and lock.kind == "lock" and lock.locked and lock.address not in self._claims:
                        found[lock.address] = True
        return list(found)

    def _by_hand(
        self, task: int, frames: Sequence[Frame], awaiting: _Primitives, acquires: Acquires
    ) -> Iterator[Tuple[Primitive, Ownership]]:
        for depth, frame in enumerate(frames):
            if awaiting.own(frame):
                continue
            taken: List[Tuple[Optional[int], int]] = []
            if "acquire" in frame.code.used_names():
                taken += acquires.of(frame)
            for manager, entered in self._locks.managers(frame):
                if entered is not None:  # else it is being entered
                    taken += [(entered, value) for value in acquires.entered(manager)]
            for line, value in taken:
                primitive = _lockable(awaiting, value)
                if primitive is not None:
                    at = Acquired(frame, depth, line)
                    yield primitive, Ownership(primitive.address, task, "inferred", at)

    # ------------------------------------------------------------------ answers

    def nobody(self, lock: Primitive) -> Tuple[Fact, ...]:
        """Return the reasons why no task holds a locked lock; empty if one may."""
        if not lock.locked or self._claims.get(lock.address) or self._unread:
            return ()
        return (
            fact("tasks-hold-none", tasks=self._tasks),
            fact("tasks-took-none"),
        )

    def released_at(self, name: str, users: Sequence[Frame]) -> Tuple[PythonFrame, ...]:
        """Return functions that release a lock or semaphore of this name without acquiring it."""
        return Orphans(self._python, {}, self._acquires).released_at(name, users)

    def taken_at(self, name: str, users: Sequence[Frame]) -> Tuple[PythonFrame, ...]:
        """Return the places where the program acquires a lock of this name by hand."""
        return Orphans(self._python, {}, self._acquires).taken_at(name, users)

    def of(self, task: int) -> Tuple[Tuple[Primitive, Ownership], ...]:
        """Return what a task holds, by `async with` or inferred from source."""
        found = ((self._primitives[claim.thing], claim) for claim in self._of.get(task, ()))
        return tuple(
            (primitive, claim)
            for primitive, claim in found
            if primitive.kind == "semaphore" or self.owner(primitive) is not None
        )

    def claims(self, primitive: int) -> Tuple[Ownership, ...]:
        """Return all known holders of a primitive."""
        return tuple(self._claims.get(primitive, ()))

    def owner(self, lock: Primitive) -> Optional[Ownership]:
        """Return the only holder of a lock; None if it is free or several seem to hold it."""
        claims = self._claims.get(lock.address, [])
        return claims[0] if lock.locked and len({claim.agent for claim in claims}) == 1 else None


def _lockable(awaiting: _Primitives, address: int) -> Optional[Primitive]:
    """Return the lock or semaphore at an address, or the lock of a Condition; None for anything else."""
    found = awaiting.primitives.at(address)
    if found is not None and found.kind == "condition":
        found = awaiting.primitives.at(found.inner)
    return found if found is not None and found.kind in ("lock", "semaphore") else None
