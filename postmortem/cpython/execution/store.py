"""Values that evaluated code has stored, beside those in memory: attributes, items of containers, globals.

Values only accumulate, whatever the order of the stores: an item that is put anywhere may be taken out later.
"""

from __future__ import annotations

from typing import Dict, List, Sequence, Set, Tuple

from .values import MOST_ITEMS, UNKNOWN, Atom, Heap, Value, either, one_of

_MOST_NESTED = 4


class Store:
    """Attributes and items of objects in memory, and of new ones."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self.attributes: Dict[Tuple[Atom, str], Value] = {}
        self.globals: Dict[Tuple[int, str], Value] = {}
        self._items: Dict[Atom, Value] = {}
        self._ordered: Dict[Atom, List[Value]] = {}  # new lists, as far as their order is known

    def items(self, value: Value, depth: int = 0) -> Value:
        """Return what iterating over a value, or taking an item out of it, gives."""
        found: Set[Atom] = set()
        for atom in value:
            kind = atom[0]
            if kind == "obj":
                found |= self.heap.items(atom[1])
                if not found:
                    data = self.heap.of_instance(atom[1], "data")  # WeakSet, UserDict, UserList
                    if data is not None and depth < _MOST_NESTED:
                        found |= self.items(self.heap.value(data), depth + 1)
            elif kind == "tuple":
                for each in atom[1]:
                    found |= each
            elif kind == "map":
                for _name, each in atom[1]:
                    found |= each
            elif kind == "many":
                found |= atom[1]
            elif kind == "name":
                found.add(atom)
            found |= self._items.get(atom, UNKNOWN)
        return one_of(found)

    def put(self, container: Value, value: Value) -> None:
        """Note that a value is put into a container."""
        for atom in container:
            if atom[0] in ("obj", "new", "inst") and value:
                self._items[atom] = either(self._items.get(atom, UNKNOWN), value)

    def item(self, value: Value, key: Value) -> Value:
        """Return an item by its key, as far as both are known."""
        texts = {atom[1] for atom in key if atom[0] == "str"}
        found: List[Value] = []
        for atom in value:
            if atom[0] == "obj" and texts and self.heap.kind(atom[1]) == "dict" and len(key) == len(texts):
                known = [self.heap.value(self.heap.namespace(atom[1]).get(text)) for text in texts]
                found += known
                found.append(self._items.get(atom, UNKNOWN))
            elif atom[0] == "map" and texts:
                found += [each for name, each in atom[1] if name in texts]
            else:
                found.append(self.items(frozenset((atom,))))
        return either(*found)

    def spread(self, value: Value, count: int) -> List[Value]:
        """Return the values of an unpacked sequence."""
        result: List[Value] = [UNKNOWN] * count
        for atom in value:
            parts: Sequence[Value] = atom[1] if atom[0] == "tuple" else self._ordered.get(atom, ())
            if atom[0] == "obj":
                parts = self.heap.sequence(atom[1])
            if len(parts) != count:
                parts = [self.items(frozenset((atom,)))] * count
            result = [either(one, other) for one, other in zip(result, parts)]
        return result

    def made(self, key: Atom, parts: Sequence[Value]) -> Value:
        """Return a new list or set with these items."""
        self._ordered[key] = list(parts)[:MOST_ITEMS]
        self._items[key] = either(self._items.get(key, UNKNOWN), *parts)
        return frozenset((key,))

    def extend(self, container: Value, value: Value) -> None:
        """Add the items of a value to a new list, in order as far as that is known."""
        for atom in container:
            known = self._ordered.get(atom)
            if known is not None and len(known) < MOST_ITEMS:
                known += self.positions(value)
        self.put(container, self.items(value))

    def positions(self, value: Value) -> List[Value]:
        """Return the items of a sequence in order; those of alternatives together."""
        rows: List[Sequence[Value]] = []
        for atom in value:
            if atom[0] == "tuple":
                rows.append(atom[1])
            elif atom[0] in ("new",):
                rows.append(self._ordered.get(atom, ()))
            elif atom[0] == "obj":
                rows.append(self.heap.sequence(atom[1]))
        longest = max(map(len, rows), default=0)
        return [either(*(row[index] for row in rows if index < len(row))) for index in range(min(longest, MOST_ITEMS))]

    def store(self, target: Value, name: str, value: Value) -> None:
        """Note that an attribute is stored."""
        for atom in target:
            if atom[0] in ("obj", "inst"):
                known = self.attributes.get((atom, name), UNKNOWN)
                self.attributes[atom, name] = either(known, value or frozenset((("name", name),)))
