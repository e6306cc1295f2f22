"""Event loops of gevent, Twisted and eventlet, recognised by their functions on the stack.

gevent's and eventlet's are read here only where their greenlets could not be (see ``greenlet``).

A Twisted reactor flushes its new delayed calls, and runs the calls of other threads, before each poll: what is in these lists
while it polls was put there from outside of it. ``callFromThread`` wakes it, ``callLater`` does not.
Source: twisted/internet/base.py, ReactorBase and DelayedCall, of 18.9 to 25.5.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from ..cpython.frames.frame import Frame
from ..cpython.frames.functions import Functions
from ..cpython.objects.attributes import attribute, attributes
from ..cpython.objects.builtins import NotThat
from ..cpython.state.interpreter import InterpreterState, Python
from ..memory import Fault
from .asyncio.eventloops import LoopState

#: (end of the file name, function) → kind.
_LOOPS: Dict[Tuple[str, str], str] = {
    ("gevent/hub.py", "run"): "gevent",
    ("twisted/internet/base.py", "mainLoop"): "twisted",
    ("eventlet/hubs/hub.py", "run"): "eventlet",
}
_FUNCTIONS = frozenset(function for _file, function in _LOOPS)
_MAX_CALLS = 1_000
#: The function that runs a reactor until its local ``finished``, a Deferred, fires (twisted/internet/task.py).
_REACTS = ("react", "twisted/internet/task.py")
#: The function of a reactor in which its local ``call`` is the timer that is served, and its file.
_SERVES = ("runUntilCurrent", "twisted/internet/base.py")


class OtherLoops:
    """The non-asyncio loops of one interpreter; public methods never raise."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python = python
        self._interpreter = interpreter

    def read(self) -> List[LoopState]:
        """Return the loops that threads run."""
        loops: List[LoopState] = []
        for thread in self._interpreter.threads:
            for frame, kind in self._running(thread.frames):
                runner = self._python.frames.local(frame, "self")
                if runner is None or any(loop.address == runner for loop in loops):
                    continue
                loop = LoopState(runner, kind, thread.ident, state="running")
                if kind == "twisted":
                    self._read_reactor(loop, thread.frames)
                    loop.main_task = self._until(thread.frames)
                loops.append(loop)
        return loops

    def _until(self, frames: List[Frame]) -> Optional[int]:
        """Return the Deferred whose result ends ``react``; None if the reactor runs on its own."""
        caller = next((frame for frame in frames if frame.is_in(*_REACTS)), None)
        return self._python.frames.local(caller, "finished") if caller is not None else None

    def _read_reactor(self, loop: LoopState, frames: List[Frame]) -> None:
        """Set the number of calls that a Twisted reactor is to make in its next turn, their functions, and its timers.

        Without any, the function is that of the next timer, or of the one that is just served.
        """
        objects, functions = self._python.objects, Functions(self._python.frames)
        try:
            values = attributes(objects, loop.address)
            new = objects.items(values["_newTimedCalls"], _MAX_CALLS)
            threads = objects.items(values["threadCallQueue"], _MAX_CALLS)
            called = [call for call in map(self._delayed, new) if call is not None]
            called += [objects.items(call)[0] for call in threads]
            following = list(objects.items(values["_pendingTimedCalls"], _MAX_CALLS)[:1])  # a heap, the next one first
            following += [call for frame in frames if frame.is_in(*_SERVES) for call in [self._local(frame)] if call]
        except (Fault, NotThat, KeyError, IndexError):
            return
        calls = called or [call for call in map(self._delayed, following) if call is not None][:1]
        codes = [code for call in calls for code in [functions.code(call)] if code is not None]
        loop.ready, loop.callbacks = len(called), [code.address for code in codes]
        loop.scheduled = objects.length_or_none(values.get("_pendingTimedCalls"))
        self._read_watched(loop, values)

    def _read_watched(self, loop: LoopState, values: Dict[str, int]) -> None:
        """Set the descriptors that a reactor with epoll or poll watches, except those that only wake it; else they stay unknown.

        Source: twisted/internet/epollreactor.py and pollreactor.py: ``_selectables``; posixbase.py: ``_internalReaders``.
        """
        objects = self._python.objects
        try:
            own = set(objects.set_items(values["_internalReaders"]))
            watched = [number for number, one in objects.dict_items(values["_selectables"]) if one not in own]
            numbers = [objects.integer_or_none(number) for number in watched]
        except (Fault, NotThat, KeyError):
            return
        loop.descriptors = sorted(number for number in numbers if number is not None)
        loop.watched = len(numbers)

    def _delayed(self, call: int) -> Optional[int]:
        """Return the function of a ``DelayedCall``; None if it was cancelled."""
        objects = self._python.objects
        cancelled = attribute(objects, call, "cancelled")
        if cancelled is None or objects.integer_or_none(cancelled):
            return None
        return attribute(objects, call, "func")

    def _local(self, frame: Frame) -> Optional[int]:
        """Return the ``DelayedCall`` that a reactor serves; None if it serves none."""
        return self._python.frames.local(frame, "call")

    @staticmethod
    def _running(frames: List[Frame]) -> Iterator[Tuple[Frame, str]]:
        """Yield (frame, kind) of the frames that run a loop."""
        for frame in frames:
            if frame.function in _FUNCTIONS:
                for (file, function), kind in _LOOPS.items():
                    if frame.is_in(function, file):
                        yield frame, kind
