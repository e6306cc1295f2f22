"""Event loops of trio, gevent, Twisted and eventlet, recognised by their functions on the stack; trio's tasks.

Source of trio: trio/_core/_run.py of 0.20-0.35. ``Runner`` has ``tasks``, a set, and ``runq``, a deque of runnable
tasks; ``Task`` has ``coro`` and ``name``. Both have slots.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Set, Tuple

from ..cpython.frames.frame import Frame
from ..cpython.objects.attributes import Slots, attribute
from ..cpython.objects.builtins import NotThat
from ..cpython.state.interpreter import InterpreterState, Python
from ..memory import Fault
from .asyncio.eventloops import LoopState
from .asyncio.futures import FutureState
from .asyncio.tasks import TaskState, follow

#: (end of the file name, function) → kind.
_LOOPS: Dict[Tuple[str, str], str] = {
    ("trio/_core/_run.py", "run"): "trio",
    ("gevent/hub.py", "run"): "gevent",
    ("twisted/internet/base.py", "mainLoop"): "twisted",
    ("eventlet/hubs/hub.py", "run"): "eventlet",
}
_FUNCTIONS = frozenset(function for _file, function in _LOOPS)
_MAX_TASKS = 100_000


class OtherLoops:
    """The non-asyncio loops of one interpreter; public methods never raise."""

    def __init__(self, python: Python, interpreter: InterpreterState) -> None:
        self._python = python
        self._interpreter = interpreter
        self._objects = python.objects
        self._slots = Slots(python.objects)

    def read(self) -> Tuple[List[LoopState], List[TaskState]]:
        """Return the loops that threads run, and trio's tasks."""
        loops: List[LoopState] = []
        tasks: List[TaskState] = []
        for thread in self._interpreter.threads:
            for frame, kind in self._running(thread.frames):
                runner = self._python.frames.local(frame, "runner" if kind == "trio" else "self")
                if runner is None or any(loop.address == runner for loop in loops):
                    continue
                loop = LoopState(runner, kind, thread.ident, state="running")
                loops.append(loop)
                if kind == "trio":
                    tasks += self._trio(loop)
        return loops, tasks

    @staticmethod
    def _running(frames: List[Frame]) -> Iterator[Tuple[Frame, str]]:
        """Yield (frame, kind) of the frames that run a loop."""
        for frame in frames:
            if frame.function in _FUNCTIONS:
                for (file, function), kind in _LOOPS.items():
                    if frame.is_in(function, file):
                        yield frame, kind

    def _trio(self, loop: LoopState) -> Iterator[TaskState]:
        """Yield the tasks of a trio runner; sets ``ready`` of its loop."""
        queue = self._members(loop.address, "runq")
        if queue is not None:
            loop.ready = len(queue)
        for address in self._members(loop.address, "tasks") or ():
            try:
                coroutine, name = self._slots.get(address, "coro"), self._slots.get(address, "name")
                chain = follow(self._python, coroutine)
            except (Fault, NotThat):
                continue
            state: FutureState = "running" if chain.running else "pending" if chain.frames else "unknown"
            text = self._objects.optional_text(name) if name else None
            ready = None if queue is None else address in queue
            yield TaskState(address, text, state, loop.address, chain.frames, _what(chain.frames), ready)

    def _members(self, runner: int, name: str) -> Optional[Set[int]]:
        """Return the members of a set or deque of the runner; None if unreadable."""
        held = self._slots.get(runner, name) or attribute(self._objects, runner, name)
        try:
            if held is None:
                return None
            if self._objects.type_name(held) == "set":
                return set(self._objects.set_items(held))
            return set(self._objects.deque_items(held, _MAX_TASKS))
        except (Fault, NotThat):
            return None


def _what(frames: List[Frame]) -> Optional[str]:
    """Return the trio function that the program called last: ``Event.wait``, ``sleep``; None if there is none."""
    found = None
    for frame in frames:
        if "/trio/" not in frame.code.filename:
            break
        found = frame.code.qualname or frame.code.name
    return found
