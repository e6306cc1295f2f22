"""The attributes of instances: the ``__dict__`` wherever a version keeps it.

3.11: a values array and a dict pointer *before* the object; 3.12: one tagged pointer there; 3.13: values inline
after the object, the dict pointer before it (Objects/dictobject.c, Include/internal/pycore_object.h). Types
without managed dicts have it at ``tp_dictoffset``.
"""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from ...memory import Fault
from ..runtime import layouts as L
from .builtins import NotThat, Objects, TypeInfo

#: PyTypeObject.tp_itemsize (Include/cpython/object.h)
TP_ITEMSIZE = 40


def attributes(objects: Objects, address: int) -> Dict[str, int]:
    """name → address of the instance attributes; empty when it has none. Raises Fault or NotThat."""
    info = objects.type_of(address)
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
    """Bytes of an object whose length varies (_PyObject_VAR_SIZE): subclasses of tuple and int keep their dict behind
    the items, at an offset that counts from the end (Objects/object.c, _PyObject_GetDictPtr, up to 3.11)."""
    itemsize = objects.field(info.address, TP_ITEMSIZE)
    items = abs(objects.memory.i64(address + objects.layout.ob_size))  # an int's sign is its length's
    if itemsize > 1 << 10 or items > 1 << 32:
        raise NotThat("longer than can be believed")
    return (info.basicsize + items * itemsize + 7) & ~7


def attribute(objects: Objects, address: int, name: str) -> Optional[int]:
    """One instance attribute, or None when it is not there or cannot be read."""
    try:
        return attributes(objects, address).get(name)
    except (Fault, NotThat):
        return None


def _managed(objects: Objects, address: int, info: TypeInfo) -> Dict[str, int]:
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
    """Names come from the type's shared keys, values from the array."""
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
    """What the class of an object, or one of its bases, has under a name; None when it is not there."""
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
    """Values of ``__slots__`` members, found through the class's member descriptors (PyMemberDescrObject: d_member at 40;
    PyMemberDef: offset at 16). Their offsets are kept, for objects with slots come by the thousands."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._offsets: Dict[Tuple[int, str], Optional[int]] = {}

    def get(self, address: int, name: str) -> Optional[int]:
        """The value's address; None when there is none, or it cannot be read."""
        try:
            key = (self._objects.type_of(address).address, name)
            if key not in self._offsets:
                self._offsets[key] = self._offset(address, name)
            offset = self._offsets[key]
            return None if offset is None else self._objects.memory.u64(address + offset) or None
        except (Fault, NotThat):
            return None

    def _offset(self, address: int, name: str) -> Optional[int]:
        descriptor = class_value(self._objects, address, name)
        if descriptor is None or self._objects.type_name(descriptor) != "member_descriptor":
            return None
        offset = self._objects.memory.u64(self._objects.field(descriptor, 40) + 16)
        return offset if offset < self._objects.type_of(address).basicsize else None
