"""Twisted's Deferreds, and its locks, semaphores and queues, which keep the Deferreds of their waiters in ``waiting``.

A Deferred keeps in ``callbacks`` (``_callbacks`` since 25.5) pairs of (function, arguments, keywords), for results and for
failures.

Source: twisted/internet/defer.py of 18.9 to 26.10. ``locked`` is an attribute of the class until a lock is acquired.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Tuple

from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...memory import Fault
from ..asyncio.primitives import Primitive, PrimitivesByAddress

DEFER = "twisted.internet.defer"
_CALLBACKS = ("_callbacks", "callbacks")
_MOST_CALLBACKS = 1_000


def deferred_calls(parts: Parts, deferred: int) -> List[Tuple[int, Tuple[int, ...]]]:
    """Return the functions that a Deferred calls with its result, and their further arguments. Never raises."""
    values = parts.attributes(deferred)
    listed = next((values[name] for name in _CALLBACKS if name in values), 0)
    found = []
    for pair in (parts.items(listed, _MOST_CALLBACKS) or ()) if listed else ():
        first = (parts.items(pair) or (0,))[0]
        call = (parts.items(first) or ()) if first else ()
        if call:
            found.append((call[0], (parts.items(call[1]) or ()) if len(call) > 1 else ()))
    return found


class TwistedPrimitives(PrimitivesByAddress):
    """Primitives of Twisted; public methods never raise."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.objects)
        self._parts = parts
        self._readers: Dict[int, Optional[_Reader]] = {}  # by class

    def waiting(self, address: int) -> Optional[int]:
        """Return the list of the Deferreds that wait for a primitive; None for any other object."""
        return self._parts.attributes(address).get("waiting") if self._reader(address) is not None else None

    def _at(self, address: int) -> Optional[Primitive]:
        reader = self._reader(address)
        values = self._parts.attributes(address) if reader is not None else {}
        return reader(self, address, values) if reader is not None and "waiting" in values else None

    def _reader(self, address: int) -> Optional[_Reader]:
        kind = self._parts.type_of(address)
        if kind is None:
            return None
        if kind not in self._readers:
            names = [name_of(self._parts, each) for each in self._parts.classes(kind)]
            self._readers[kind] = next((_READERS[name] for name in names if name in _READERS), None)
        return self._readers[kind]

    def _lock(self, address: int, values: Mapping[str, int]) -> Primitive:
        locked = bool(self._objects.integer_or_none(values.get("locked")))
        return Primitive(address, "lock", locked, library="twisted", called="DeferredLock")

    def _semaphore(self, address: int, values: Mapping[str, int]) -> Primitive:
        number = self._objects.integer_or_none
        left, limit = number(values.get("tokens")), number(values.get("limit"))
        return Primitive(address, "semaphore", None, left, limit, library="twisted", called="DeferredSemaphore")

    def _queue(self, address: int, values: Mapping[str, int]) -> Primitive:
        items = self._objects.length_or_none(values.get("pending"))
        size = self._objects.integer_or_none(values.get("size")) or 0
        return Primitive(address, "queue", None, items, size, library="twisted", called="DeferredQueue")


def name_of(parts: Parts, class_: int) -> str:
    """Return the name of a class of twisted.internet.defer; empty for all others. Never raises."""
    try:
        return parts.objects.type_at(class_).name if parts.module(class_) == DEFER else ""
    except (Fault, NotThat):
        return ""


_Reader = Callable[[TwistedPrimitives, int, Mapping[str, int]], Primitive]
_READERS: Dict[str, _Reader] = {
    "DeferredLock": TwistedPrimitives._lock,
    "DeferredSemaphore": TwistedPrimitives._semaphore,
    "DeferredQueue": TwistedPrimitives._queue,
}
