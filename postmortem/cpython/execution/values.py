"""Possible values of an expression: a small set of alternatives, read from memory as far as it is there.

An alternative (``Atom``) is a tuple whose first item says what it is:
- ``("obj", address)``: an object in memory
- ``("inst", type)``: an instance of that class that the code would make; ``("new", code, offset)``: a container likewise
- ``("method", function, atom)``: a Python function bound to an alternative; ``("code", code, closure, globals)``: a new function
- ``("cmethod", name, atom)``: a method of a type written in C; ``("builtin", name)``: a name of ``builtins``
- ``("tuple", values)``: a new tuple; ``("map", pairs)``: a new mapping of names to values; ``("many", value)``:
  something whose items are of that value
- ``("super", code, atom)``: what ``super()`` gives in that code; ``("str", text)``: a constant
- ``("name", text)``: unknown, last loaded as an attribute or global of that name; ``("name", text, code)``: as a variable
  of that code; ``("plain",)``: a number or the like, which reaches nothing

An empty value is unknown without a name.

Sources, 3.8-3.15: PyTypeObject.tp_mro (Include/cpython/object.h); Objects/funcobject.c (classmethod and staticmethod:
cm_callable, sm_callable); Objects/descrobject.c (propertyobject: prop_get); Objects/iterobject.c, listobject.c and
tupleobject.c (iterators: the sequence follows the header, or a word behind it); Modules/_collectionsmodule.c
(_tuplegetter: index).
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Tuple

from ...memory import Fault
from ..objects.attributes import Slots, attributes
from ..objects.builtins import NotThat, Objects
from ..runtime import layouts as L
from ..sync.primitives import simple_queue

Atom = Tuple[Any, ...]
Value = FrozenSet[Atom]
UNKNOWN: Value = frozenset()
PLAIN: Value = frozenset({("plain",)})
#: Most alternatives of a value; most items read of a container; most classes in an order of resolution.
MOST_ATOMS, MOST_ITEMS, _MOST_BASES = 48, 64, 64
_TP_MRO = 344
_HEADER = 16
_SCALARS = frozenset(("int", "bool", "float", "NoneType", "bytes", "complex", "ellipsis", "NotImplementedType"))
_MAX_TEXT = 80


def one_of(atoms: Iterable[Atom]) -> Value:
    """Build a value; of too many alternatives some are left out, by a fixed order."""
    found = frozenset(atoms)
    return found if len(found) <= MOST_ATOMS else frozenset(sorted(found, key=order)[:MOST_ATOMS])


def order(atom: Atom) -> Tuple[str, ...]:
    """Return what alternatives are sorted by: not all that is inside, which grows without limit in nested containers."""
    return tuple(str(part) if isinstance(part, (str, int)) else f"{len(part)}" for part in atom)


def either(*values: Value) -> Value:
    """Return a value that is one of these."""
    return one_of(atom for value in values for atom in value)


class Heap:
    """Objects in memory as values. Never raises: what cannot be read is unknown."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._slots = Slots(objects)
        self._namespaces: Dict[int, Dict[str, int]] = {}
        self._instances: Dict[int, Dict[str, int]] = {}
        self._mros: Dict[int, Tuple[int, ...]] = {}
        self._items: Dict[int, Value] = {}
        self._atoms: Dict[int, Atom] = {}
        self._kinds: Dict[int, str] = {}
        self._classes: Dict[int, bool] = {}
        self._dicts: Dict[int, int] = {}  # of classes
        self._inherited: Dict[Tuple[int, str], Optional[int]] = {}

    # ------------------------------------------------------------------ one object

    def atom(self, address: int) -> Atom:
        """Return an object as an alternative."""
        known = self._atoms.get(address)
        if known is None:
            known = self._atoms[address] = self._made(address)
        return known

    def _made(self, address: int) -> Atom:
        kind = self.kind(address)
        if kind in _SCALARS:
            return ("plain",)
        if kind == "str":
            return ("str", (self.objects.optional_text(address) or "")[:_MAX_TEXT])
        return ("obj", address)

    def value(self, address: Optional[int]) -> Value:
        """Return an object as a value; unknown for None or 0."""
        return frozenset((self.atom(address),)) if address else UNKNOWN

    def kind(self, address: int) -> str:
        """Return the name of an object's type; empty if unreadable."""
        known = self._kinds.get(address)
        if known is None:
            known = self._kinds[address] = self.objects.type_name(address) or ""
        return known

    def type_of(self, atom: Atom) -> int:
        """Return the address of the class of an object or new instance; 0 if unknown."""
        if atom[0] == "inst":
            return int(atom[1])
        if atom[0] != "obj":
            return 0
        try:
            return self.objects.type_of(atom[1]).address
        except (Fault, NotThat):
            return 0

    def called(self, type_: int) -> str:
        """Return the name of a class; empty if unreadable."""
        try:
            return self.objects.type_at(type_).name
        except (Fault, NotThat):
            return ""

    def is_class(self, address: int) -> bool:
        """Return whether an object is a class."""
        if address not in self._classes:
            try:
                self._classes[address] = bool(self.objects.type_of(address).flags & L.FLAG_TYPE)
            except (Fault, NotThat):
                self._classes[address] = False
        return self._classes[address]

    def is_written_in_python(self, type_: int) -> bool:
        """Return whether a class was made by a ``class`` statement, as far as its ``__module__`` in its dict tells."""
        return "__module__" in self.namespace_of(type_)

    def field(self, address: int, offset: int) -> int:
        """Return a word of an object; 0 if unreadable."""
        try:
            return self.objects.field(address, offset)
        except Fault:
            return 0

    # ------------------------------------------------------------------ names

    def namespace(self, address: int) -> Dict[str, int]:
        """Return the str keys of a dict; empty if unreadable."""
        if address not in self._namespaces:
            try:
                self._namespaces[address] = self.objects.text_dict(address) if address else {}
            except (Fault, NotThat):
                self._namespaces[address] = {}
        return self._namespaces[address]

    def namespace_of(self, type_: int) -> Dict[str, int]:
        """Return the dict of a class; empty if unreadable."""
        if type_ not in self._dicts:
            try:
                self._dicts[type_] = self.objects.memory.u64(type_ + self.objects.layout.tp_dict)
            except Fault:
                self._dicts[type_] = 0
        return self.namespace(self._dicts[type_])

    def mro(self, type_: int) -> Tuple[int, ...]:
        """Return the classes in which an attribute is looked up, in order; those that could be read."""
        if type_ not in self._mros:
            found: List[int] = []
            try:
                found = list(self.objects.items(self.objects.field(type_, _TP_MRO), _MOST_BASES))
            except (Fault, NotThat):
                found = [type_]
            self._mros[type_] = tuple(found)
        return self._mros[type_]

    def in_class(self, type_: int, name: str) -> Optional[int]:
        """Return a value by name from a class or its bases; None if missing."""
        key = (type_, name)
        if key not in self._inherited:
            values = (self.namespace_of(cls).get(name) for cls in self.mro(type_))
            self._inherited[key] = next((value for value in values if value), None)
        return self._inherited[key]

    def of_instance(self, address: int, name: str) -> Optional[int]:
        """Return an attribute that the object itself has, in its dict or a slot; None if missing."""
        if address not in self._instances:
            try:
                self._instances[address] = attributes(self.objects, address)
            except (Fault, NotThat):
                self._instances[address] = {}
        return self._instances[address].get(name) or self._slots.get(address, name)

    def index_of(self, getter: int) -> int:
        """Return the index that a field of a namedtuple reads."""
        return self.field(getter, _HEADER)

    def wrapped(self, descriptor: int) -> Optional[int]:
        """Return the callable in a classmethod, staticmethod or property; None if unreadable."""
        return self.field(descriptor, _HEADER) or None

    # ------------------------------------------------------------------ items

    def items(self, address: int) -> Value:
        """Return what iterating over a container gives; of a dict its values: keys rarely reach anything."""
        if address not in self._items:
            self._items[address] = UNKNOWN  # a container may hold itself
            self._items[address] = one_of(map(self.atom, self._addresses(address)))
        return self._items[address]

    def sequence(self, address: int) -> Sequence[Value]:
        """Return the items of a tuple or list in order; empty for others."""
        try:
            return [self.value(item) for item in self.objects.first_items(address, MOST_ITEMS)]
        except (Fault, NotThat):
            return ()

    def entries(self, address: int) -> Iterator[Tuple[Value, Value]]:
        """Yield (key, value) of a dict, at most MOST_ITEMS."""
        try:
            for count, (key, value) in enumerate(self.objects.dict_items(address)):
                if count >= MOST_ITEMS:
                    return
                yield self.value(key), self.value(value)
        except (Fault, NotThat):
            return

    def _addresses(self, address: int) -> List[int]:
        found: List[int] = []
        try:
            for item in self._iterated(address):
                found.append(item)
                if len(found) >= MOST_ITEMS:
                    break
        except (Fault, NotThat):
            pass
        return found

    def _iterated(self, address: int) -> Iterable[int]:
        """Return the addresses of the items. Raises Fault or NotThat."""
        objects, kind = self.objects, self.kind(address)
        flags = objects.type_of(address).flags
        if flags & (L.FLAG_LIST | L.FLAG_TUPLE):
            return objects.first_items(address, MOST_ITEMS)
        if flags & L.FLAG_DICT:
            return (value for _key, value in objects.dict_items(address))
        if kind in ("set", "frozenset"):
            return objects.set_items(address)
        if kind == "collections.deque":
            return objects.deque_items(address, MOST_ITEMS)
        if kind in ("list_iterator", "tuple_iterator"):  # seqiterobject: it_index before it_seq
            return self._iterated(objects.field(address, _HEADER + 8))
        if kind in ("dict_values", "dict_items", "dict_keys", "dict_valueiterator", "dict_itemiterator", "enumerate"):
            return self._iterated(objects.field(address, _HEADER + (8 if kind == "enumerate" else 0)))
        if kind == "_queue.SimpleQueue":
            queue = simple_queue(objects, address)
            return queue.items or () if queue is not None else ()
        return ()
