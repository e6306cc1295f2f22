"""Attributes of instances: the ``__dict__``, wherever a release stores it, and the members of ``__slots__``.

- 3.11: a values array and a dict pointer *before* the object.
- 3.12: one tagged pointer there.
- 3.13: values inline after the object, the dict pointer before it.
- Types without managed dicts: at ``tp_dictoffset``.
- Slots: a member descriptor of the class or of a base of it gives the offset (PyMemberDescrObject.d_member at 40,
  PyMemberDef.offset at 16: Include/cpython/descrobject.h and structmember.h, 3.8-3.15).

Sources: Objects/dictobject.c, Include/internal/pycore_object.h.
"""

from __future__ import annotations

import itertools
from typing import Dict, Iterator, Optional, Tuple

from ...memory import Fault
from ..runtime import layouts as L
from .builtins import NotThat, Objects, TypeInfo

#: PyTypeObject.tp_itemsize (Include/cpython/object.h)
TP_ITEMSIZE = 40
_MEMBER, _OFFSET = 40, 16
_MOST_BASES, _MOST_NAMES = 16, 5_000


def attributes(objects: Objects, address: int) -> Dict[str, int]:
    """Return name → address of the instance attributes, slots included; empty if there are none. Raises Fault or NotThat."""
    info = objects.type_of(address)
    found = _of_dict(objects, address, info)
    for name, offset in members(objects, info):
        value = objects.memory.u64(address + offset)
        if value:
            found.setdefault(name, value)
    return found


def members(objects: Objects, info: TypeInfo) -> Tuple[Tuple[str, int], ...]:
    """Return (name, offset) of the slots of a class and its bases; cached. What cannot be read is left out."""
    known = objects.members.get(info.address)
    if known is None:
        known = ()
        try:
            if info.flags & L.FLAG_HEAP:
                known = tuple(_members(objects, info))
        except (Fault, NotThat):
            pass
        objects.members[info.address] = known
    return known


def _members(objects: Objects, info: TypeInfo) -> Iterator[Tuple[str, int]]:
    for _ in range(_MOST_BASES):
        namespace = objects.memory.u64(info.address + objects.layout.tp_dict)
        for name, value in itertools.islice(objects.text_dict(namespace).items(), _MOST_NAMES) if namespace else ():
            if objects.type_name(value) == "member_descriptor":
                offset = objects.memory.u64(objects.field(value, _MEMBER) + _OFFSET)
                if 0 < offset < info.basicsize:
                    yield name, offset
        if not info.base:
            return
        info = objects.type_at(info.base)
        if not info.flags & L.FLAG_HEAP:
            return


def _of_dict(objects: Objects, address: int, info: TypeInfo) -> Dict[str, int]:
    """Return the attributes in an instance's ``__dict__``. Raises Fault or NotThat."""
    if info.flags & L.FLAG_MANAGED_DICT:
        return _managed(objects, address, info)
    offset = info.dictoffset
    if offset < 0:
        offset += _size(objects, address, info)
    if 0 < offset < 1 << 40:
        found = objects.memory.u64(address + offset)
        return objects.text_dict(found) if found else {}
    return {}


def _size(objects: Objects, address: int, info: TypeInfo) -> int:
    """Return the size in bytes of an object of variable length (_PyObject_VAR_SIZE). Raises Fault or NotThat.

    Subclasses of tuple and int store their dict after the items, at an offset from the end (Objects/object.c,
    _PyObject_GetDictPtr, up to 3.11).
    """
    itemsize = objects.field(info.address, TP_ITEMSIZE)
    items = abs(objects.memory.i64(address + objects.layout.ob_size))  # an int's sign is that of its size
    if itemsize > 1 << 10 or items > 1 << 32:
        raise NotThat("implausibly long")
    return (info.basicsize + items * itemsize + 7) & ~7


def attribute(objects: Objects, address: int, name: str) -> Optional[int]:
    """Return the address of one instance attribute; None if missing or unreadable."""
    try:
        return attributes(objects, address).get(name)
    except (Fault, NotThat):
        return None


def _managed(objects: Objects, address: int, info: TypeInfo) -> Dict[str, int]:
    """Return the attributes of an object with a managed dict. Raises Fault or NotThat."""
    memory, layout = objects.memory, objects.layout
    found = memory.u64(address + layout.managed_dict)
    if layout.inline_values:
        if found:
            return objects.text_dict(found)
        if not info.flags & L.FLAG_INLINE_VALUES:
            return {}
        values = address + info.basicsize
        return _from_values(objects, info, values + layout.dict_values_start) if memory.u8(values + 3) else {}
    if layout.values_before_object:
        values = memory.u64(address - 32)
        if values:
            return _from_values(objects, info, values)
        return objects.text_dict(found) if found else {}
    if found & 1:
        return _from_values(objects, info, found + 1)
    return objects.text_dict(found) if found else {}


def _from_values(objects: Objects, info: TypeInfo, values: int) -> Dict[str, int]:
    """Combine names from the type's shared keys with values from the array. Raises Fault or NotThat."""
    keys = objects.memory.u64(info.address + objects.layout.ht_cached_keys)
    if not keys:
        raise NotThat("a type without shared keys")
    found: Dict[str, int] = {}
    for key, value in objects._table_items(keys, values):
        name = objects.key_text(key)
        if name is not None:
            found[name] = value
    return found


def class_value(objects: Objects, address: int, name: str) -> Optional[int]:
    """Return a value by name from an object's class or its bases; None if missing or unreadable."""
    try:
        info = objects.type_of(address)
        for _ in range(32):
            namespace = objects.memory.u64(info.address + objects.layout.tp_dict)
            value = objects.lookup(namespace, name) if namespace else None
            if value is not None or not info.base:
                return value
            info = objects.type_at(info.base)
    except (Fault, NotThat):
        pass
    return None


class Slots:
    """Values of ``__slots__`` members, found through the class's member descriptors.

    Offsets are cached, since objects with slots are numerous.

    Sources: PyMemberDescrObject (d_member at 40); PyMemberDef (offset at 16).
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._offsets: Dict[Tuple[int, str], Optional[int]] = {}

    def get(self, address: int, name: str) -> Optional[int]:
        """Return the address of a slot's value; None if missing or unreadable."""
        try:
            key = (self._objects.type_of(address).address, name)
            if key not in self._offsets:
                self._offsets[key] = self._offset(address, name)
            offset = self._offsets[key]
            return None if offset is None else self._objects.memory.u64(address + offset) or None
        except (Fault, NotThat):
            return None

    def _offset(self, address: int, name: str) -> Optional[int]:
        """Return the offset of a slot; None if the class has no such member. Raises Fault or NotThat."""
        descriptor = class_value(self._objects, address, name)
        if descriptor is None or self._objects.type_name(descriptor) != "member_descriptor":
            return None
        offset = self._objects.memory.u64(self._objects.field(descriptor, 40) + 16)
        return offset if offset < self._objects.type_of(address).basicsize else None
