"""Requests to cancel tasks: how many, whether they were delivered, and what became of them.

A request is known from the task itself since 3.11, where it counts them (``Task.cancelling()``). On every release it
is known from whoever waits for the end of a cancelled task: ``wait_for`` up to 3.11, ``asyncio.run`` when it ends, a
gather that was cancelled, an ``asyncio.timeout`` that has expired, and a function of the program that calls ``cancel()`` on
the task and then awaits it.

Sources: Lib/asyncio/{tasks,runners}.py of 3.8-3.15, timeouts.py of 3.11-3.15.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.objects.attributes import attribute
from ...cpython.objects.builtins import NotThat
from ...evidence import Cancellation, PythonFrame, Task, replace
from ...evidence.vocabulary import CancelBasis
from ...frameworks.asyncio.futures import Futures
from ...frameworks.asyncio.tasklists import task_layout
from ...frameworks.asyncio.tasks import COROUTINES, TaskState
from ...memory import Fault
from ...sourcepaths import is_stdlib
from ..process.context import PythonContext
from ..sourcecode.callsites import calls_before, function_at, parse
from ..sourcecode.catches import cancels_awaited, cancels_items, swallowing
from .tasks import TasksRead

#: Functions that cancel the tasks of a loop and wait for their end, with the variable that has them.
_CLOSING = {"_cancel_all_tasks": "to_cancel", "_cancel_tasks": "to_cancel"}
_MOST_TASKS, _MOST_FRAMES, _MOST_CHAIN = 10_000, 12, 200
_LIBRARY = ("/asyncio/", "/anyio/")


def with_cancellations(context: PythonContext, tasks: TasksRead) -> TasksRead:
    """Return the tasks with what is known of requests to cancel them."""
    if not tasks.states:
        return tasks
    return tasks._replace(tasks=_Cancellations(context, tasks).of_all())


class _Cancellations:
    def __init__(self, context: PythonContext, tasks: TasksRead) -> None:
        self._context, self._tasks = context, tasks
        self._python, self._objects = context.python, context.python.objects
        layout = task_layout(self._python.memory, self._python.layout)
        self._functions = Functions(self._python.frames)
        self._futures = Futures(self._objects, self._functions, layout)
        self._ids = {state.address: ident for ident, state in tasks.states.items()}

    def of_all(self) -> Tuple[Task, ...]:
        """Return all tasks, those that were cancelled with the facts."""
        known: Dict[str, CancelBasis] = {}
        for address, basis in (
            *self._called(),
            *self._gathered(),
            *self._expired(),
            *self._awaited(),
            *self._closing(),
        ):
            if address in self._ids:
                known[self._ids[address]] = basis
        found = []
        for task in self._tasks.tasks:
            state = self._tasks.states.get(task.id)
            told = self._of(state, task, known.get(task.id)) if state is not None else None
            found.append(replace(task, cancellation=told) if told is not None else task)
        return tuple(found)

    def _of(self, state: TaskState, task: Task, basis: Optional[CancelBasis]) -> Optional[Cancellation]:
        """Return what is known of requests to cancel a task; None where none is known."""
        if state.state not in ("pending", "running") or self._futures.kind(state.address) != "task":
            return None
        try:
            requests = self._futures.cancel_requests(state.address)
            due: Optional[bool] = self._futures.must_cancel(state.address)
        except (Fault, NotThat):
            requests, due = None, None
        if not requests and not due and basis is None:
            return None
        caught = tuple(self._caught(task)) if not due else ()
        return Cancellation(requests, due, self._handled(state), basis, caught)

    def _handled(self, state: TaskState) -> Optional[bool]:
        """Return whether a coroutine of a task is in a clause that handles its CancelledError."""
        try:
            awaitable: Optional[int] = self._futures.coroutine(state.address)
            for _ in range(_MOST_CHAIN):
                if not awaitable or self._objects.type_name(awaitable) not in COROUTINES:
                    return False
                if self._futures.handles_cancellation(awaitable):
                    return True
                generator = self._python.frames.generator(awaitable)
                if generator.frame is None or generator.state != "suspended":
                    return False if generator.state == "suspended" else None
                awaitable = self._python.frames.stack_top(generator.frame)
        except (Fault, NotThat):
            pass
        return None

    def _caught(self, task: Task) -> Iterator[PythonFrame]:
        """Yield the clauses around a task's awaits that catch a cancellation and go round again."""
        for frame in task.stack[:_MOST_FRAMES]:
            tree = (
                self._context.usages.tree(frame.file) if frame.line is not None and not is_stdlib(frame.file) else None
            )
            if tree is not None and frame.line is not None:
                for line in swallowing(tree, frame.function, frame.line):
                    yield frame.at(line)

    # ------------------------------------------------------------------ who waits for the end of a cancelled task

    def _closing(self) -> Iterator[Tuple[int, CancelBasis]]:
        """Yield the tasks that ``asyncio.run`` and its like have cancelled at the end."""
        for interpreter in self._python.interpreters:
            for thread in interpreter.threads:
                for frame in thread.frames:
                    if frame.function in _CLOSING:
                        for member in self._members(self._python.frames.local(frame, _CLOSING[frame.function])):
                            yield member, "closing"

    def _awaited(self) -> Iterator[Tuple[int, CancelBasis]]:
        """Yield the tasks of which ``wait_for`` awaits the end after its time limit, up to 3.11."""
        for state in self._states():
            for frame in state.frames[:2]:
                if frame.is_in("_cancel_and_wait", "asyncio/tasks.py"):
                    future = self._python.frames.local(frame, "fut")
                    if future is not None:
                        yield future, "awaited"

    def _expired(self) -> Iterator[Tuple[int, CancelBasis]]:
        """Yield the tasks that are inside of an ``asyncio.timeout``, also ``wait_for``'s since 3.12, that has expired."""
        for state in self._states():
            try:
                if self._futures.kind(state.address) == "task" and self._futures.cancel_requests(state.address):
                    values = (
                        v for frame in state.frames[:_MOST_FRAMES] for v in self._python.frames.value_stack(frame)
                    )
                    if any(map(self._is_expired, values)):
                        yield state.address, "limit"
            except (Fault, NotThat):
                continue

    def _is_expired(self, value: int) -> bool:
        """Return whether a value is an expired Timeout, or a method of one."""
        owner = (self._functions.bound(value) or value) if value else 0
        if not owner or (self._objects.type_name(owner) or "").rpartition(".")[2] != "Timeout":
            return False
        state = attribute(self._objects, owner, "_state")
        name = attribute(self._objects, state, "_name_") if state else None
        return name is not None and self._objects.optional_text(name) == "EXPIRING"

    def _gathered(self) -> Iterator[Tuple[int, CancelBasis]]:
        """Yield the members of a gather that was cancelled."""
        for state in self._states():
            if state.waiter and self._objects.type_name(state.waiter) == "_GatheringFuture":
                flag = attribute(self._objects, state.waiter, "_cancel_requested")
                if self._objects.integer_or_none(flag):
                    for member in self._members(attribute(self._objects, state.waiter, "_children")):
                        yield member, "gather"

    def _called(self) -> Iterator[Tuple[int, CancelBasis]]:
        """Yield the tasks on which the function that awaits them has called ``cancel()`` before."""
        waits = {task.id: task.wait for task in self._tasks.tasks}
        addresses = {ident: state.address for ident, state in self._tasks.states.items()}
        for ident, state in self._tasks.states.items():
            wait = waits.get(ident)
            if wait is None or not wait.tasks or state.state != "pending":
                continue
            awaited = [addresses[one] for one in wait.tasks if one in addresses]
            own = [frame for frame in state.frames if not any(part in frame.code.filename for part in _LIBRARY)]
            if own and self._cancels(own[0], awaited):
                for address in awaited:
                    yield address, "called"

    def _cancels(self, frame: Frame, awaited: Sequence[int]) -> bool:
        """Return whether a function has called ``cancel()`` on a task that it awaits now, by the names of its code."""
        line = frame.line
        source = parse(self._context.usages.lines(frame.code.filename)) if line is not None else None
        function = function_at(source, frame.function, line) if source is not None and line is not None else None
        if function is None or line is None:
            return False
        tree = self._context.usages.tree(frame.code.filename)
        if tree is not None and len(awaited) == 1 and cancels_awaited(tree, frame.function, line):
            return True
        if tree is not None and all(map(self._is_requested, awaited)) and cancels_items(tree, frame.function, line):
            return True
        paths = (call.path for call in calls_before(function, line) if call.name == "cancel" and call.path)
        return any(self._object(frame, path) in awaited for path in dict.fromkeys(paths))

    def _is_requested(self, task: int) -> bool:
        """Return whether a task counts a request to cancel it."""
        try:
            return bool(self._futures.cancel_requests(task))
        except (Fault, NotThat):
            return False

    def _object(self, frame: Frame, path: Sequence[str]) -> Optional[int]:
        """Return the address of what a dotted name in a frame refers to; None if unreadable."""
        try:
            value = self._python.frames.local(frame, path[0])
            if value is None:
                namespace = self._python.frames.globals(frame)
                value = self._objects.lookup(namespace, path[0]) if namespace else None
            for name in path[1:]:
                value = attribute(self._objects, value, name) if value else None
            return value
        except (Fault, NotThat):
            return None

    def _states(self) -> List[TaskState]:
        return [state for state in self._tasks.states.values() if state.state == "pending"][:_MOST_TASKS]

    def _members(self, container: Optional[int]) -> Sequence[int]:
        try:
            if container is None:
                return ()
            if self._objects.type_name(container) in ("set", "frozenset"):
                return list(self._objects.set_items(container))[:_MOST_TASKS]
            return self._objects.items(container, _MOST_TASKS)
        except (Fault, NotThat):
            return ()
