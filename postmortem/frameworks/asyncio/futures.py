"""asyncio's futures and tasks, in C or Python: state, callbacks, and awaited futures.

- FutureObj begins with loop, callback0, context0, callbacks; its state is an enum {PENDING, CANCELLED, FINISHED}.
- The Python classes, and classes derived from either, keep the same in attributes.
- ``concurrent.futures.Future`` is a kind of its own.

Sources: Modules/_asynciomodule.c and Lib/asyncio/{futures,tasks}.py of 3.8-3.15; Lib/concurrent/futures/_base.py.
"""

from __future__ import annotations

from typing import Dict, List, Literal, Optional

from ...cpython.frames.functions import Functions
from ...cpython.objects.attributes import attribute, class_value
from ...cpython.objects.builtins import NotThat, Objects
from ...cpython.runtime.layouts import Layout
from ...memory import Fault

FUTURE, TASK, CONCURRENT = "future", "task", "concurrent"
_C_FUTURE, _C_TASK = "_asyncio.Future", "_asyncio.Task"
_LOOP, _CALLBACK0, _CALLBACKS = 16, 24, 40
#: Distinctive class attributes (3.8-3.15): the mangled name of Task.__step; the flag that ``await`` sets on a future;
#: the method that an executor calls.
_OF_TASK, _OF_FUTURE, _OF_CONCURRENT = "_Task__step", "_asyncio_future_blocking", "set_running_or_notify_cancel"
FutureState = Literal["pending", "running", "done", "unknown"]
_STATES: Dict[int, FutureState] = {0: "pending", 1: "done", 2: "done"}
_WORDS: Dict[str, FutureState] = {
    "PENDING": "pending",
    "CANCELLED": "done",
    "FINISHED": "done",
    "CANCELLED_AND_NOTIFIED": "done",
    "RUNNING": "running",
}
_MAX_CALLBACKS = 10_000
#: Most requests to cancel one task: anyio repeats them in every turn of the loop.
_MAX_CANCELS = 1 << 30


