"""trio's locks, events, conditions, semaphores, limiters, parking lots and channels.

- Lock and StrictFIFOLock record their owner, a task, in ``_owner``; CapacityLimiter records its borrowers, tasks or any
  other objects, in ``_borrowers``. A Semaphore records nobody.
- A class counts by its name and module: trio rewrites ``__module__`` of what is public to ``trio``.

Sources: trio/_sync.py, _channel.py and _core/_parking_lot.py of 0.20-0.35: some classes have slots, others a ``__dict__``.
"""

from __future__ import annotations

import math
from typing import Callable, Dict, Mapping, Optional, Tuple

from ...cpython.frames.frame import Frames
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...memory import Fault
from ..asyncio.primitives import Primitive, PrimitivesByAddress
from ..channels import channel

_MOST_BORROWERS = 10_000


class TrioPrimitives(PrimitivesByAddress):
    """Primitives of trio; public methods never raise."""

    def __init__(self, frames: Frames, parts: Parts) -> None:
        super().__init__(frames.objects)
        self._frames = frames
        self._parts = parts

    def _at(self, address: int) -> Optional[Primitive]:
        name = (self._objects.type_name(address) or "").rpartition(".")[2]
        reader = _READERS.get(name)
        kind = self._parts.type_of(address) if reader is not None else None
        if reader is None or kind is None or self._parts.module(kind).partition(".")[0] != "trio":
            return None
        return reader(self, address, name, self._parts.attributes(address))

    # ------------------------------------------------------------------ one class each

    def _lock(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        if "_lot" not in values or "_owner" not in values:
            return None
        owner = self._given(values["_owner"])
        ended = self._has_ended(owner) if owner is not None else None
        return Primitive(
            address, "lock", owner is not None, owner=owner, library="trio", called=name, owner_ended=ended
        )

    def _has_ended(self, task: int) -> Optional[bool]:
        """Return whether a task's coroutine has ended; None if unreadable."""
        coroutine = self._parts.attributes(task).get("coro")
        try:
            return None if coroutine is None else self._frames.generator(coroutine).state == "finished"
        except (Fault, NotThat):
            return None

    def _semaphore(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        if "_lot" not in values or "_value" not in values:
            return None
        number = self._objects.integer_or_none
        left, limit = number(values["_value"]), number(values.get("_max_value"))
        return Primitive(address, "semaphore", None, left, limit, library="trio", called=name)

    def _limiter(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        borrowers = values.get("_borrowers")
        try:
            holders = tuple(self._objects.set_items(borrowers))[:_MOST_BORROWERS] if borrowers else None
        except (Fault, NotThat):
            holders = None
        if holders is None:
            return None
        try:
            total = self._objects.number(values.get("_total_tokens", 0))
        except (Fault, NotThat, OverflowError):
            total = math.inf
        limit = int(total) if math.isfinite(total) else None
        left = max(0, limit - len(holders)) if limit is not None else None
        return Primitive(address, "semaphore", None, left, limit, library="trio", called=name, holders=holders)

    def _event(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        if "_tasks" not in values and "_lot" not in values:
            return None
        flag = self._objects.integer_or_none(values.get("_flag"))
        return Primitive(address, "event", None, flag, library="trio", called=name)

    def _condition(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        if "_lot" not in values:
            return None
        return Primitive(address, "condition", inner=self._given(values.get("_lock")), library="trio", called=name)

    def _parking_lot(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        return Primitive(address, "condition", library="trio", called=name) if "_parked" in values else None

    def _channel(self, address: int, _name: str, _values: Mapping[str, int]) -> Optional[Primitive]:
        return channel(self._objects, self._parts, address, "trio")

    def _queue(self, address: int, name: str, values: Mapping[str, int]) -> Optional[Primitive]:
        if "_lot" not in values or "_data" not in values:
            return None
        items = self._objects.length_or_none(values["_data"])
        return Primitive(address, "queue", None, items, 0, library="trio", called=name)

    def _given(self, address: Optional[int]) -> Optional[int]:
        return address if address and self._objects.type_name(address) != "NoneType" else None


_Reader = Callable[[TrioPrimitives, int, str, Mapping[str, int]], Optional[Primitive]]
_READERS: Dict[str, _Reader] = {
    "Lock": TrioPrimitives._lock,
    "StrictFIFOLock": TrioPrimitives._lock,
    "Semaphore": TrioPrimitives._semaphore,
    "CapacityLimiter": TrioPrimitives._limiter,
    "Event": TrioPrimitives._event,
    "Condition": TrioPrimitives._condition,
    "ParkingLot": TrioPrimitives._parking_lot,
    "MemoryChannelState": TrioPrimitives._channel,
    "UnboundedQueue": TrioPrimitives._queue,
}
#: Functions that park a task in a primitive: (end of the file's path, function).
PARKS: Tuple[Tuple[str, str], ...] = (
    ("trio/_sync.py", "acquire"),
    ("trio/_sync.py", "acquire_on_behalf_of"),
    ("trio/_sync.py", "wait"),
    ("trio/_core/_unbounded_queue.py", "get_batch"),
    ("trio/_core/_unbounded_queue.py", "__anext__"),
    ("trio/_core/_parking_lot.py", "park"),
)
