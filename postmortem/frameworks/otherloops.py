"""Event loops of gevent, Twisted and eventlet, recognised by their functions on the stack.

gevent's and eventlet's are read here only where their greenlets could not be (see ``greenlet``).
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from ..cpython.frames.frame import Frame
from ..cpython.state.interpreter import InterpreterState, Python
from .asyncio.eventloops import LoopState
from .asyncio.tasks import TaskState

#: (end of the file name, function) → kind.
_LOOPS: Dict[Tuple[str, str], str] = {
    ("gevent/hub.py", "run"): "gevent",
    ("twisted/internet/base.py", "mainLoop"): "twisted",
    ("eventlet/hubs/hub.py", "run"): "eventlet",
}
_FUNCTIONS = frozenset(function for _file, function in _LOOPS)


class OtherLoops:
    """The non-asyncio loops of one interpreter; public methods never raise."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python = python
        self._interpreter = interpreter

    def read(self) -> Tuple[List[LoopState], List[TaskState]]:
        """Return the loops that threads run, and their tasks, none of which is read yet."""
        loops: List[LoopState] = []
        tasks: List[TaskState] = []
        for thread in self._interpreter.threads:
            for frame, kind in self._running(thread.frames):
                runner = self._python.frames.local(frame, "self")
                if runner is None or any(loop.address == runner for loop in loops):
                    continue
                loops.append(LoopState(runner, kind, thread.ident, state="running"))
        return loops, tasks

    @staticmethod
    def _running(frames: List[Frame]) -> Iterator[Tuple[Frame, str]]:
        """Yield (frame, kind) of the frames that run a loop."""
        for frame in frames:
            if frame.function in _FUNCTIONS:
                for (file, function), kind in _LOOPS.items():
                    if frame.is_in(function, file):
                        yield frame, kind