class Futures:
    """Futures of one interpreter. Methods raise Fault or NotThat unless they say otherwise."""

    def __init__(self, objects: Objects, functions: Functions, layout: Layout) -> None:
        self._objects = objects
        self.functions = functions
        self._layout = layout
        self._kinds: Dict[int, Optional[str]] = {}
        self._in_c: Dict[int, bool] = {}
        self._asked, self._is_c = 0, False

    # ------------------------------------------------------------------ kinds

    def kind(self, address: int) -> Optional[str]:
        """Return TASK, FUTURE, CONCURRENT, or None for any other object. Raises nothing."""
        try:
            type_ = self._objects.type_of(address).address
        except (Fault, NotThat):
            return None
        if type_ not in self._kinds:
            self._kinds[type_] = self._kind(address)
        return self._kinds[type_]

    def _kind(self, address: int) -> Optional[str]:
        objects = self._objects
        if objects.is_instance(address, _C_TASK):
            return TASK
        if objects.is_instance(address, _C_FUTURE):
            return FUTURE
        for name, kind in ((_OF_TASK, TASK), (_OF_FUTURE, FUTURE), (_OF_CONCURRENT, CONCURRENT)):
            if class_value(objects, address, name) is not None:
                return kind
        return None

    def is_task(self, address: int) -> bool:
        """Return whether an object is an asyncio task. Raises nothing."""
        return self.kind(address) == TASK

    def _c(self, address: int) -> bool:
        """Return whether an object is written in C; remembers the last one, which is often asked about again."""
        if address != self._asked:
            self._asked, self._is_c = address, self._written_in_c(address)
        return self._is_c

    def _written_in_c(self, address: int) -> bool:
        """Return whether an object's class is, or derives from, one of the C classes."""
        type_ = self._objects.type_of(address).address
        if type_ not in self._in_c:
            self._in_c[type_] = any(self._objects.is_instance(address, name) for name in (_C_TASK, _C_FUTURE))
        return self._in_c[type_]

    # ------------------------------------------------------------------ any future

    def state(self, address: int) -> FutureState:
        """Return the state of a future; "running" occurs for concurrent.futures only."""
        if self._c(address):
            return _STATES.get(self._objects.memory.u32(address + self._layout.fut_state), "unknown")
        text = attribute(self._objects, address, "_state") or class_value(self._objects, address, "_state")
        return _WORDS.get(self._objects.optional_text(text) or "", "unknown") if text else "unknown"

    def loop(self, address: int) -> Optional[int]:
        """Return the address of a future's loop; None if it has none."""
        if self._c(address):
            return self._objects.field(address, _LOOP) or None
        return attribute(self._objects, address, "_loop")

    def callbacks(self, address: int) -> List[int]:
        """Return the addresses of the callables to be called when a future is done."""
        objects = self._objects
        if not self._c(address):
            concurrent = self.kind(address) == CONCURRENT
            listed = attribute(objects, address, "_done_callbacks" if concurrent else "_callbacks")
            return [] if not listed else [c if concurrent else self._called(c) for c in objects.items(listed)]
        first, listed = objects.field(address, _CALLBACK0), objects.field(address, _CALLBACKS)
        found = [first] if first else []
        if listed and objects.type_name(listed) == "list":
            found += [self._called(pair) for pair in objects.items(listed, _MAX_CALLBACKS)]
        return found

    def _called(self, pair: int) -> int:
        """Return the callable of a pair (callback, context)."""
        items = self._objects.items(pair, 2)
        if not items:
            raise NotThat("no callback")
        return items[0]

    def linked(self, address: int, callback: str, name: str) -> Optional[int]:
        """Return a variable from the closure of asyncio's own callback on a future; None if absent.

        ``callback``: function name, such as ``_call_set_state``; ``name``: variable. Raises nothing.
        """
        try:
            for called in self.callbacks(address):
                code = self.functions.code(called)
                if code is not None and code.name == callback and "/asyncio/" in code.filename:
                    return self.functions.closure(called).get(name)
        except (Fault, NotThat):
            pass
        return None

    # ------------------------------------------------------------------ tasks

    def coroutine(self, task: int) -> int:
        """Return the address of a task's coroutine."""
        return self._of_task(task, self._layout.task_coro, "_coro")

    def waiter(self, task: int) -> int:
        """Return the address of the future that a task waits for; 0 if it waits for none."""
        found = self._of_task(task, self._layout.task_fut_waiter, "_fut_waiter")
        if not found or self._objects.type_name(found) == "NoneType":
            return 0
        if self.kind(found) is None:
            raise NotThat("it waits for something that is not a future")
        return found

    def name(self, task: int) -> Optional[str]:
        """Return a task's name; None if unreadable. Raises nothing.

        Since 3.12 it is stored as an int until it is first read, and formatted as "Task-N".
        """
        try:
            name = self._of_task(task, self._layout.task_name, "_name")
            text = self._objects.optional_text(name)
            return text if text is not None else f"Task-{self._objects.integer(name)}"
        except (Fault, NotThat):
            return None

    def cancel_requests(self, task: int) -> Optional[int]:
        """Return ``Task.cancelling()``: requests to cancel a task that were not withdrawn; None before 3.11."""
        if not self._c(task):
            number = attribute(self._objects, task, "_num_cancels_requested")
            return None if number is None else self._objects.integer(number)
        offset = self._layout.task_cancels
        found = self._objects.memory.i32(task + offset) if offset >= 0 else None
        if found is not None and not 0 <= found <= _MAX_CANCELS:
            raise NotThat("no number of requests")
        return found

    def must_cancel(self, task: int) -> bool:
        """Return whether the next step of a task raises CancelledError."""
        if not self._c(task):
            flag = attribute(self._objects, task, "_must_cancel")
            return flag is not None and bool(self._objects.integer(flag))
        flags = self._objects.memory.u8(task + self._layout.task_must_cancel)
        return bool(flags >> self._layout.task_must_cancel_bit & 1)

    def handles_cancellation(self, coroutine: int) -> bool:
        """Return whether a coroutine is in an `except` or `finally` clause of a CancelledError."""
        layout = self._objects.layout
        value = self._objects.memory.u64(coroutine + layout.gen_exc_state + layout.exc_value)
        return bool(value) and self._objects.is_instance(value, "CancelledError")

    def _of_task(self, task: int, offset: int, name: str) -> int:
        """Read a field of a task: by offset if written in C, else by attribute name."""
        if self._c(task):
            return self._objects.memory.u64(task + offset)
        return attribute(self._objects, task, name) or 0
