"""Suspended generators and coroutines of Twisted as tasks, found by the Deferreds that will resume them.

- A generator of ``inlineCallbacks``, or a coroutine, waits for the one that has ``_gotResultInlineCallbacks``
  among them, with the generator and its status as arguments; before 21.2 it was ``gotResult``, with both in its closure.
- The status has the Deferred that fires when the generator ends (``deferred``).
- A Deferred whose callback has returned another one is ``called``, and ``_chainedTo`` that one until it fires.
- A DeferredList adds its method ``_cbDeferred`` to each of its members.
- ``deferToThread`` has the Deferred in the closure of ``onResult``, an attribute of the function ``inContext`` that a
  thread of the pool runs.
- A timer (DelayedCall) that calls a method of a Deferred ends the wait for it; ``addTimeout`` has the Deferred as ``self``
  in the closure of what it calls. ``time`` is in seconds of the epoch (twisted/python/runtime.py).

Sources: twisted/internet/defer.py, base.py, threads.py and twisted/python/threadpool.py of 18.9 to 26.10.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.heap.gclists import tracked
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import InterpreterState, Python
from ...memory import Fault
from ..asyncio.awaiting import Awaited
from ..asyncio.eventloops import LoopState
from ..asyncio.tasks import COROUTINES, TaskState, follow
from .primitives import TwistedPrimitives, deferred_calls, name_of

_RESUMES = ("_gotResultInlineCallbacks", "gotResult")
_FILE = "twisted/internet/defer.py"
_TIMER = ("twisted.internet.base", "DelayedCall")
_JOB = ("inContext", "twisted/python/threadpool.py")
_RUNS = (("mainLoop", "twisted/internet/base.py"), ("run", "twisted/internet/asyncioreactor.py"))
#: Methods of a Deferred that a timer calls to give a result, and to give up.
_FIRES, _GIVES_UP = ("callback",), ("errback", "cancel", "timeItOut")
_MOST_CHAIN, _MOST_MEMBERS = 1_000, 10_000
_MOST_TASKS = 100_000


class TwistedWait(NamedTuple):
    """A wait of a task.

    - ``deferred``: the Deferred that resumes it, or that this one is chained to
    - ``limited``: whether a timer ends the wait, at ``due`` seconds of the epoch (None: unknown)
    """

    awaited: Awaited
    deferred: int
    limited: bool = False
    due: Optional[float] = None


class TwistedRead(NamedTuple):
    """The tasks of one interpreter.

    - ``waits``: by the address of the task, which is that of its generator
    - ``problem``: why the tasks of a running reactor could not be read
    """

    tasks: List[TaskState]
    waits: Dict[int, TwistedWait]
    awaiting: TwistedAwaiting
    problem: Optional[str] = None


class TwistedAwaiting:
    """Recognises Twisted's primitives, and its own functions among a task's frames."""

    def __init__(self, parts: Parts) -> None:
        self.primitives = TwistedPrimitives(parts)

    def own(self, frame: Frame) -> bool:
        """Return whether a frame belongs to Twisted."""
        return "/twisted/" in frame.code.filename


@dataclass
class _Found:
    """What the collector's lists have, by address of a Deferred."""

    resumed: Dict[int, int] = field(default_factory=dict)  # task → the Deferred that resumes it
    results: Dict[int, int] = field(default_factory=dict)  # Deferred that fires when a task ends → the task
    members: Dict[int, List[int]] = field(default_factory=dict)  # DeferredList → its members
    wanted: Dict[int, int] = field(default_factory=dict)  # Deferred → the primitive whose waiter it is
    timers: Dict[int, List[Tuple[str, Optional[float]]]] = field(default_factory=dict)  # Deferred → (method, due)
    #: Deferred of a function that a pool's thread runs → (the threading.Thread, its name).
    jobs: Dict[int, Tuple[int, Optional[str]]] = field(default_factory=dict)


