"""trio's runners and their tasks, found on the stacks of the threads that run them.

- ``Runner`` has ``tasks``, a set with trio's own (``<init>`` and the one of the entry queue), ``runq``, a deque of those
  that can run, ``main_task``, ``deadlines``, a heap of (deadline, id, scope) with stale entries, and ``io_manager``.
- ``Task`` has ``coro``, ``name``, ``_next_send_fn``, which is None unless the task is scheduled, and ``_schedule_points``,
  the number of its steps.
- A thread that runs a function for a task is in WorkerThread._handle_job, which has the function that delivers the outcome
  as ``deliver``.

Limit: a runner in guest mode has no such frame, and is not found.

- Run and RunSync are calls that a thread hands to trio; ``queue`` is where the thread awaits the outcome, before 0.23 the
  variable ``q`` of a closure. Those that have not begun are in the entry queue, as (function, arguments).

Sources, 0.20-0.35: trio/_threads.py, _core/_run.py, _io_epoll.py, _entry_queue.py, _wakeup_socketpair.py, _thread_cache.py.
"""

from __future__ import annotations

from itertools import islice
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import InterpreterState, Python
from ...memory import Fault
from ..asyncio.awaiting import Awaited
from ..asyncio.eventloops import LoopState
from ..asyncio.futures import FutureState
from ..asyncio.streams import descriptor_of_socket
from ..asyncio.tasks import TaskState, follow
from .awaiting import TrioAwaiting, Worker
from .scopes import Expiry, Scopes

_RUN, _CACHE = "trio/_core/_run.py", "trio/_core/_thread_cache.py"
_THREADS = "trio/_threads.py"
_MAX_FRAMES, _MAX_STACK = 50, 300
_MAX_TASKS, _MAX_DEADLINES, _MAX_DESCRIPTORS = 100_000, 100_000, 1_000


class TrioWait(NamedTuple):
    """Wait of a task, and the time at which a cancel scope ends it."""

    awaited: Awaited
    expiry: Expiry


class TrioRead(NamedTuple):
    """The runners and tasks of one interpreter.

    - ``waits``: by the address of the task; none of tasks that run or can run
    - ``coroutines``: by the address of the task
    - ``calls``: queues in which threads await the outcome of a call into trio → the task that runs it, 0 if none does yet,
      and the runner
    - ``borrowers``: stand-ins by which a limiter records a task that waits for a thread → the task
    """

    loops: List[LoopState]
    tasks: List[TaskState]
    waits: Dict[int, TrioWait]
    coroutines: Dict[int, int]
    borrowers: Dict[int, int]
    calls: Dict[int, Tuple[int, int]]
    awaiting: TrioAwaiting


