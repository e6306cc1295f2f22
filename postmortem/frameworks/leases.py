"""What programs borrow from the pools of well-known libraries: an object that says itself from which pool it is.

Such a pool is a queue of idle connections. Who has one in a local variable has taken it out, whatever function did that
for him. Sources: urllib3 1.21-2.5, response.py (HTTPResponse, whose ``_connection`` is None once it is given back),
connectionpool.py (``pool``); SQLAlchemy 1.4-2.0, pool/base.py (_ConnectionFairy, whose ``_connection_record`` is None once it
is given back), pool/impl.py (QueuePool._pool), engine/base.py (Connection); requests 2.x, models.py (Response.raw).

Other pools count what is out and let those who want more wait for a condition of theirs (DBUtils' PooledDB). What they lend
refers to them, and there are as many such things as the pool allows.
"""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Iterator, NamedTuple, Optional, Set, Tuple

from ..cpython.objects.attributes import Slots, attributes
from ..cpython.objects.builtins import NotThat, Objects
from ..memory import Fault


class _Kind(NamedTuple):
    item: str  # its attribute that is set as long as it is out
    queue: Tuple[str, ...]  # the way from it to the queue of the pool


_KINDS: Dict[str, _Kind] = {
    "HTTPResponse": _Kind("_connection", ("_pool", "pool")),
    "_ConnectionFairy": _Kind("_connection_record", ("_pool", "_pool")),
}
#: What is around one: name of the class → its attribute.
_AROUND: Dict[str, str] = {"Response": "raw", "Connection": "_dbapi_connection"}


#: Parts of names that pools give to how much they lend at most.
_LIMITS = ("max", "limit", "size", "capacity")
_MOST_ATTRIBUTES, _MOST_KNOWN = 60, 20_000


class Lease(NamedTuple):
    address: int  # of what was borrowed
    queue: int  # or the condition on which those wait who want more


class Loan(NamedTuple):
    """Something that may have been borrowed from a pool that has a condition."""

    address: int
    kind: int  # address of its class
    pool: int
    condition: int


class Leases:
    """Nothing here raises. Names of classes are not unique: the caller compares the queue."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._slots = Slots(objects)
        self._known: Dict[int, FrozenSet[int]] = {}

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

    def loan(self, value: int, conditions: Collection[int]) -> Optional[Loan]:
        """Does a value refer to an object that has one of these conditions? Not that object itself."""
        own = self._attributes(value)
        if not own or not own.isdisjoint(conditions):
            return None
        for pool in own:
            for condition in conditions:
                if pool != value and condition in self._attributes(pool):
                    return Loan(value, self._objects.type_of(value).address, pool, condition)
        return None

    def out(self, things: Collection[int]) -> Set[int]:
        """Without those that were given back: they have lost something (it is None) that others of their class have."""
        lost = {thing: self._lost(thing) for thing in things}
        common = set.intersection(*lost.values()) if lost else set()
        return {thing for thing in things if lost[thing] == common}

    def _lost(self, thing: int) -> Set[str]:
        return {name for name, value in self._read(thing).items() if self._objects.type_name(value) == "NoneType"}

    def lends_at_most(self, pool: int, count: int) -> bool:
        """Is this number one that the pool has as a limit?"""
        limits = [value for name, value in self._read(pool).items() if any(part in name.lower() for part in _LIMITS)]
        return any(self._objects.integer_or_none(value) == count for value in limits)

    def _attributes(self, value: int) -> FrozenSet[int]:
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
