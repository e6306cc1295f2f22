"""asyncio: every task with its chain of coroutines down to the innermost frame, and the loops they run on.

What a suspended coroutine awaits is the topmost value of its frame (Objects/genobject.c, _PyGen_yf). ``tasklists`` knows
where the tasks are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Set

from ..memory import Fault
from .attributes import attribute, attributes, slot
from .frames import Frame
from .interpreter import InterpreterState, Python
from .objects import NotThat
from .tasklists import MAX_TASKS, TASK, task_addresses, task_layout

MAX_CHAIN = 2_000
_BASE_EVENTS = "asyncio/base_events.py"
_FUT_LOOP = 16
_COROUTINES = ("coroutine", "generator", "async_generator")
_MOST_TASK = 4096  # bytes of a task object
_STATES = {0: "pending", 1: "done", 2: "done"}


@dataclass
class TaskState:
    address: int
    name: Optional[str]
    state: str  # "pending" | "running" | "done" | "unknown"
    loop: Optional[int]
    frames: List[Frame] = field(default_factory=list)  # innermost await first
    awaiting: Optional[str] = None
    ready: bool = False  # suspended, waits for nothing: it stands in the ready queue


@dataclass
class LoopState:
    address: int
    kind: str  # type name
    ident: Optional[int]  # pthread_t of the thread that runs it
    ready: Optional[int] = None
    scheduled: Optional[int] = None
    readers: Optional[int] = None
    callbacks: List[int] = field(default_factory=list)  # code of functions in the ready queue that are not task steps
    descriptors: List[int] = field(default_factory=list)  # that it watches
    watchers: List[int] = field(default_factory=list)  # code of functions called when a descriptor is ready


class Asyncio:
    """The tasks and loops of one interpreter."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python = python
        self._interpreter = interpreter
        self._objects = python.objects
        self._layout = task_layout(python.memory, python.layout)
        self.problems: List[str] = []

    # ------------------------------------------------------------------ tasks

    def tasks(self) -> List[TaskState]:
        found: List[TaskState] = []
        seen: Set[int] = set()
        for address in task_addresses(self._python, self._interpreter, self._layout, self.problems):
            if address in seen or len(found) >= MAX_TASKS:
                continue
            seen.add(address)
            try:
                found.append(self._task(address))
            except (Fault, NotThat) as exc:
                self.problems.append(f"task at {address:#x}: {exc}")
        return found

    def _task(self, address: int) -> TaskState:
        memory, layout = self._objects.memory, self._layout
        coroutine = memory.u64(address + layout.task_coro)
        waiter = memory.u64(address + layout.task_fut_waiter)
        state = _STATES.get(memory.u32(address + layout.fut_state), "unknown")
        task = TaskState(address, self._task_name(address), state, self._objects.field(address, _FUT_LOOP) or None)
        if state == "pending":
            running = self._follow(self._coroutine(address, coroutine), task)
            if running:
                task.state = "running"
            task.ready = not running and not waiter
            if waiter and task.awaiting is None:
                task.awaiting = self._future_name(waiter)
            if not waiter and task.frames and task.frames[0].is_in("__sleep0", "asyncio/tasks.py"):
                task.awaiting = "sleep(0)"
        return task

    def _coroutine(self, task: int, expected: int) -> int:
        """What a task runs: where its layout says, or, when that is no coroutine, the only one that it refers to."""
        objects = self._objects
        if objects.type_name(expected) in _COROUTINES:
            return expected
        words = objects.memory.words(task, min(objects.type_of(task).basicsize, _MOST_TASK) // 8)
        found = {word for word in words if objects.type_name(word) == "coroutine"}
        return found.pop() if len(found) == 1 else expected

    def _task_name(self, address: int) -> Optional[str]:
        """A str, or from 3.12 on an int until somebody asks for it."""
        try:
            name = self._objects.memory.u64(address + self._layout.task_name)
            text = self._objects.optional_text(name)
            return text if text is not None else f"Task-{self._objects.integer(name)}"
        except (Fault, NotThat):
            return None

    def _follow(self, awaitable: Optional[int], task: TaskState) -> bool:
        """Adds the frames of a chain of awaits, outermost first, and turns them round; True when the chain is
        being executed right now."""
        seen: Set[int] = set()
        running = False
        while awaitable and awaitable not in seen and len(seen) < MAX_CHAIN:
            seen.add(awaitable)
            kind = self._objects.type_name(awaitable)
            if kind in _COROUTINES:
                generator = self._python.frames.generator(awaitable)
                if generator.frame is None:
                    break
                task.frames.append(generator.frame)
                if generator.state == "running":
                    running = True
                    break
                suspended = generator.state == "suspended"
                awaitable = self._python.frames.stack_top(generator.frame) if suspended else None
            elif kind in ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow"):
                awaitable = self._objects.field(awaitable, 16)
            elif kind == "_asyncio.FutureIter":
                task.awaiting = self._future_name(self._objects.field(awaitable, 16))
                break
            else:
                break
        task.frames.reverse()
        return running

    def _future_name(self, address: int) -> Optional[str]:
        if self._objects.is_instance(address, TASK):
            return f"Task:{self._task_name(address) or '?'}"
        kind = self._objects.type_name(address)
        return kind.split(".")[-1] if kind else None

    # ------------------------------------------------------------------ loops

    def loops(self, tasks: List[TaskState]) -> List[LoopState]:
        """Every loop that a task belongs to or that a thread runs."""
        runners: Dict[int, int] = {}
        for thread in self._interpreter.threads:
            for frame in thread.frames:
                if frame.function in ("run_forever", "_run_once") and frame.code.filename.endswith(_BASE_EVENTS):
                    loop = self._python.frames.local(frame, "self")
                    if loop:
                        runners.setdefault(loop, thread.ident)
        addresses = list(runners) + [t.loop for t in tasks if t.loop and t.loop not in runners]
        return [self._loop(address, runners.get(address)) for address in dict.fromkeys(addresses)]

    def _loop(self, address: int, ident: Optional[int]) -> LoopState:
        loop = LoopState(address, self._objects.type_name(address) or "?", ident)
        try:
            values = attributes(self._objects, address)
        except (Fault, NotThat) as exc:
            self.problems.append(f"event loop: {exc}")
            return loop
        loop.ready = self._length(values.get("_ready"))
        loop.scheduled = self._length(values.get("_scheduled"))
        selector = values.get("_selector")
        keys = attribute(self._objects, selector, "_fd_to_key") if selector else None
        if keys:
            loop.readers = self._length(keys)
            loop.descriptors = list(self._numbers(keys))
            loop.watchers = list(self._watchers(keys))
        if loop.ident is None and "_thread_id" in values:
            try:
                loop.ident = self._objects.integer(values["_thread_id"])
            except (Fault, NotThat):
                loop.ident = None
        if values.get("_ready"):
            loop.callbacks = list(self._callbacks(values["_ready"]))
        return loop

    def _length(self, address: Optional[int]) -> Optional[int]:
        try:
            return self._objects.length(address) if address else None
        except (Fault, NotThat):
            return None

    def _callbacks(self, ready: int) -> Iterator[int]:
        """Code objects of Python functions in the ready queue."""
        try:
            for handle in self._objects.deque_items(ready, 1000):
                code = self._function_code(slot(self._objects, handle, "_callback"))
                if code:
                    yield code
        except (Fault, NotThat):
            return

    def _numbers(self, keys: int) -> Iterator[int]:
        """The keys of a selector's map are the descriptors."""
        try:
            for number, _key in list(self._objects.dict_items(keys))[:1000]:
                yield self._objects.integer(number)
        except (Fault, NotThat):
            return

    def _watchers(self, keys: int) -> Iterator[int]:
        """Of a selector's map: descriptor → SelectorKey(fileobj, fd, events, data), where asyncio keeps a pair of
        handles (reader, writer) as data (Lib/asyncio/selector_events.py, _add_reader)."""
        try:
            for _fd, key in list(self._objects.dict_items(keys))[:1000]:
                for handle in self._objects.items(self._objects.items(key)[3]):
                    code = self._function_code(slot(self._objects, handle, "_callback"))
                    if code:
                        yield code
        except (Fault, NotThat, IndexError):
            return

    def _function_code(self, address: Optional[int]) -> Optional[int]:
        for _ in range(5):
            kind = self._objects.type_name(address) if address else None
            if address is None or kind is None:
                return None
            if kind == "function":
                return self._objects.memory.u64(address + self._objects.layout.func_code)
            if kind not in ("method", "functools.partial"):
                return None
            address = self._objects.field(address, 16)  # im_func, partial.fn
        return None