class Deferreds:
    """The Deferreds of one interpreter; public methods never raise."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python, self._interpreter = python, interpreter
        self._objects = python.objects
        self._parts = Parts(python.objects)
        self._functions = Functions(python.frames)
        self._kinds: Dict[int, str] = {}  # by class
        self._awaiting = TwistedAwaiting(self._parts)
        self._primitives = self._awaiting.primitives

    def read(self, loops: Sequence[LoopState]) -> TwistedRead:
        """Return the suspended tasks of the threads that run a reactor."""
        read = TwistedRead([], {}, self._awaiting)
        thread = next(
            (t for t in self._interpreter.threads if any(f.is_in(*at) for f in t.frames for at in _RUNS)), None
        )
        if thread is None:
            return read
        loop = next((loop.address for loop in loops if loop.kind == "twisted" and loop.ident == thread.ident), None)
        try:
            found = self._search()
        except NotThat as exc:
            return read._replace(problem=str(exc))
        firing = {task: deferred for deferred, task in found.results.items()}
        for task, deferred in found.resumed.items():
            state = self._task(task, loop, thread.ident)
            if state is not None:
                state.waiter, state.fires = deferred, firing.get(task, 0)
                read.tasks.append(state)
                read.waits[task] = self._wait(deferred, found)
        return read

    # ------------------------------------------------------------------ search

    def _search(self) -> _Found:
        """Return what the collector's lists have. Raises NotThat if these are not found."""
        found = _Found(jobs=dict(self._jobs()))
        for address in tracked(self._python, self._interpreter):
            with contextlib.suppress(Fault, NotThat):  # one that cannot be read
                kind = self._kind(address)
                if kind == "deferred":
                    self._note_deferred(address, found)
                elif kind == "timer":
                    self._note_timer(address, found)
                elif kind == "primitive":
                    listed = self._primitives.waiting(address)
                    for deferred in (self._parts.items(listed, _MOST_MEMBERS) or ()) if listed else ():
                        found.wanted[deferred] = address
        return found

    def _kind(self, address: int) -> str:
        class_ = self._parts.type_of(address)
        if class_ is None:
            return ""
        known = self._kinds.get(class_)
        if known is None:
            known = self._kinds[class_] = self._kind_of(class_)
        return known

    def _kind_of(self, class_: int) -> str:
        for each in self._parts.classes(class_):
            name = self._objects.type_at(each).name
            if (self._parts.module(each), name) == _TIMER:
                return "timer"
            if name_of(self._parts, each) in ("Deferred", "DeferredList"):
                return "deferred"
            if name_of(self._parts, each) in ("DeferredLock", "DeferredSemaphore", "DeferredQueue"):
                return "primitive"
        return ""

    def _note_deferred(self, address: int, found: _Found) -> None:
        for called, arguments in deferred_calls(self._parts, address):
            code = self._functions.code(called)
            if code is None or not code.filename.endswith(_FILE):
                continue
            if code.name == "_cbDeferred":
                gathering = self._functions.bound(called)
                if gathering is not None:
                    found.members.setdefault(gathering, []).append(address)
            elif code.name in _RESUMES and len(found.resumed) < _MOST_TASKS:
                given = (*arguments, *self._functions.closure(called).values())
                task = next((each for each in given if self._objects.type_name(each) in COROUTINES), None)
                if task is not None:
                    found.resumed[task] = address
                    fires = [self._parts.attributes(each).get("deferred") for each in given if self._is_status(each)]
                    found.results.update((deferred, task) for deferred in fires if deferred)

    def _is_status(self, address: int) -> bool:
        class_ = self._parts.type_of(address)
        return class_ is not None and name_of(self._parts, class_) == "_CancellationStatus"

    def _note_timer(self, address: int, found: _Found) -> None:
        """Note the Deferred that a pending timer fires, or gives up waiting for."""
        values, number = self._parts.attributes(address), self._objects.integer_or_none
        function = values.get("func")
        if function is None or number(values.get("cancelled")) or number(values.get("called")):
            return
        code = self._functions.code(function)
        subject = self._functions.bound(function) or self._functions.closure(function).get("self")
        if code is not None and subject is not None and self._kind(subject) == "deferred":
            found.timers.setdefault(subject, []).append((code.name, self._number(values.get("time"))))

    def _number(self, address: Optional[int]) -> Optional[float]:
        try:
            return self._objects.number(address) if address else None
        except (Fault, NotThat, OverflowError):
            return None

    def _jobs(self) -> Iterator[Tuple[int, Tuple[int, Optional[str]]]]:
        """Yield the Deferred of each function that a pool's thread runs, with (the threading.Thread, its name)."""
        for thread in self._interpreter.threads:
            for frame in thread.frames:
                job = self._python.frames.local(frame, "inContext") if frame.is_in(*_JOB) else None
                if job is None or not thread.object:
                    continue
                values = self._parts.attributes(job)
                deferred = self._functions.closure(values.get("onResult")).get("d")
                work = self._functions.closure(values.get("theWork")).get("func")
                code = self._functions.code(work)
                if deferred is not None:
                    yield deferred, (thread.object, code.qualname or code.name if code is not None else None)

    # ------------------------------------------------------------------ one task

    def _task(self, task: int, loop: Optional[int], ident: Optional[int]) -> Optional[TaskState]:
        """Return a suspended task; None if it cannot be read, or runs."""
        try:
            chain = follow(self._python, task)
        except (Fault, NotThat):
            return None
        if not chain.frames or chain.running:
            return None
        name = chain.frames[-1].code.qualname or chain.frames[-1].code.name
        return TaskState(task, name, "pending", loop, chain.frames, "Deferred", False, ident=ident)

    def _wait(self, deferred: int, found: _Found) -> TwistedWait:
        """Return the wait for a Deferred, or for the one that it is chained to.

        One for a DeferredList is for the first member that no task completes, or else for all its tasks.
        """
        chain = self._chained(deferred)
        end = chain[-1]
        timers = [timer for each in chain for timer in found.timers.get(each, ())]
        fires = [due for method, due in timers if method in _FIRES]
        if fires:
            return TwistedWait(Awaited("sleep", timed=True, detail="a timer"), end, True, fires[0])
        limits = [due for method, due in timers if method in _GIVES_UP]
        limited, due = bool(limits), min((at for at in limits if at is not None), default=None)
        pending = self._pending(end, found)
        other = next((each for each in pending if each not in found.results), None)
        if other is not None:
            inner = self._wait(other, found)
            return inner if inner.limited else inner._replace(limited=limited, due=due)
        if pending:
            tasks, detail = [found.results[each] for each in pending], f"DeferredList with {len(pending)} pending"
            awaited = Awaited("tasks", tasks=tasks, all=True, passes_on=True, detail=detail)
        else:
            awaited = self._awaited(end, found)
        return TwistedWait(awaited, end, limited, due)

    def _pending(self, gathering: int, found: _Found) -> List[int]:
        """Return the members of a DeferredList that have not fired, those of nested ones in their place; empty for others."""
        pending: List[int] = []
        waiting, seen = list(found.members.get(gathering, ())), {gathering}
        while waiting and len(seen) < _MOST_MEMBERS:
            end = self._chained(waiting.pop())[-1]
            if end not in seen and not self._is_called(end):
                seen.add(end)
                inner = found.members.get(end)
                waiting += inner or ()
                pending += () if inner else (end,)
        return pending

    def _awaited(self, deferred: int, found: _Found) -> Awaited:
        """Describe a wait for a Deferred that is chained to no other, and no DeferredList."""
        task = found.results.get(deferred)
        if task is not None:
            return Awaited("task", tasks=[task], passes_on=True)
        primitive = self._primitives.at(found.wanted.get(deferred))
        if primitive is not None:
            return Awaited(primitive.kind, primitive=primitive)
        if deferred in found.jobs:
            thread, name = found.jobs[deferred]
            what = f"outcome of {name or 'a function'} in a thread"
            return Awaited("thread", future=deferred, thread=thread, detail="deferToThread", stays=True, outcome=what)
        return Awaited("future", future=deferred, what="Deferred")

    def _chained(self, deferred: int) -> List[int]:
        """Return a Deferred and those that it is chained to, the last one first to fire."""
        chain, seen = [deferred], {deferred}
        while len(chain) < _MOST_CHAIN and self._is_called(chain[-1]):
            following = self._parts.attributes(chain[-1]).get("_chainedTo")
            if following is None or following in seen or self._kind(following) != "deferred":
                break
            seen.add(following)
            chain.append(following)
        return chain

    def _is_called(self, deferred: int) -> bool:
        return bool(self._objects.integer_or_none(self._parts.attributes(deferred).get("called")))
