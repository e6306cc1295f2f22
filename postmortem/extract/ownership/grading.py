"""Grades of the agents that can reach an awaited object, by the code that they can still run.

- Of each thread and task: its frames from their current instructions on, and all that these call.
- Of an event loop's thread also what its timers and descriptors call; of an accept loop or a dispatcher what it starts:
  both follow from its frames.
- Of a task or greenlet also what is called when it ends.
- Signal handlers, which run in the main thread even while that waits.
- A job in the queue of a pool that has all its workers, by what it will call.

An agent *names* an object if its code applies an operation that ends the wait to it, or to something unknown that is
loaded by the last name under which the object is known, or if it hands the object on to something unknown. An operation's
name alone names nothing.

Agents are evaluated when a resource first asks for them, at most for ``SECONDS`` together; what was not evaluated, or not
to its end, has no grade unless it names the object anyway.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.execution.library import Library, Limits
from ...cpython.execution.lookup import CALL, OPERATIONS, Applied, Watched
from ...cpython.execution.machine import Machine
from ...cpython.execution.values import UNKNOWN
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.heap.reachability import Actor, Reach
from ...cpython.state.interpreter import Python, ThreadState
from ...cpython.state.signals import handlers
from ...evidence import PythonFrame, Resource, Waker
from ...evidence import replace as changed
from ...evidence.vocabulary import WakerGrade
from ...frameworks.asyncio.tasks import TaskState
from ...frameworks.executors import WorkItem
from ...signalnames import signal_name
from ...timelimits import TimeLimit
from ..process.context import PythonContext
from .endcalls import EndCalls

#: Seconds: for all agents of a process; what is not reached then stays "refers".
SECONDS = 3.0
#: Seconds: for all resources of a process; those after it have wakers without a grade.
_ALL_SECONDS = 2 * SECONDS
#: Share of the time that one agent may take.
_SHARE = 0.5
#: Operations that resolve futures of asyncio and concurrent.futures, and Twisted's Deferreds (twisted/internet/defer.py).
_FUTURE = frozenset(("set_result", "set_exception", "cancel", "set_running_or_notify_cancel", "callback", "errback"))
_EVENT, _CONDITION = frozenset(("set",)), frozenset(("notify", "notify_all", "notifyAll"))
_RELEASE, _BARRIER = frozenset(("release",)), frozenset(("wait", "abort", "reset"))
#: Limiters have a second operation: trio/_sync.py (trio 0.31), anyio/_core/_synchronization.py (anyio 4.11).
_GIVE_BACK = frozenset(("release", "release_on_behalf_of"))
#: Operations that end a wait, by kind of resource (Lib/threading.py, queue.py, asyncio, concurrent/futures).
ENDS: Mapping[str, FrozenSet[str]] = {
    "lock": _RELEASE, "condition": _CONDITION, "event": _EVENT, "semaphore": _RELEASE, "barrier": _BARRIER,
    "future": _FUTURE, "async-lock": _RELEASE, "async-event": _EVENT, "async-condition": _CONDITION,
    "async-semaphore": _GIVE_BACK, "async-barrier": _BARRIER, "async-future": _FUTURE,
}  # fmt: skip
#: Operations that end a wait for a queue, by the method that waits.
_QUEUES: Mapping[str, FrozenSet[str]] = {
    "get": frozenset(("put", "put_nowait", "shutdown")),
    "put": frozenset(("get", "get_nowait", "shutdown")),
    "join": frozenset(("task_done", "shutdown")),
}
#: Operations that end a wait for gevent's AsyncResult or eventlet's Event.
_RESULT = frozenset(("set", "set_exception", "send", "send_exception", "cancel"))
#: Files of waits that are ended in more ways than by a method's name: iteration, the end of a `with` body.
_UNGRADED = ("trio/_channel.py", "trio/_core/_unbounded_queue.py", "anyio/streams/memory.py")
#: Frames of a waiter among which the queue's method is.
_MOST_FRAMES = 4
#: Frames among which it is where one library waits in another's primitives, as anyio in trio's.
_MOST_INNER = 10
_MOST_AGENTS = 300
#: Operations whose names many other methods have: a callable of such a name names nothing. A Deferred's are names of callables.
_COMMON = OPERATIONS - {"callback", "errback"}
#: Files of primitives whose methods release only what they have acquired, or what their caller has.
_OWN = ("/threading.py", "/asyncio/locks.py", "/queue.py", "/asyncio/queues.py", "/logging/__init__.py")
#: Functions that pass on a cancellation (18.9 to 26.10).
_CANCELS = ("_handleCancelInlineCallbacks", "_addCancelCallbackToDeferred", "handleCancel", "cancel")
_DEFER = "/twisted/internet/defer.py"
#: The method there that calls what the program gave it: of Thread and Timer (Lib/threading.py).
_RUNS = "run"


class Agent(NamedTuple):
    """A thread by tid, a task by id, a signal handler by number, what is called at exit by its address, or a queued job."""

    tid: Optional[int] = None
    task: Optional[str] = None
    signal: Optional[int] = None
    exit: Optional[int] = None
    job: Optional[WorkItem] = None


class _Judged(NamedTuple):
    """An evaluated agent."""

    applied: Sequence[Applied]
    passed: Sequence[Applied]
    complete: bool


class Grading:
    """Grades of one process's agents.

    - ``tasks``: asyncio's, and greenlets that have started, by id
    - ``variables``: resource → what changes the variable that its waiters poll
    """

    def __init__(
        self,
        context: PythonContext,
        tasks: Mapping[str, TaskState],
        modules: Mapping[int, str],
        variables: Optional[Mapping[str, Watched]] = None,
    ) -> None:
        self._context = context
        self._python: Python = context.python
        self._tasks = tasks
        self._variables: Mapping[str, Watched] = variables or {}
        self._modules = {name: address for address, name in modules.items()}
        self._judged: Dict[Agent, _Judged] = {}
        self._alike: Dict[Tuple[object, ...], _Judged] = {}
        self._library: Optional[Library] = None
        self._handlers: Optional[Dict[int, int]] = None
        self._limit: Optional[TimeLimit] = None
        self._overall: Optional[TimeLimit] = None

    @cached_property
    def _ends(self) -> EndCalls:
        return EndCalls(self._python)

    def graded(
        self,
        resource: Resource,
        found: Sequence[Tuple[Actor, Waker]],
        reach: Reach,
        subject: int,
        blocked: Set[str],
        others: bool,
    ) -> Tuple[Waker, ...]:
        """Return wakers with their grades, and those agents besides that name the object.

        - ``found``: the actors of ``reach``, each as a waker
        - ``blocked``: tasks that wait for one of the waiters
        - ``others``: whether there are agents of other frameworks, whose code is not known
        """
        if self._overall is None:
            self._overall = TimeLimit(_ALL_SECONDS)
        if self._overall.passed():  # thousands wait, each for something else
            return tuple(waker for _actor, waker in found)
        named: Dict[Agent, Applied] = {}
        unknown, wakers = others, [waker for _actor, waker in found]
        mine = {Agent(w.tid, w.task) for w in wakers if w.tid is not None or w.task is not None}
        is_open = reach.obstacle is not None or not all(actor.is_agent for actor in reach.actors)
        rest = (a for a in self._agents(resource, blocked) if a not in mine) if is_open else ()
        candidates = [*mine, *itertools.islice(rest, _MOST_AGENTS + 1)]
        operations, anywhere = self._operations(resource), self._anywhere(resource)
        for agent in candidates[:_MOST_AGENTS]:
            judged = self._judge(agent)
            names = _names(judged, operations, subject, reach, anywhere=anywhere) if operations else None
            if names is not None:
                named[agent] = names
            elif not judged.complete and agent not in mine:
                unknown = True
        unknown = unknown or len(candidates) > _MOST_AGENTS or not operations
        done = []
        for actor, waker in found:
            agent = Agent(waker.tid, waker.task)
            if agent == Agent():
                done.append(changed(waker, grade="refers" if actor.is_passive and not unknown else None))
            elif agent in named:
                done.append(changed(waker, grade="names", site=_site(named[agent])))
            elif reach.at_exit and self._is_main(actor) and not self._leaves_alone(operations, subject, reach):
                done.append(changed(waker, grade=None))
            else:
                complete = bool(operations) and self._judged[agent].complete if agent in self._judged else False
                done.append(changed(waker, grade="refers" if complete else None))
        way = next((w.name for w in wakers if w.tid is None and w.task is None), None)
        done += [self._waker(agent, applied, way) for agent, applied in named.items() if agent not in mine]
        return tuple(done)

    def of_job(
        self, resource: Resource, reach: Reach, subject: int, job: WorkItem, refers: bool
    ) -> Optional[WakerGrade]:
        """Return the grade of a job in the queue of a pool; None if its code was not evaluated to its end.

        ``refers``: references lead from the job to the object. Of any other job names tell nothing: it may make an object
        of its own that has the same name.
        """
        judged, operations = self._judge(Agent(job=job)), self._operations(resource)
        anywhere = self._anywhere(resource)
        if operations and _names(judged, operations, subject, reach, refers, anywhere) is not None:
            return "names"
        return "refers" if operations and judged.complete else None

    def _is_main(self, actor: Actor) -> bool:
        """Return whether an actor is the main thread, which calls the callbacks of atexit."""
        return actor.thread is not None and actor.thread is self._python.main_thread

    def _leaves_alone(self, operations: FrozenSet[str], subject: int, reach: Reach) -> bool:
        """Return whether nothing that is called at exit can end the waits for an object."""
        called = [self._judge(Agent(exit=callback)) for callback in reach.at_exit[:_MOST_AGENTS]]
        return bool(operations) and all(
            judged.complete and _names(judged, operations, subject, reach) is None for judged in called
        )

    def _waker(self, agent: Agent, found: Applied, way: Optional[str]) -> Waker:
        """Return an agent as a waker that names the object."""
        grade: WakerGrade = "names"
        name = way
        if agent.signal is not None:
            name = signal_name(agent.signal)
        return Waker("reach", "memory", tid=agent.tid, task=agent.task, name=name, grade=grade, site=_site(found))

    def _agents(self, resource: Resource, blocked: Set[str]) -> Iterator[Agent]:
        """Yield all agents but the waiters, and tasks that wait for these."""
        for tid, state in self._context.threads.states.items():
            if tid not in resource.waiters and state.frames:
                yield Agent(tid)
        for ident, task in self._tasks.items():
            if ident not in blocked and ident not in resource.waiting_tasks and task.frames:
                yield Agent(task=ident)
        for number in self._signal_handlers():
            yield Agent(signal=number)

    def _signal_handlers(self) -> Dict[int, int]:
        """Map the numbers of signals with Python handlers to their callables."""
        if self._handlers is None:
            self._handlers = {handler.signal: handler.callable for handler in handlers(self._python) or ()}
        return self._handlers

    def _anywhere(self, resource: Resource) -> FrozenSet[str]:
        """Return the operations that may end the waits for a resource whatever they are applied to."""
        known = self._variables.get(resource.id)
        return known.anywhere if known is not None else frozenset()

    def _operations(self, resource: Resource) -> FrozenSet[str]:
        """Return the operations that end the waits for a resource; empty if unknown."""
        if resource.id in self._variables:
            return self._variables[resource.id].applied
        waiting = [self._tasks[ident] for ident in resource.waiting_tasks if ident in self._tasks]
        if any(f.code.filename.endswith(_UNGRADED) for task in waiting for f in task.frames[:_MOST_INNER]):
            return frozenset()
        greenlets = any(task.greenlet for task in waiting)
        if resource.kind not in ("queue", "async-queue"):
            ends = ENDS.get(resource.kind, frozenset())
            return ends | _RESULT if greenlets and resource.kind == "async-future" else ends
        if greenlets:  # their queues wait in compiled code: the method is unknown
            return frozenset().union(*_QUEUES.values())
        states = self._context.threads.states
        stacks: List[Sequence[PyFrame]] = [states[tid].frames for tid in resource.waiters if tid in states]
        stacks += [self._tasks[ident].frames for ident in resource.waiting_tasks if ident in self._tasks]
        found: Set[str] = set()
        for frames in stacks:
            called = [
                f.function for f in frames[:_MOST_FRAMES] if f.code.filename.endswith(("/queue.py", "/queues.py"))
            ]
            method = next((name for name in called if name in _QUEUES), None)
            if method is None and resource.kind == "async-queue":  # Tornado's and Twisted's leave no frame
                return frozenset().union(*_QUEUES.values())
            found |= _QUEUES[method or "get"]  # a SimpleQueue has no frame
        return frozenset(found)

    # ------------------------------------------------------------------ evaluation

    def _judge(self, agent: Agent) -> _Judged:
        """Return an agent's evaluation, made once."""
        if agent not in self._judged:
            frames, cut = self._frames_of(agent)
            task = self._tasks.get(agent.task) if agent.task is not None else None
            ends = self._ends.of(task) if task is not None else ()
            key = (self._alike_key(frames), ends) if frames else (agent,)
            known = self._alike.get(key)
            if known is None:
                known = self._alike[key] = self._evaluated(agent, frames, cut, ends)
            self._judged[agent] = known
        return self._judged[agent]

    def _frames_of(self, agent: Agent) -> Tuple[Sequence[PyFrame], bool]:
        """Return an agent's frames, and whether some are missing."""
        if agent.tid is not None:
            state: Optional[ThreadState] = self._context.threads.states.get(agent.tid)
            return (state.frames, state.cut is not None) if state is not None else ((), True)
        if agent.task is not None:
            task = self._tasks.get(agent.task)
            return (task.frames, False) if task is not None else ((), True)
        return (), False

    def _alike_key(self, frames: Sequence[PyFrame]) -> Tuple[object, ...]:
        """Return what agents have in common that do the same: code, instruction and variables of each frame."""
        python = self._python
        return tuple((frame.code.address, frame.lasti, tuple(python.frames.locals(frame))) for frame in frames)

    def _evaluated(self, agent: Agent, frames: Sequence[PyFrame], cut: bool, ends: Sequence[int]) -> _Judged:
        if not frames and agent.signal is None and agent.exit is None and agent.job is None:
            return _Judged((), (), not cut)
        if self._limit is None:
            self._limit = TimeLimit(SECONDS)
        if self._limit.passed():
            return _Judged((), (), False)
        if self._library is None:
            self._library = Library(self._python.frames, self._modules)
        watched = frozenset().union(*(each.applied | each.anywhere for each in self._variables.values()))
        machine = Machine(self._library, Limits(TimeLimit(SECONDS * _SHARE, within=self._limit)), watched)
        for frame in frames:
            machine.frame(frame)
        for called in ends:
            machine.callable(called, [UNKNOWN])
        handler = self._signal_handlers().get(agent.signal) if agent.signal is not None else agent.exit
        if handler is not None:
            machine.callable(handler)
        if agent.job is not None and agent.job.called:
            machine.callable(agent.job.called, [machine.heap.value(each) for each in agent.job.arguments])
        elif agent.job is not None:
            machine.incomplete = True
        released = machine.released()
        applied = tuple(
            each
            for each in machine.applied.values()
            if (each.operation != "release" or _gives(each, released)) and not _is_cancellation(each)
        )
        passed = tuple(each for each in machine.passed.values() if not _is_cancellation(each))
        return _Judged(applied, passed, not machine.incomplete and not cut)


