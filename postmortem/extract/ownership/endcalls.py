"""Callables that run when a task ends: callbacks of asyncio's tasks and of Twisted's Deferreds, links of gevent's greenlets.

gevent keeps links in a list that is a field of the greenlet (gevent/greenlet.py, 20.12-26.9): callables, or ``SpawnedLink``
objects, one field of which is a callable.
"""

from __future__ import annotations

import itertools
from typing import Iterator, Tuple

from ...cpython.execution.machine import CALLABLES
from ...cpython.frames.functions import Functions
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...frameworks.asyncio.futures import Futures
from ...frameworks.asyncio.tasks import TaskState
from ...frameworks.greenlet.structs import Structs
from ...frameworks.twisted.primitives import deferred_calls
from ...memory import Fault

_LINK = "SpawnedLink"
_MOST = 50


class EndCalls:
    """Reads what is called when tasks and greenlets end; methods never raise."""

    def __init__(self, python: Python) -> None:
        self._objects, self._structs = python.objects, Structs(python)
        self._parts = Parts(python.objects)
        self._futures = Futures(python.objects, Functions(python.frames), python.objects.layout)

    def of(self, task: TaskState) -> Tuple[int, ...]:
        """Return the addresses of at most ``_MOST`` callables that run when a task or greenlet ends."""
        if task.greenlet:
            return tuple(itertools.islice(self._links(task.address), _MOST))
        try:
            if task.fires and self._futures.kind(task.fires) is None:
                return tuple(called for called, _arguments in deferred_calls(self._parts, task.fires)[:_MOST])
            return tuple(self._futures.callbacks(task.fires or task.address)[:_MOST])
        except (Fault, NotThat):
            return ()

    def _links(self, greenlet: int) -> Iterator[int]:
        """Yield the callables among a greenlet's links."""
        for container in self._structs.containers(greenlet):
            for item in self._structs.members(container):
                linked = (self._objects.type_name(item) or "").endswith(_LINK)
                words = self._structs.words(item) if linked else (item,)
                yield from (word for word in words if word and self._objects.type_name(word) in CALLABLES)
