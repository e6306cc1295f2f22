"""The parts of an object: its attributes, wherever its class stores them, and the items of a container; forwards.

- Attributes of a ``__dict__``, and slots (``attributes``).
- Items of list, tuple, set, frozenset, dict (keys and values), deque and ``queue.SimpleQueue``, and of subclasses.

What cannot be read is left out; every answer is cached and bounded.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Dict, List, Optional, Tuple

from ...memory import Fault
from ..objects.attributes import attributes
from ..objects.builtins import NotThat, Objects
from ..runtime import layouts as L
from ..sync.primitives import simple_queue

MOST_ITEMS = 2_000
_MOST_ATTRIBUTES, _MOST_BASES, _MOST_KNOWN = 80, 16, 50_000
_SETS, _DEQUE = ("set", "frozenset"), "collections.deque"


class Parts:
    """Parts of the objects of one interpreter; methods never raise."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._attributes: Dict[int, Dict[str, int]] = {}
        self._modules: Dict[int, str] = {}

    def attributes(self, address: int) -> Dict[str, int]:
        """Return name → value of an instance's attributes and slots; empty for objects without any."""
        known = self._attributes.get(address)
        if known is None:
            if len(self._attributes) >= _MOST_KNOWN:
                self._attributes.clear()
            known = self._attributes[address] = self._read(address)
        return known

    def _read(self, address: int) -> Dict[str, int]:
        found: Dict[str, int] = {}
        with contextlib.suppress(Fault, NotThat):
            found.update(itertools.islice(attributes(self.objects, address).items(), _MOST_ATTRIBUTES))
        return found

    def classes(self, type_: int) -> List[int]:
        """Return a class and its bases, as far as they inherit from one each."""
        found: List[int] = []
        try:
            while type_ and len(found) < _MOST_BASES:
                found.append(type_)
                type_ = self.objects.type_at(type_).base
        except (Fault, NotThat):
            pass
        return found

    def type_of(self, address: int) -> Optional[int]:
        """Return the address of an object's class; None if it is no object."""
        try:
            return self.objects.type_of(address).address
        except (Fault, NotThat):
            return None

    def is_plain(self, address: int) -> bool:
        """Return whether an object is an instance of a class made at run time, and neither a class nor an exception."""
        try:
            flags = self.objects.type_of(address).flags
        except (Fault, NotThat):
            return False
        return bool(flags & L.FLAG_HEAP) and not flags & (L.FLAG_TYPE | L.FLAG_EXCEPTION)

    def items(self, address: int, most: int = MOST_ITEMS) -> Optional[Tuple[int, ...]]:
        """Return at most ``most`` items of a container, of a dict keys and values; None if it is no container."""
        objects = self.objects
        try:
            info = objects.type_of(address)
            if info.flags & (L.FLAG_LIST | L.FLAG_TUPLE):
                return objects.first_items(address, most)
            if info.flags & L.FLAG_DICT:
                pairs = itertools.islice(objects.dict_items(address), most)
                return tuple(itertools.chain.from_iterable(pairs))
            if info.name in _SETS:
                return tuple(itertools.islice(objects.set_items(address), most))
            if info.name == _DEQUE:
                return tuple(objects.deque_items(address, most))
            simple = simple_queue(objects, address)
            return simple.items[:most] if simple is not None and simple.items is not None else None
        except (Fault, NotThat):
            return None

    def has_items(self, address: int) -> bool:
        """Return whether an object is a list, dict, set or deque; a tuple does not count: it may be a key."""
        try:
            info = self.objects.type_of(address)
        except (Fault, NotThat):
            return False
        return bool(info.flags & (L.FLAG_LIST | L.FLAG_DICT)) or info.name in {*_SETS, _DEQUE}

    def is_unordered(self, address: int) -> bool:
        """Return whether an object is a set or a dict."""
        try:
            info = self.objects.type_of(address)
        except (Fault, NotThat):
            return False
        return info.name in _SETS or bool(info.flags & L.FLAG_DICT)

    def module(self, type_: int) -> str:
        """Return ``__module__`` of a class; empty if unknown."""
        if type_ not in self._modules:
            self._modules[type_] = ""
            try:
                namespace = self.objects.memory.u64(type_ + self.objects.layout.tp_dict)
                value = self.objects.lookup(namespace, "__module__") if namespace else None
                self._modules[type_] = (self.objects.optional_text(value) or "") if value else ""
            except (Fault, NotThat):
                pass
        return self._modules[type_]
