"""Objects borrowed from the pools of well-known libraries.

Pools that are queues of idle connections: the borrowed object refers to its pool. A thread that has one in a local
variable holds it, whichever function took it out.
- urllib3 1.21-2.5: response.py (HTTPResponse, whose ``_connection`` is None after its return), connectionpool.py
  (``pool``).
- SQLAlchemy 1.4-2.0: pool/base.py (_ConnectionFairy, whose ``_connection_record`` is None after its return),
  pool/impl.py (QueuePool._pool), engine/base.py (Connection).
- requests 2.x: models.py (Response.raw).

Pools with a counter and a condition (DBUtils' PooledDB): a borrowed object refers to its pool; when borrowers wait, as
many objects are out as the pool's limit allows.
"""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Iterator, NamedTuple, Optional, Set, Tuple

from ..cpython.objects.attributes import Slots, attributes
from ..cpython.objects.builtins import NotThat, Objects
from ..memory import Fault


class _Kind(NamedTuple):
    """Attributes of a borrowed object."""

    item: str  # attribute that is not None while borrowed
    queue: Tuple[str, ...]  # attributes that lead to the pool's queue


_KINDS: Dict[str, _Kind] = {
    "HTTPResponse": _Kind("_connection", ("_pool", "pool")),
    "_ConnectionFairy": _Kind("_connection_record", ("_pool", "_pool")),
}
#: Wrapper class of a borrowed object → attribute that holds the object.
_AROUND: Dict[str, str] = {"Response": "raw", "Connection": "_dbapi_connection"}


#: Parts of the names of attributes that limit a pool.
_LIMITS = ("max", "limit", "size", "capacity")
_MOST_ATTRIBUTES, _MOST_KNOWN = 60, 20_000


class Lease(NamedTuple):
    """A borrowed object of a pool that is a queue."""

    address: int  # of the borrowed object
    queue: int  # of the pool's queue, or of the condition on which borrowers wait


class Loan(NamedTuple):
    """An object that may have been borrowed from a pool with a condition."""

    address: int
    kind: int  # address of its class
    pool: int
    condition: int


class Leases:
    """Borrowed objects among values; public methods never raise.

    Class names are not unique: the caller must compare the queue.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._slots = Slots(objects)
        self._known: Dict[int, FrozenSet[int]] = {}

    def of(self, value: int) -> Iterator[Lease]:
        """Yield the lease of a value that is a borrowed object or wraps one."""
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

    def loan(self, value: int, conditions: Collection[int]) -> Optional[Loan]:
        """Return the loan if a value refers to a pool that has one of these conditions, and is no pool itself."""
        own = self._attributes(value)
        if not own or not own.isdisjoint(conditions):
            return None
        for pool in own:
            for condition in conditions:
                if pool != value and condition in self._attributes(pool):
                    return Loan(value, self._objects.type_of(value).address, pool, condition)
        return None

    def out(self, things: Collection[int]) -> Set[int]:
        """Return the things that are still borrowed.

        A returned one has an attribute set to None that others of its class do not.
        """
        lost = {thing: self._lost(thing) for thing in things}
        common = set.intersection(*lost.values()) if lost else set()
        return {thing for thing in things if lost[thing] == common}

    def _lost(self, thing: int) -> Set[str]:
        """Return the names of a thing's attributes that are None."""
        return {name for name, value in self._read(thing).items() if self._objects.type_name(value) == "NoneType"}

    def lends_at_most(self, pool: int, count: int) -> bool:
        """Return whether an attribute of the pool that looks like a limit equals ``count``."""
        limits = [value for name, value in self._read(pool).items() if any(part in name.lower() for part in _LIMITS)]
        return any(self._objects.integer_or_none(value) == count for value in limits)

    def _attributes(self, value: int) -> FrozenSet[int]:
        """Return a value's attribute values, cached; empty beyond _MOST_KNOWN."""
        if value not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                return frozenset()
            self._known[value] = frozenset(list(self._read(value).values())[:_MOST_ATTRIBUTES])
        return self._known[value]

    def _read(self, value: int) -> Dict[str, int]:
        try:
            return attributes(self._objects, value)
        except (Fault, NotThat):
            return {}

    def _name(self, value: int) -> str:
        """Return the unqualified class name of a value; empty if unknown."""
        name = self._objects.type_name(value) if value else None
        return (name or "").rpartition(".")[2]

    def _value(self, address: int, name: str) -> Optional[int]:
        """Return an attribute; None if missing or None."""
        try:
            found = attributes(self._objects, address).get(name)
        except (Fault, NotThat):
            found = None
        found = found or self._slots.get(address, name)
        return None if not found or self._objects.type_name(found) == "NoneType" else found
