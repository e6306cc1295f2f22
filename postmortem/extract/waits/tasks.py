"""Evidence of event loops and their tasks."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.objects.builtins import NotThat
from ...cpython.objects.code import Code
from ...cpython.state.interpreter import InterpreterState, Python
from ...evidence import Gap, Loop, PythonFrame, Task, Waker, fact
from ...evidence import replace as changed
from ...frameworks.asyncio.eventloops import LoopState
from ...frameworks.asyncio.futures import CONCURRENT
from ...frameworks.asyncio.tasks import Asyncio, TaskState
from ...frameworks.greenlet.bridges import bridged
from ...frameworks.greenlet.links import Links
from ...frameworks.greenlet.switching import Switched, read_greenlets
from ...frameworks.otherloops import OtherLoops
from ...frameworks.tornado.coroutines import Tornado
from ...frameworks.trio.runners import Trio, TrioRead
from ...frameworks.twisted.deferreds import Deferreds
from ...memory import Fault
from ..ownership.pools import FutureFacts
from ..process.context import PythonContext
from .awaits import Awaits
from .endpoints import DescriptorBook
from .loopturns import with_turn


class TasksRead(NamedTuple):
    """The event loops and tasks of all interpreters.

    Ids count from 1 in the order found and contain no address.
    """

    loops: Tuple[Loop, ...]
    tasks: Tuple[Task, ...]
    states: Mapping[str, TaskState]  # asyncio's, trio's and Twisted's tasks, by id
    others: Mapping[str, TaskState]  # other frameworks' tasks, by id
    frames: Sequence[Frame]  # of all coroutines, one for each code object
    suspended: Sequence[Tuple[int, Sequence[Frame]]]  # (tid of a loop's thread, frames of a suspended task)
    runners: Mapping[int, FutureFacts]  # concurrent.futures.Future → agents that could complete it
    awaits: Awaits
    calls: Mapping[int, FutureFacts]  # SimpleQueue in which a thread awaits a call into trio → agents that complete it
    greenlets: bool = False  # suspended greenlets are among the tasks

    def runs(self, tid: int) -> bool:
        """Return whether a thread runs an event loop."""
        return any(loop.tid == tid for loop in self.loops)

    def runner(self, future: int) -> Optional[FutureFacts]:
        """Return the agent that completes a future made by ``asyncio.run_coroutine_threadsafe``; None for any other.

        It is the coroutine's task or, before that exists, the loop whose ready queue contains its callback.
        """
        return self.runners.get(future)


def read_tasks(context: PythonContext, shown: Callable[[Frame], PythonFrame], descriptors: DescriptorBook) -> TasksRead:
    """Return the event loops and tasks of all interpreters.

    ``shown`` converts a suspended coroutine's frame to evidence.
    """
    return _TaskReader(context, shown, descriptors).read()


class _TaskReader:
    def __init__(
        self,
        context: PythonContext,
        shown: Callable[[Frame], PythonFrame],
        descriptors: DescriptorBook,
    ) -> None:
        self._context = context
        self._python = context.python
        self._threads = context.threads
        self._gaps = context.gaps
        self._shown, self._descriptors = shown, descriptors
        self._awaits = Awaits(context, shown, descriptors)
        self._runners: Dict[int, FutureFacts] = {}
        self._calls: Dict[int, FutureFacts] = {}
        self._code_frames: Dict[int, Frame] = {}
        self._suspended: List[Tuple[int, Sequence[Frame]]] = []
        self._loops: Tuple[Loop, ...] = ()
        self._tasks: Tuple[Task, ...] = ()
        self._states: Dict[str, TaskState] = {}
        self._others: Dict[str, TaskState] = {}
        self._greenlets = False

    def read(self) -> TasksRead:
        """Return the event loops and tasks of all interpreters."""
        for interpreter in self._python.interpreters:
            asyncio = Asyncio(self._python, interpreter)
            tornado = Tornado(self._python, interpreter, asyncio.futures).read()
            self._note_unread("Tornado's coroutines", tornado.problem)
            states = sorted((*asyncio.tasks(), *tornado.tasks), key=_by_name)
            switched = bridged(self._python, read_greenlets(self._python, interpreter), states)
            loops = asyncio.loops(states)
            ids = {state.address: f"task-{len(self._tasks) + n}" for n, state in enumerate(states, 1)}
            self._states.update({ids[state.address]: state for state in states})
            self._awaits.read(asyncio, states, loops, ids, tornado)
            tids = {loop.address: self._threads.tid_of_ident(loop.ident) for loop in loops}
            self._find_runners(asyncio, states, loops, ids, tids)
            self._tell(loops, states, ids)
            self._tell_greenlets(switched)
            trio = Trio(self._python, interpreter).read()
            theirs = sorted(trio.tasks, key=_by_name)
            ids = {state.address: f"task-{len(self._tasks) + n}" for n, state in enumerate(theirs, 1)}
            self._states.update({ids[state.address]: state for state in theirs})
            self._awaits.read_trio(trio._replace(tasks=theirs), ids)
            self._tell(trio.loops, theirs, ids)
            self._find_callers(trio, ids)
            others = OtherLoops(self._python, interpreter).read()
            known = {(loop.kind, loop.tid) for loop in self._loops}
            others = [o for o in others if (o.kind, self._threads.tid_of_ident(o.ident)) not in known]
            self._tell_twisted(others, interpreter)
            self._gaps.extend(Gap("cpython", "asyncio", problem, code="tasks-unread") for problem in asyncio.problems)
        frames = list(self._code_frames.values())
        return TasksRead(
            self._loops,
            self._tasks,
            self._states,
            self._others,
            frames,
            self._suspended,
            self._runners,
            self._awaits,
            self._calls,
            self._greenlets,
        )

    def _note_unread(self, subject: str, problem: Optional[str]) -> None:
        """Note a gap for a framework's tasks that could not be read."""
        if problem is not None:
            self._gaps.append(Gap("cpython", subject, problem, code="tasks-unread"))

    def _tell_twisted(self, loops: Sequence[LoopState], interpreter: InterpreterState) -> None:
        """Add loops of other frameworks, and Twisted's tasks, as evidence."""
        twisted = Deferreds(self._python, interpreter).read(loops)
        self._note_unread("Twisted's tasks", twisted.problem)
        states = sorted(twisted.tasks, key=_by_name)
        ids = {state.address: f"task-{len(self._tasks) + n}" for n, state in enumerate(states, 1)}
        self._states.update({ids[state.address]: state for state in states})
        self._awaits.read_twisted(twisted._replace(tasks=states), ids)
        self._tell(loops, states, ids)

    def _tell_greenlets(self, switched: Switched) -> None:
        """Add hubs and greenlets as evidence."""
        self._gaps.extend(
            Gap("cpython", "greenlets", problem, code="greenlets-unread") for problem in switched.problems
        )
        self._greenlets = self._greenlets or bool(switched.states)
        if not switched.tasks:
            return
        links = Links(self._python, switched)
        links.fill(switched.loops)
        states = sorted(switched.tasks, key=_by_name)
        for state in states:
            state.ready = links.ready(state) if state.ready is None else state.ready
            state.waiter = links.waiter(state)
        ids = {state.address: f"task-{len(self._tasks) + n}" for n, state in enumerate(states, 1)}
        self._awaits.read_greenlets(links, states, ids)
        self._others.update({ids[state.address]: state for state in states})
        self._tell(switched.loops, states, ids)

    def _tell(self, loops: Sequence[LoopState], states: Sequence[TaskState], ids: Dict[int, str]) -> None:
        """Add loops and tasks as evidence."""
        names = {loop.address: f"loop-{len(self._loops) + n}" for n, loop in enumerate(loops, 1)}
        tids = {loop.address: self._threads.tid_of_ident(loop.ident) for loop in loops}
        firing = {state.fires: ids[state.address] for state in states if state.fires}
        known = {**firing, **ids}
        mains = {loop.address: known.get(loop.main_task) for loop in loops if loop.main_task is not None}
        found = (self._loop(loop, names, tids, states) for loop in loops)
        self._loops += tuple(changed(e, main_task=mains.get(loop.address)) for e, loop in zip(found, loops))
        for state in states:
            self._code_frames.update({frame.code.address: frame for frame in state.frames})
            tid = tids.get(state.loop or 0) or self._threads.tid_of_ident(state.ident)
            if state.state == "pending" and tid is not None:
                self._suspended.append((tid, state.frames))
        self._tasks += tuple(self._task(state, ids, names) for state in states)

    def _task(self, state: TaskState, ids: Dict[int, str], names: Dict[int, str]) -> Task:
        wait = self._awaits.wait(state.address)
        on = wait.resource if wait is not None and wait.kind == "descriptor" else None
        return Task(
            ids[state.address],
            state.name,
            state.state,
            names.get(state.loop or 0),
            tuple(self._shown(frame) for frame in state.frames),
            state.awaiting,
            on,
            wait,
            self._awaits.holds(state.address),
            state.ready,
            self._moved(state),
        )

    def _moved(self, state: TaskState) -> Optional[bool]:
        """Return whether a task is in another wait, or has made further steps, since the window began."""
        before = self._context.probe("waits")
        if (state.fires or state.greenlet) and str(state.address) not in before:  # not always are these observed
            return None
        same = before.get(str(state.address), 0) == state.place
        return None if not before or (same and state.greenlet) else not same

    def _loop(
        self, state: LoopState, names: Dict[int, str], tids: Dict[int, Optional[int]], tasks: Sequence[TaskState]
    ) -> Loop:
        noted = [self._descriptors.note(fd) for fd in state.descriptors]
        known = tuple(resource for resource in noted if resource is not None)
        own = tuple(f for f in _functions(self._python, state.watchers) if "/asyncio/" not in f.file)
        told = Loop(
            id=names[state.address],
            tid=tids[state.address],
            kind=state.kind,
            ready=state.ready,
            scheduled=state.scheduled,
            running_task=next((t.name for t in tasks if t.loop == state.address and t.state == "running"), None),
            ready_callbacks=_functions(self._python, state.callbacks),
            readers=state.readers,
            sockets=self._descriptors.sockets(known),
            watchers=own,
            watched=state.watched,
            descriptors=known,
            signals=None if state.signals is None else tuple(state.signals),
            state=state.state,
        )
        return with_turn(told, state, self._context.probe("turns"), self._context.raw.clocks)

    # ------------------------------------------------------------------ coroutines for other threads

    def _find_runners(
        self,
        asyncio: Asyncio,
        states: Sequence[TaskState],
        loops: Sequence[LoopState],
        ids: Dict[int, str],
        tids: Dict[int, Optional[int]],
    ) -> None:
        """Find the agents that complete futures of coroutines started from other threads.

        Source: Lib/asyncio/tasks.py, run_coroutine_threadsafe; futures.py, _chain_future: 3.8-3.15.
        """
        futures = asyncio.futures
        for state in states:
            if state.state == "done":
                continue
            target = futures.linked(state.address, "_call_set_state", "destination") or self._of_portal(state)
            if target is not None and futures.kind(target) == CONCURRENT:
                ident = ids[state.address]
                name = f"task {state.name or ident}"
                self._runners[target] = _coroutine_future(state, Waker("runner", "memory", task=ident, name=name))
        for loop in loops:
            tid = tids[loop.address]
            for handle in loop.queue if tid is not None else ():
                code = asyncio.functions.code(handle.callback)
                if code is None or code.name != "callback" or not code.filename.endswith("asyncio/tasks.py"):
                    continue
                target = asyncio.functions.closure(handle.callback).get("future")
                if target is not None and futures.kind(target) == CONCURRENT:
                    self._runners[target] = FutureFacts(
                        "Future of a coroutine that its event loop has not begun",
                        "pending",
                        (Waker("runner", "memory", tid=tid),),
                        True,
                        (fact("coroutine-queued"),),
                    )

    def _find_callers(self, trio: TrioRead, ids: Dict[int, str]) -> None:
        """Find the agents that complete the calls that threads have handed to trio."""
        tids = {loop.address: self._threads.tid_of_ident(loop.ident) for loop in trio.loops}
        names = {state.address: state.name or ids[state.address] for state in trio.tasks}
        for queue, (task, runner) in trio.calls.items():
            if task:
                name = f"task {names[task]}"
                waker = Waker("runner", "memory", task=ids[task], name=name)
                said = fact("call-runs", task=name)
            elif tids.get(runner) is not None:
                waker, said = Waker("runner", "memory", tid=tids[runner]), fact("call-queued")
            else:
                continue
            self._calls[queue] = FutureFacts("outcome of a call into trio", None, (waker,), True, (said,))

    def _of_portal(self, state: TaskState) -> Optional[int]:
        """Return the future that a task of an anyio portal completes for another thread; None for other tasks.

        Source: anyio/from_thread.py, BlockingPortal: 2.0-4.12.
        """
        if not state.frames or not state.frames[-1].is_in("_call_func", "anyio/from_thread.py"):
            return None
        return self._python.frames.local(state.frames[-1], "future")


def _coroutine_future(state: TaskState, waker: Waker) -> FutureFacts:
    frame = state.frames[-1] if state.frames else None
    what = f"coroutine {frame.code.qualname or frame.code.name}" if frame is not None else "a coroutine"
    return FutureFacts(
        f"Future of {what}, run by {waker.name}",
        "pending",
        (waker,),
        True,
        (fact("coroutine-runs", task=waker.name),),
    )


def _by_name(task: TaskState) -> Tuple[str, int, str]:
    """Return a sort key that places Task-2 before Task-10; sets have no stable order."""
    name = task.name or ""
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :][-9:] or 0), name


def _functions(python: Python, codes: Sequence[int]) -> Tuple[PythonFrame, ...]:
    """Return code objects as frames at their first line, without duplicates."""
    found = []
    for address in dict.fromkeys(codes):
        try:
            code = Code(python.objects, address)
        except (Fault, NotThat):
            continue
        found.append(PythonFrame(code.filename, code.firstlineno, code.name, code.qualname))
    return tuple(dict.fromkeys(found))
