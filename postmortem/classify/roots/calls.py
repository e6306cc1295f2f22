"""Waits inside calls of libraries that are to return: for an answer, a result, a turn."""

from __future__ import annotations

from ... import sourcepaths
from ...evidence import Task, Thread
from ..facts import native
from ..facts.knowledge import COLLECTS, in_table, is_library, is_stdlib

#: How functions of libraries begin that serve or keep a program alive; all others do something that is to come to its end.
_KEEPS = (
    "run", "serve", "start", "main", "loop", "wait", "join", "watch", "listen", "consume", "poll", "block", "spin", "work",
    "idle", "forever", "process", "monitor", "subscribe", "stream", "next", "iter", "handle", "dispatch", "park", "hold",
    "exec_", "proxy", "until", "closed", "stopped", "disconnected",
)  # fmt: skip
#: Libraries that schedule tasks: a wait in their functions is the program's own.
_LOOP_PACKAGES = ("trio", "anyio", "asyncio", "uvloop", "gevent", "greenlet", "eventlet")
#: Frames of a task among which the function of a queue is that waits.
_INNERMOST = 4


def is_inside_call(task: Task) -> bool:
    """Return whether the program's code in a task awaits a library's, and that waits: for a connection, an answer, a turn."""
    inside = [frame for frame in task.stack if not is_stdlib(frame)]
    own = next((at for at, frame in enumerate(inside) if not is_library(frame)), 0)
    return bool({sourcepaths.package(frame.file) for frame in inside[:own]} - {None, *_LOOP_PACKAGES})


def collects(task: Task) -> bool:
    """Return whether a task waits until all items of a queue are done, as none does to be there when something comes."""
    return any(in_table(frame, COLLECTS) for frame in task.stack[:_INNERMOST])


def calls_for_a_result(thread: Thread) -> bool:
    """Return whether the program's code has called a library's function that, by its name, does not serve, and waits in it.

    The function may be native code of an extension, called by the program itself.
    """
    own = next((at for at, frame in enumerate(thread.python) if not is_library(frame) and not is_stdlib(frame)), 0)
    called = thread.python[own - 1] if own else None
    if called is not None:
        name = called.function if is_library(called) and not is_stdlib(called) else None
    else:
        name = thread.calling.function if thread.calling is not None and native.called(thread) else None
    return name is not None and _returns(name)


def calls_native(thread: Thread) -> bool:
    """Return whether the program itself has called native code of an extension that, by its name, does not serve."""
    own = bool(thread.python) and not is_library(thread.python[0]) and not is_stdlib(thread.python[0])
    return own and calls_for_a_result(thread)


def wants_an_answer(task: Task) -> bool:
    """Return whether the program's code in a task awaits a library's function that, by its name, does not serve."""
    own = next((at for at, frame in enumerate(task.stack) if not is_library(frame)), 0)
    return own > 0 and is_inside_call(task) and _returns(task.stack[own - 1].function)


def _returns(function: str) -> bool:
    """Return whether a library's function is to come to its end, by its name."""
    return not function.rpartition(".")[2].strip("_").startswith(_KEEPS)