class Trio:
    """The trio runners of one interpreter; public methods never raise."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python, self._interpreter = python, interpreter
        self._objects = python.objects
        self._parts = Parts(python.objects)
        self._functions = Functions(python.frames)
        self._scopes = Scopes(python.objects, self._parts)

    def read(self) -> TrioRead:
        """Return the runners that threads run, with their tasks."""
        awaiting = TrioAwaiting(self._python, self._parts, list(self._workers()))
        found = TrioRead([], [], {}, {}, {}, {}, awaiting)
        for runner, ident in self.runners().items():
            loop = LoopState(runner, "trio", ident, state="running")
            self._read_runner(loop, found)
            found.loops.append(loop)
        return found

    def runners(self) -> Dict[int, Optional[int]]:
        """Map each runner to the pthread_t of its thread."""
        found: Dict[int, Optional[int]] = {}
        for thread in self._interpreter.threads:
            for frame in thread.frames:
                runner = self._python.frames.local(frame, "runner") if frame.is_in("run", _RUN) else None
                if runner is not None:
                    found.setdefault(runner, thread.ident)
        return found

    def all_steps(self) -> Iterator[Tuple[int, int]]:
        """Yield the address of each task with the number of steps that it has made."""
        for runner in self.runners():
            for address in self._tasks(self._parts.attributes(runner).get("tasks")):
                count = self._objects.integer_or_none(self._parts.attributes(address).get("_schedule_points"))
                if count is not None:
                    yield address, count

    def _workers(self) -> Iterator[Worker]:
        """Yield the threads that run a function for a task."""
        for thread in self._interpreter.threads:
            for frame in thread.frames:
                if frame.is_in("_handle_job", _CACHE) and thread.object:
                    deliver = self._python.frames.local(frame, "deliver")
                    if deliver is not None:
                        yield Worker(deliver, thread.object)

    # ------------------------------------------------------------------ one runner

    def _read_runner(self, loop: LoopState, found: TrioRead) -> None:
        values = self._parts.attributes(loop.address)
        main = values.get("main_task")
        loop.main_task = main if main and self._objects.type_name(main) != "NoneType" else None
        loop.ready = self._objects.length_or_none(values.get("runq"))
        offset = self._scopes.offset(loop.address)
        self._read_deadlines(loop, values.get("deadlines"), offset)
        self._read_descriptors(loop, values)
        self._note_queued(loop, values.get("entry_queue"), found)
        for address in self._tasks(values.get("tasks")):
            state = self._task(address, loop.address, found)
            if state is None:
                continue
            found.tasks.append(state)
            self._note_frames(state, loop, found)
            if state.state == "pending" and not state.ready:
                awaited = found.awaiting.of(address, state.frames)
                found.waits[address] = TrioWait(awaited, self._scopes.expiry(address, offset))
                state.awaiting = _what(state.frames)

    def _note_frames(self, state: TaskState, loop: LoopState, found: TrioRead) -> None:
        """Note what a task's frames have to do with threads: its stand-in for a limiter, calls that it runs for them."""
        frames: Sequence[Frame] = state.frames[:_MAX_FRAMES]
        if state.state == "running":
            frames = next((t.frames for t in self._interpreter.threads if t.ident == loop.ident), frames)[:_MAX_STACK]
        for frame in frames:
            if not frame.code.filename.endswith(_THREADS):
                continue
            stands = self._python.frames.local(frame, "placeholder")
            if stands is not None and frame.function == "to_thread_run_sync":
                found.borrowers[stands] = state.address
            local = self._python.frames.local
            queue = self._outcome(local(frame, "self")) or self._outcome(local(frame, "q"))
            if queue is not None:
                found.calls[queue] = (state.address, loop.address)

    def _outcome(self, call: Optional[int]) -> Optional[int]:
        """Return the queue in which a thread awaits the outcome of a call into trio: that of a call, or the object itself.

        None for other objects.
        """
        queue = self._parts.attributes(call).get("queue", call) if call else None
        return queue if queue is not None and self._objects.type_name(queue) == "_queue.SimpleQueue" else None

    def _note_queued(self, loop: LoopState, entry_queue: Optional[int], found: TrioRead) -> None:
        """Note the calls that other threads have handed to the runner, and that it has not begun."""
        values = self._parts.attributes(entry_queue) if entry_queue else {}
        for name in ("queue", "idempotent_queue"):
            for job in self._parts.items(values.get(name, 0)) or ():
                for part in self._parts.items(job) or ():
                    for thing in (part, *self._functions.carried(part), *(self._parts.items(part) or ())):
                        queue = self._outcome(thing)
                        if queue is not None:
                            found.calls.setdefault(queue, (0, loop.address))

    def _tasks(self, tasks: Optional[int]) -> List[int]:
        try:
            return list(islice(self._objects.set_items(tasks), _MAX_TASKS)) if tasks else []
        except (Fault, NotThat):
            return []

    def _task(self, address: int, loop: int, found: TrioRead) -> Optional[TaskState]:
        """Return a task; None if it cannot be read."""
        values = self._parts.attributes(address)
        coroutine = values.get("coro")
        try:
            chain = follow(self._python, coroutine)
        except (Fault, NotThat):
            return None
        if coroutine is not None:
            found.coroutines[address] = coroutine
        state: FutureState = "running" if chain.running else "pending" if chain.frames else "unknown"
        name = values.get("name")
        text = self._objects.optional_text(name) if name else None
        scheduled = values.get("_next_send_fn")
        ready = None if scheduled is None else self._objects.type_name(scheduled) != "NoneType"
        steps = self._objects.integer_or_none(values.get("_schedule_points"))
        return TaskState(address, text, state, loop, chain.frames, None, ready, steps or 0)

    def _read_deadlines(self, loop: LoopState, deadlines: Optional[int], offset: Optional[float]) -> None:
        """Set the number of deadlines that will cancel a scope, and the first one's time."""
        heap = self._parts.attributes(deadlines).get("_heap") if deadlines else None
        if heap is None:
            return
        due: Dict[int, float] = {}
        try:
            for entry in self._objects.items(heap, _MAX_DEADLINES):
                items = self._objects.items(entry, 3)
                if len(items) != 3:
                    continue
                when, scope = self._objects.number(items[0]), items[2]
                if when == self._scopes.deadline(scope):
                    due[scope] = when
        except (Fault, NotThat, OverflowError):
            return
        loop.scheduled = len(due)
        if due and offset is not None:
            loop.first_timer = min(due.values()) - offset

    def _read_descriptors(self, loop: LoopState, runner: Dict[str, int]) -> None:
        """Set the descriptors that tasks wait for, without the one by which other threads wake the runner."""
        manager = runner.get("io_manager")
        registered = self._parts.attributes(manager).get("_registered") if manager else None
        if registered is None:
            return
        own = self._wakeup(runner.get("entry_queue"))
        try:
            pairs = islice(self._objects.dict_items(registered), _MAX_DESCRIPTORS)
            numbers = [self._objects.integer(key) for key, _value in pairs]
        except (Fault, NotThat):
            return
        loop.readers = len(numbers)
        loop.descriptors = [number for number in numbers if number != own]
        if own is not None:
            loop.watched = len(loop.descriptors)

    def _wakeup(self, entry_queue: Optional[int]) -> Optional[int]:
        pair = self._parts.attributes(entry_queue).get("wakeup") if entry_queue else None
        return descriptor_of_socket(self._objects, self._parts.attributes(pair).get("wakeup_sock")) if pair else None


def _what(frames: List[Frame]) -> Optional[str]:
    """Return the trio function that the program called last: ``Event.wait``, ``sleep``; None if there is none."""
    found = None
    for frame in frames:
        if "/trio/" not in frame.code.filename:
            break
        found = frame.code.qualname or frame.code.name
    return found
