"""Synchronous code that a coroutine runs in a greenlet of its own, as SQLAlchemy does for its asyncio engines.

The coroutine keeps the greenlet in a local variable and switches to it; the greenlet, to wait, hands an awaitable back, which
the coroutine awaits on its behalf. The frames between the two are on no stack: they belong to the task, between the
awaited coroutine and the one that keeps the greenlet.

Source: sqlalchemy/util/concurrency.py, ``greenlet_spawn`` (``context``), of 2.1; _concurrency_py3k.py of 1.4 and 2.0.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Set

from ...cpython.frames.frame import Frame
from ...cpython.state.interpreter import Python
from ..asyncio.tasks import TaskState
from .saved import GreenletState
from .switching import Switched

_MOST_FRAMES = 100


def bridged(python: Python, switched: Switched, tasks: Sequence[TaskState]) -> Switched:
    """Insert the frames of greenlets in which suspended tasks run code; return the other greenlets. Never raises."""
    taken: Set[int] = set()
    for task in tasks if switched.states else ():
        if task.state == "pending":
            task.frames = _inserted(python, switched.states, task.frames, taken)
    return switched._replace(tasks=[task for task in switched.tasks if task.address not in taken])


def _inserted(
    python: Python, states: Dict[int, GreenletState], frames: Sequence[Frame], taken: Set[int]
) -> List[Frame]:
    found: List[Frame] = []
    for depth, frame in enumerate(frames):
        inner = _kept(python, states, frame) if depth < _MOST_FRAMES else None
        if inner is not None and inner.address not in taken:
            taken.add(inner.address)
            found += inner.frames
        found.append(frame)
    return found


def _kept(python: Python, states: Dict[int, GreenletState], frame: Frame) -> Optional[GreenletState]:
    """Return the suspended greenlet that a coroutine keeps in a variable and switches to; None if there is none."""
    if "switch" not in frame.code.used_names():
        return None
    for _name, value in python.frames.locals(frame):
        state = states.get(value)
        if state is not None and state.phase == "suspended" and not state.main:
            return state
    return None
