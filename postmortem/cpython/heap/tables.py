"""Tables outside of their objects: of lists, dicts, sets, deques, and attribute values up to 3.12.

A place belongs to a table if the right field of a live object points to the table's beginning, and the object has the
place among its entries in use.

Sources: Objects/listobject.c, dictobject.c, setobject.c, Modules/_collectionsmodule.c, _queuemodule.c of 3.8-3.15; PyDictValues
of 3.11 and 3.12 as in ``attributes``.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from ..objects.wordsearch import WordSearch
from ..runtime import layouts as L
from ..state.interpreter import Python
from ..sync.primitives import RING_ITEMS, ring_of
from .owners import Holder, ReferenceHolders
from .slots import ITEM, KEY, Slot

#: dequeobject: leftblock, rightblock, leftindex, rightindex after ob_size; a block is a link, 64 items, a link.
_LEFT, _RIGHT = 8, 16
_BLOCK_ITEMS = 64


class Entry(NamedTuple):
    """A counted reference in a table."""

    holder: Holder
    how: Slot


_Reader = Callable[[Holder, int, int], Optional[Slot]]


class Tables:
    """Tables of live objects in one process."""

    def __init__(self, python: Python, holders: ReferenceHolders, search: WordSearch) -> None:
        self._objects = python.objects
        self._layout = python.layout
        self._allocations = holders.allocations
        self._holders = holders
        self._search = search
        layout = self._layout
        #: True for 3.12: the pointer to attribute values is tagged, one below the address.
        self._tagged = not layout.inline_values and not layout.values_before_object
        #: Offset of the table's pointer in its object → readers of such tables.
        self._readers: Dict[int, Tuple[_Reader, ...]] = {}
        for offset, reader in (
            (layout.list_items, self._in_list),
            (layout.dict_keys, self._in_keys),
            (layout.dict_values, self._in_values),
            (layout.set_table, self._in_set),
            (layout.ob_size + _LEFT, self._in_deque),
            (layout.ob_size + _RIGHT, self._in_deque),
            (RING_ITEMS, self._in_ring),
        ):
            self._readers[offset] = (*self._readers.get(offset, ()), reader)

    def owners(self, places: Sequence[int]) -> Dict[int, Entry]:
        """Return place → entry for places in tables of live objects. Raises NotThat past the deadline."""
        wanted: Dict[int, List[int]] = {}  # possible beginning of a table → places in it
        for place in places:
            self._search.check()
            for start in self._allocations.beginnings(place):
                wanted.setdefault(start, []).append(place)
                if self._tagged:
                    wanted.setdefault(start - 1, []).append(place)
        found: Dict[int, Entry] = {}
        for value, pointers in self._search.places(wanted.keys()).items() if wanted else ():
            for at in pointers:
                for place in wanted[value]:
                    entry = self._entry(at, value, place) if place not in found else None
                    if entry is not None:
                        found[place] = entry
        return found

    def _entry(self, at: int, value: int, place: int) -> Optional[Entry]:
        """Return the entry at a place; ``at``: address of ``value``, a possible pointer to the table; None if none."""
        for holder, readers in self._candidates(at):
            for read in readers:
                try:
                    how = read(holder, value, place)
                except (Fault, NotThat):
                    continue
                if how is not None:
                    return Entry(holder, how)
        return None

    def _candidates(self, at: int) -> Iterator[Tuple[Holder, Tuple[_Reader, ...]]]:
        """Yield (live object, readers) for which ``at`` may be the pointer to a table."""
        for offset, readers in self._readers.items():
            holder = self._holders.at(at - offset) if not (at - offset) & 15 else None
            if holder is not None:
                yield holder, readers
        if not self._layout.inline_values:
            offset = -32 if self._layout.values_before_object else self._layout.managed_dict
            holder = self._holders.at(at - offset) if not (at - offset) & 15 else None
            if holder is not None and holder.info.flags & L.FLAG_MANAGED_DICT:
                yield holder, (self._in_attributes,)

    # ------------------------------------------------------------------ one reader a table

    def _in_list(self, holder: Holder, table: int, place: int) -> Optional[Slot]:
        if not holder.info.flags & L.FLAG_LIST:
            return None
        count = self._objects.memory.u64(holder.address + self._layout.ob_size)
        return ITEM if (place - table) % 8 == 0 and place < table + 8 * count else None

    def _in_keys(self, holder: Holder, keys: int, place: int) -> Optional[Slot]:
        if not holder.info.flags & L.FLAG_DICT or self._values(holder):
            return None
        start, stride, count = self._objects._entries(keys)
        row, column = divmod((place - start) // 8, stride)
        if place < start or row >= count or column < stride - 2:
            return None
        key, value = self._objects.memory.words(start + 8 * (row * stride + stride - 2), 2)
        if not value:
            return None  # removed entry
        return KEY if column == stride - 2 else self._named(key)

    def _values(self, holder: Holder) -> int:
        return self._objects.memory.u64(holder.address + self._layout.dict_values)

    def _in_values(self, holder: Holder, values: int, place: int) -> Optional[Slot]:
        if not holder.info.flags & L.FLAG_DICT:
            return None
        keys = self._objects.memory.u64(holder.address + self._layout.dict_keys)
        return self._shared(keys, values + self._layout.dict_values_start, place)

    def _in_attributes(self, holder: Holder, values: int, place: int) -> Optional[Slot]:
        if not self._layout.values_before_object:
            if not values & 1:
                return None
            values += 1
        keys = self._objects.memory.u64(holder.info.address + self._layout.ht_cached_keys)
        return self._shared(keys, values + self._layout.dict_values_start, place) if keys else None

    def _shared(self, keys: int, values: int, place: int) -> Optional[Slot]:
        """Return the slot of a place in a table of values with shared keys; None if it is outside."""
        start, stride, count = self._objects._entries(keys)
        index, rest = divmod(place - values, 8)
        if rest or not 0 <= index < count:
            return None
        key = self._objects.memory.u64(start + 8 * (index * stride + stride - 2))
        name = self._objects.optional_text(key) if key else None
        return Slot("attribute", name)

    def attribute_at(self, holder: Holder, place: int) -> Slot:
        """Return the attribute slot of a place in an instance's inline values (since 3.13)."""
        try:
            keys = self._objects.memory.u64(holder.info.address + self._layout.ht_cached_keys)
            start = holder.address + holder.info.basicsize + self._layout.dict_values_start
            return (self._shared(keys, start, place) if keys else None) or Slot("attribute")
        except (Fault, NotThat):
            return Slot("attribute")

    def _in_set(self, holder: Holder, table: int, place: int) -> Optional[Slot]:
        if holder.kind != "set":
            return None
        mask = self._objects.memory.u64(holder.address + self._layout.set_mask)
        return ITEM if (place - table) % 16 == 0 and place < table + 16 * (mask + 1) else None

    def _in_deque(self, holder: Holder, block: int, place: int) -> Optional[Slot]:
        if not self._objects.is_instance(holder.address, "collections.deque"):
            return None
        start = holder.address + self._layout.ob_size
        count, left, right, first, last = self._objects.memory.words(start, 5)
        index, rest = divmod(place - block - 8, 8)
        if rest or not count or not 0 <= index < _BLOCK_ITEMS:
            return None
        return ITEM if (block != left or index >= first) and (block != right or index <= last) else None

    def _in_ring(self, holder: Holder, ring: int, place: int) -> Optional[Slot]:
        """Return the slot of a place in the ring of a SimpleQueue: one of the items that it still has."""
        if self._layout.version < (3, 13) or not self._objects.is_instance(holder.address, "_queue.SimpleQueue"):
            return None
        known, (index, rest) = ring_of(self._objects, holder.address), divmod(place - ring, 8)
        if rest or not 0 <= index < known.places:
            return None
        return ITEM if (index - known.first) % known.places < known.filled else None

    def _named(self, key: int) -> Slot:
        return Slot("value", self._objects.optional_text(key))
