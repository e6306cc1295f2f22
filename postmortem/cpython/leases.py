"""What programs borrow from the pools of well-known libraries: an object that says itself from which pool it is.

Such a pool is a queue of idle connections. Who has one in a local variable has taken it out, whatever function did that
for him. Sources: urllib3 1.21-2.5, response.py (HTTPResponse, whose ``_connection`` is None once it is given back),
connectionpool.py (``pool``); SQLAlchemy 1.4-2.0, pool/base.py (_ConnectionFairy, whose ``_connection_record`` is None once it
is given back), pool/impl.py (QueuePool._pool), engine/base.py (Connection); requests 2.x, models.py (Response.raw).
"""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ..memory import Fault
from .attributes import Slots, attributes
from .objects import NotThat, Objects


class _Kind(NamedTuple):
    item: str  # its attribute that is set as long as it is out
    queue: Tuple[str, ...]  # the way from it to the queue of the pool


_KINDS: Dict[str, _Kind] = {
    "HTTPResponse": _Kind("_connection", ("_pool", "pool")),
    "_ConnectionFairy": _Kind("_connection_record", ("_pool", "_pool")),
}
#: What is around one: name of the class → its attribute.
_AROUND: Dict[str, str] = {"Response": "raw", "Connection": "_dbapi_connection"}


class Lease(NamedTuple):
    address: int  # of what was borrowed
    queue: int


class Leases:
    """Nothing here raises. Names of classes are not unique: the caller compares the queue."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._slots = Slots(objects)

    def of(self, value: int) -> Iterator[Lease]:
        """What a value has borrowed: itself, or what it is around."""
        name = self._name(value)
        if name in _AROUND:
            inner = self._value(value, _AROUND[name])
            value, name = inner or 0, self._name(inner or 0)
        kind = _KINDS.get(name)
        if kind is None or self._value(value, kind.item) is None:
            return
        found: Optional[int] = value
        for step in kind.queue:
            found = self._value(found, step) if found else None
        if found:
            yield Lease(value, found)

    def _name(self, value: int) -> str:
        name = self._objects.type_name(value) if value else None
        return (name or "").rpartition(".")[2]

    def _value(self, address: int, name: str) -> Optional[int]:
        """None also for what is None."""
        try:
            found = attributes(self._objects, address).get(name)
        except (Fault, NotThat):
            found = None
        found = found or self._slots.get(address, name)
        return None if not found or self._objects.type_name(found) == "NoneType" else found
