"""Where the program may have made a callback of a sleeping event loop ready.

A loop that is in its selector has run everything that was ready before. What is ready now came from another thread, or
from a signal handler; ``call_soon_threadsafe`` would have written to the loop's pipe, which ends the select.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...cpython.frames.functions import Functions
from ...evidence import Loop, PythonFrame
from ...frameworks.asyncio.awaiting import Awaiting
from ...frameworks.asyncio.futures import Futures
from ...frameworks.asyncio.tasks import TaskState
from ..process.context import PythonContext
from ..sourcecode.usages import last_name
from .tasks import TasksRead

_FUTURE = frozenset(("set_result", "set_exception", "cancel"))
#: Methods after which a waiter of such an object is ready (Lib/asyncio/locks.py, queues.py).
_OPERATIONS: Mapping[str, FrozenSet[str]] = {
    "queue": frozenset(("put_nowait", "get_nowait", "task_done")), "event": frozenset(("set",)),
    "condition": frozenset(("notify", "notify_all")), "lock": frozenset(("release",)),
    "semaphore": frozenset(("release",)), "barrier": frozenset(("abort", "reset")),
}  # fmt: skip
_CALLS = frozenset(("call_soon", "call_later", "call_at", "create_task", "ensure_future"))
#: Methods of a Twisted reactor and of a Deferred after which it has something to do.
_TWISTED_CALLS = frozenset(("callLater", "callback", "errback"))
#: Methods after which a greenlet that waits for such an object is ready (gevent/event.py, queue.py, lock.py).
_GEVENT_CALLS = frozenset(("set", "set_exception", "put", "put_nowait", "release"))
#: Loops of greenlets.
_HUBS = ("gevent",)
_MOST_TASKS, _MOST_PLACES = 20, 6


def readied_at(context: PythonContext, tasks: TasksRead, loop: Loop, files: Sequence[str]) -> Tuple[PythonFrame, ...]:
    """Return the program's places that may have made a loop's callbacks ready; by the names of the objects awaited."""
    objects = context.python.objects
    awaiting = Awaiting(context.python, Futures(objects, Functions(context.python.frames), objects.layout))
    found: List[PythonFrame] = []
    ready = [tasks.states[t.id] for t in tasks.tasks if t.loop == loop.id and t.ready and t.id in tasks.states]
    for state in [state for state in ready if state.waiter][:_MOST_TASKS]:
        for name, operations in _named(context, state, awaiting):
            found += context.usages.applying(name, operations, files)
    if not found and loop.kind in _HUBS:
        found += context.usages.applying(None, _GEVENT_CALLS, files)
    elif not found and any(state.waiter for state in ready):
        found += context.usages.applying(None, frozenset(("set_result", "set_exception")), files)
    if loop.kind not in _HUBS and (loop.ready_callbacks or any(not state.waiter for state in ready)):
        calls = _TWISTED_CALLS if loop.kind == "twisted" else _CALLS
        found += context.usages.applying(None, calls, files)
    return tuple(dict.fromkeys(found))[:_MOST_PLACES]


def _named(
    context: PythonContext, state: TaskState, awaiting: Awaiting
) -> Iterator[Tuple[Optional[str], FrozenSet[str]]]:
    """Yield the last name of what a task awaits, and the operations that end the wait."""
    awaited = awaiting.of(state.frames, state.waiter or 0)
    primitive = awaited.primitive
    address = primitive.address if primitive is not None else state.waiter
    operations = _OPERATIONS.get(primitive.kind, _FUTURE) if primitive is not None else _FUTURE
    users = [frame for frame in state.frames if not awaiting.own(frame)][:4]
    for user in users:
        name = context.names.find(lambda value: value == address, [user])
        if name:
            yield last_name(name), operations
            return