def _gives(each: Applied, released: Set[Applied]) -> bool:
    """Return whether a release may free what others hold: not what the same code, or a primitive's caller, acquired."""
    code = each.code
    return code is None or (each in released and (code.name == _RUNS or not code.filename.endswith(_OWN)))


def _is_cancellation(each: Applied) -> bool:
    """Return whether Twisted passes on the cancellation of a generator's Deferred: it provides nothing."""
    return each.code is not None and each.code.name in _CANCELS and each.code.filename.endswith(_DEFER)


def _names(
    judged: _Judged,
    operations: FrozenSet[str],
    subject: int,
    reach: Reach,
    known: bool = True,
    anywhere: FrozenSet[str] = frozenset(),
) -> Optional[Applied]:
    """Return where an agent names an object; None if nowhere.

    - ``known``: the names of the object count, too
    - ``anywhere``: operations that count whatever they are applied to
    """
    stores = next((each for each in judged.applied if each.operation in anywhere), None)
    if stores is not None:
        return stores
    itself = ("obj", subject)
    names = {("name", *name) for name in reach.names} if known else set()
    callers = {
        ("name", *name)
        for method, *name in reach.callers
        if known and (not method or method in operations) and name[0] not in _COMMON
    }
    for each in judged.applied:
        if each.operation in operations and (itself in each.value or not names.isdisjoint(each.value)):
            return each
        if each.operation == CALL and not callers.isdisjoint(each.value):
            return each
    handed = {itself, *names, *(("obj", holder) for holder in reach.holders)}
    return next((each for each in judged.passed if not handed.isdisjoint(each.value)), None)


def _site(found: Applied) -> Optional[PythonFrame]:
    """Return the place of an operation; None for a signal handler that is the operation itself."""
    code = found.code
    if code is None:
        return None
    place = code.location(found.offset)
    return PythonFrame(
        code.filename,
        place.line if place else None,
        code.name,
        code.qualname,
        end_line=place.end_line if place else None,
        column=place.column if place else None,
        end_column=place.end_column if place else None,
    )
