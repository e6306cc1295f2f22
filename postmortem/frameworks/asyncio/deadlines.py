"""Effects of a loop's timers: futures that they set, events that they signal, tasks that they cancel.

A timer leads there through its callback (bound object, arguments, closure), or through a timeout object:
- asyncio.Timeout and async_timeout's: ``_task``.
- anyio's CancelScope: ``_host_task``, ``_tasks``.
- aiohttp's TimerContext: ``_tasks``.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, Optional

from ...cpython.frames.functions import Functions
from ...cpython.objects.attributes import attribute
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault
from .eventloops import Handle
from .futures import Futures
from .primitives import Primitives

_GUARDS = ("Timeout", "CancelScope", "TimerContext")
_GUARDED = ("_task", "_host_task", "_tasks")
_MAX_GUARDED = 1_000


def earlier(one: Optional[float], other: Optional[float]) -> Optional[float]:
    """Return the earlier of two times, of which None is an unknown one; None if both are unknown."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


class Deadlines:
    """Effects of the timers of one interpreter; public methods never raise."""

    def __init__(self, objects: Objects, functions: Functions, futures: Futures, primitives: Primitives) -> None:
        self._objects = objects
        self._functions = functions
        self._futures = futures
        self._primitives = primitives

    def ended(self, timers: Iterable[Handle]) -> Dict[int, Optional[float]]:
        """Map the futures, tasks and primitives that the timers end to when the first one is due.

        Keys: addresses. Values: seconds of time.monotonic(); None if unknown.
        """
        found: Dict[int, Optional[float]] = {}
        for timer in timers:
            for address in self._ends(timer):
                found[address] = earlier(found.get(address), timer.when)
        return found

    def _ends(self, timer: Handle) -> Iterator[int]:
        """Yield what a timer ends."""
        direct = [a for a in timer.arguments if self._futures.kind(a) is not None]
        if direct:  # as for asyncio.sleep
            yield from direct
            return
        reached = [*timer.arguments, *self._functions.carried(timer.callback)]
        for argument in timer.arguments:  # Tornado's timers call a callable that they have as an argument
            reached += self._functions.carried(argument)
        for address in dict.fromkeys(reached):
            yield from self._end(address)

    def _end(self, address: int) -> Iterator[int]:
        """Yield what a timer ends through one object that it reaches."""
        name = self._objects.type_name(address)
        if name is None:
            return
        if self._futures.kind(address) is not None or self._primitives.at(address) is not None:
            yield address
        elif name.split(".")[-1] in _GUARDS:
            for held in _GUARDED:
                yield from self._guarded(attribute(self._objects, address, held))

    def _guarded(self, value: Optional[int]) -> Iterator[int]:
        """Yield the tasks in an attribute of a timeout object: one task, or a collection."""
        if value is None:
            return
        if self._futures.is_task(value):
            yield value
            return
        try:
            kind = self._objects.type_name(value)
            members = self._objects.set_items(value) if kind == "set" else self._objects.items(value, _MAX_GUARDED)
            yield from (member for member in members if self._futures.is_task(member))
        except (Fault, NotThat):
            return
