"""asyncio's tasks, each with its chain of coroutines down to the innermost frame.

A suspended coroutine awaits the topmost value of its frame (Objects/genobject.c, _PyGen_yf).

Related modules: ``tasklists`` (registries of tasks), ``futures`` (fields of a task), ``eventloops`` (their loops).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import List, Optional, Set

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.objects.builtins import NotThat
from ...cpython.runtime.layouts import OWNED_BY_GENERATOR
from ...cpython.state.interpreter import InterpreterState, Python
from ...memory import Fault
from .eventloops import EventLoops, LoopState
from .futures import Futures, FutureState
from .tasklists import MAX_TASKS, task_addresses, task_layout

MAX_CHAIN = 2_000
CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200
COROUTINES = ("coroutine", "generator", "async_generator")
_MOST_TASK = 4096  # bytes of a task object


@dataclass
class TaskState:
    """A task at the time of the read."""

    address: int
    name: Optional[str]
    state: FutureState
    loop: Optional[int]
    frames: List[Frame] = field(default_factory=list)  # innermost await first
    awaiting: Optional[str] = None
    ready: Optional[bool] = None  # suspended, but runnable in the loop's next turn
    waiter: int = 0  # address of the awaited future; 0: none
    greenlet: bool = False
    ident: Optional[int] = None  # pthread_t of the thread that it belongs to, if it has no loop
    fires: int = 0  # of Twisted's: address of the Deferred that fires when it ends; of Tornado's, of the future

    @property
    def place(self) -> int:
        """Where it waits: another value at another time means that it went on. A greenlet may be back in its old place.

        Of a greenlet a hash of its frames and their instructions, since the objects that it waits for are made anew where
        old ones were.
        """
        if not self.greenlet:
            return self.waiter
        return sum(frame.address * (at + 1) + frame.lasti for at, frame in enumerate(self.frames)) % (1 << 63)


class Asyncio:
    """The tasks and loops of one interpreter; ``problems`` collects what could not be read."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python = python
        self._interpreter = interpreter
        self._objects = python.objects
        self._layout = task_layout(python.memory, python.layout)
        self.functions = Functions(python.frames)
        self.futures = Futures(python.objects, self.functions, self._layout)
        self.problems: List[str] = []

    def tasks(self) -> List[TaskState]:
        """Return every task, at most MAX_TASKS."""
        found: List[TaskState] = []
        seen: Set[int] = set()
        is_task = self.futures.is_task
        for address in task_addresses(self._python, self._interpreter, self._layout, is_task, self.problems):
            if address in seen or len(found) >= MAX_TASKS:
                continue
            seen.add(address)
            try:
                found.append(self._task(address))
            except (Fault, NotThat) as exc:
                self.problems.append(f"task at {address:#x}: {exc}")
        return found

    def loops(self, tasks: List[TaskState]) -> List[LoopState]:
        """Return every loop that a task belongs to or that a thread runs."""
        loops = EventLoops(self._python, self._interpreter, self.functions)
        found = loops.of(task.loop for task in tasks)
        self.problems += loops.problems
        return found

    def _task(self, address: int) -> TaskState:
        """Read one task. Raises Fault or NotThat."""
        futures = self.futures
        coroutine = futures.coroutine(address)
        task = TaskState(address, futures.name(address), futures.state(address), futures.loop(address))
        if task.state == "pending":
            self._read_wait(task)
            running = self._follow(self._coroutine(address, coroutine), task)
            if running:
                task.state, task.ready = "running", False
                task.frames = [*self._inside(task.frames), *task.frames]
            if task.waiter and task.awaiting is None:
                task.awaiting = self._future_name(task.waiter)
            if not task.waiter and task.frames and task.frames[0].is_in("__sleep0", "asyncio/tasks.py"):
                task.awaiting = "sleep(0)"
        return task

    def _inside(self, frames: List[Frame]) -> List[Frame]:
        """Return the coroutines that a running one currently awaits, from its thread's stack."""
        for thread in self._interpreter.threads:
            at = next((i for i, f in enumerate(thread.frames) if frames and f.address == frames[0].address), 0)
            inner = list(itertools.takewhile(self._is_suspendable, reversed(thread.frames[:at])))
            if inner:
                return inner[::-1]
        return []

    def _is_suspendable(self, frame: Frame) -> bool:
        """Return whether a frame belongs to a coroutine or generator.

        Up to 3.10 its code has flags: co_flags follows co_stacksize (Include/code.h of 3.8 and 3.9,
        Include/cpython/code.h of 3.10).
        """
        if not self._objects.layout.heap_frames:
            return frame.owner == OWNED_BY_GENERATOR
        try:
            flags = self._objects.memory.u32(frame.code.address + self._objects.layout.co_stacksize + 4)
        except Fault:
            return False
        return bool(flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))

    def _read_wait(self, task: TaskState) -> None:
        """Set the awaited future and ``ready``: its completion only schedules the task for a later turn."""
        try:
            task.waiter = self.futures.waiter(task.address)
            task.ready = not task.waiter or self.futures.state(task.waiter) == "done"
        except (Fault, NotThat):
            task.ready = None

    def _coroutine(self, task: int, expected: int) -> int:
        """Return the coroutine of a task: ``expected``, or else the only coroutine that the task refers to."""
        objects = self._objects
        if objects.type_name(expected) in COROUTINES:
            return expected
        words = objects.memory.words(task, min(objects.type_of(task).basicsize, _MOST_TASK) // 8)
        found = {word for word in words if objects.type_name(word) == "coroutine"}
        return found.pop() if len(found) == 1 else expected

    def _follow(self, awaitable: Optional[int], task: TaskState) -> bool:
        """Set the frames of a task from its chain of awaits; return whether the chain is being executed."""
        chain = follow(self._python, awaitable)
        task.frames = chain.frames
        if chain.end is not None and self._objects.type_name(chain.end) == "_asyncio.FutureIter":
            task.awaiting = self._future_name(self._objects.field(chain.end, 16))
        return chain.running

    def _future_name(self, address: int) -> Optional[str]:
        """Name a future: "Task:" with the task's name, or the name of its class."""
        if self.futures.is_task(address):
            return f"Task:{self.futures.name(address) or '?'}"
        kind = self._objects.type_name(address)
        return kind.split(".")[-1] if kind else None


@dataclass
class Awaits:
    """A chain of coroutines, each awaited by the next."""

    frames: List[Frame]  # innermost await first
    running: bool  # it is being executed
    end: Optional[int]  # awaited object that is not a coroutine


def follow(python: Python, awaitable: Optional[int]) -> Awaits:
    """Follow the chain of awaits from a coroutine or its iterator. Raises Fault or NotThat."""
    objects, frames = python.objects, python.frames
    found = Awaits([], False, None)
    seen: Set[int] = set()
    while awaitable and awaitable not in seen and len(seen) < MAX_CHAIN:
        seen.add(awaitable)
        kind = objects.type_name(awaitable)
        if kind in COROUTINES:
            generator = frames.generator(awaitable)
            if generator.frame is None:
                break
            found.frames.append(generator.frame)
            if generator.state == "running":
                found.running = True
                break
            awaitable = frames.stack_top(generator.frame) if generator.state == "suspended" else None
        elif kind in ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow"):
            awaitable = objects.field(awaitable, 16)
        else:
            found.end = awaitable
            break
    found.frames.reverse()
    return found
