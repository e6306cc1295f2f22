"""Locks, events and queues of gevent and eventlet.

gevent compiles most of its classes: they have no ``__dict__``, and getsets that tell no offsets. Fields are placed by the
sizes of the classes that Cython derived from each other: a subclass begins where its base ends.

- AbstractLinkable (_gevent_c_abstract_linkable.pxd): the list of callbacks is one of its words.
- Semaphore (_gevent_c_semaphore.pxd): ``counter``, an int; BoundedSemaphore: ``_initial_value``, an int.
- Event, AsyncResult (_gevent_cevent.pxd): ``_flag``, an int; ``_value``, ``_exc_info``.
- SimpleQueue, Queue (_gevent_cqueue.pxd): the items, ``getters`` and ``putters`` are its first three containers;
  ``_maxsize`` its last word. Before 25.4 Queue was the base class.

All in gevent 20.12-26.9. Pure-Python builds have slots of the same names, as have RLock (gevent/lock.py; ``_block``,
``_owner``), threading._RLock (Lib/threading.py; ``_owner`` is the greenlet's address, gevent/thread.py,
eventlet/green/thread.py: get_ident) and what eventlet has (semaphore.py, event.py, queue.py, lock.py of 0.30-0.41).
"""

from __future__ import annotations

import contextlib
from typing import Callable, Dict, FrozenSet, List, Literal, NamedTuple, Optional, Tuple

from ...cpython.objects.attributes import Slots, attributes
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ..asyncio.primitives import Primitive

#: What an object is to a greenlet that waits for it; waiter and watcher stand between the two.
GreenKind = Literal[
    "lock", "semaphore", "rlock", "event", "result", "queue", "greenlet", "waiter", "watcher", "condition", "pool",
    "callback",
]  # fmt: skip

#: tp_name of compiled classes → kind.
_COMPILED: Dict[str, GreenKind] = {
    "gevent._gevent_c_semaphore.Semaphore": "semaphore",
    "gevent._gevent_cevent.Event": "event",
    "gevent._gevent_cevent.AsyncResult": "result",
    "gevent._gevent_cqueue.SimpleQueue": "queue",
    "gevent._gevent_cqueue.Queue": "queue",
    "gevent._gevent_cqueue.Channel": "queue",
    "gevent._gevent_cgreenlet.Greenlet": "greenlet",
    "gevent._gevent_c_waiter.Waiter": "waiter",
    "gevent.libev.corecext.watcher": "watcher",
    "gevent.libev.corecext.callback": "callback",
}
#: (``__module__``, name) of Python classes → kind.
_WRITTEN: Dict[Tuple[str, str], GreenKind] = {
    ("gevent.thread", "LockType"): "lock", ("gevent.lock", "RLock"): "rlock", ("threading", "_RLock"): "rlock",
    ("threading", "Condition"): "condition", ("threading", "Semaphore"): "semaphore",
    ("gevent._semaphore", "Semaphore"): "semaphore", ("gevent.lock", "Semaphore"): "semaphore",
    ("gevent.event", "Event"): "event",
    ("gevent.event", "AsyncResult"): "result", ("gevent.queue", "Queue"): "queue",
    ("gevent.queue", "SimpleQueue"): "queue", ("gevent.queue", "Channel"): "queue",
    ("gevent.greenlet", "Greenlet"): "greenlet", ("gevent._waiter", "Waiter"): "waiter",
    ("gevent._ffi.watcher", "watcher"): "watcher", ("gevent._ffi.callback", "callback"): "callback",
    ("gevent.pool", "Pool"): "pool",
    ("eventlet.semaphore", "Semaphore"): "semaphore", ("eventlet.lock", "Lock"): "lock",
    ("eventlet.event", "Event"): "result", ("eventlet.queue", "LightQueue"): "queue",
    ("eventlet.queue", "Waiter"): "waiter", ("eventlet.greenpool", "GreenPool"): "pool",
    ("eventlet.greenthread", "GreenThread"): "greenlet", ("eventlet.hubs.timer", "Timer"): "watcher",
    ("eventlet.hubs.hub", "FdListener"): "watcher", ("eventlet.green.threading", "_RLock"): "rlock",
}  # fmt: skip
_LINKABLE = ("gevent._gevent_c_abstract_linkable.AbstractLinkable", "AbstractLinkable")
_SEMAPHORE, _BOUNDED = "gevent._gevent_c_semaphore.Semaphore", "gevent._gevent_c_semaphore.BoundedSemaphore"
_QUEUES = ("gevent._gevent_cqueue.SimpleQueue", "gevent._gevent_cqueue.Queue", "gevent._gevent_cqueue.Channel")
#: Class of the marker for "no value yet" (gevent/_util.py).
_UNSET = "_NONE"
_CONTAINERS = ("list", "collections.deque", "set", "tuple")
_MAX_BASES, _MAX_WORDS, _MAX_ITEMS = 32, 64, 20_000


class GreenClass(NamedTuple):
    """Kind of class of an object."""

    kind: GreenKind
    library: str
    sizes: Dict[str, int]  # tp_name of it and its bases → size in bytes
    names: FrozenSet[str]


class Structs:
    """Reader of these objects; methods never raise."""

    def __init__(self, python: Python) -> None:
        self._python, self._objects = python, python.objects
        self._slots = Slots(python.objects)
        self._classes: Dict[int, Optional[GreenClass]] = {}
        self._known: Dict[int, Optional[Primitive]] = {}

    def class_of(self, address: int) -> Optional[GreenClass]:
        """Return what the class of an object is; None for all others."""
        try:
            type_ = self._objects.type_of(address).address
            if type_ not in self._classes:
                self._classes[type_] = self._class(type_)
            return self._classes[type_]
        except (Fault, NotThat):
            return None

    def _class(self, type_: int) -> Optional[GreenClass]:
        """Return what a class is, by itself and its bases. Raises Fault or NotThat."""
        kind: Optional[GreenKind] = None
        library, sizes = "gevent", {}
        for _ in range(_MAX_BASES):
            info = self._objects.type_at(type_)
            sizes[info.name] = info.basicsize
            if kind is None and info.name in _COMPILED:
                kind = _COMPILED[info.name]
            elif kind is None and "." not in info.name:
                module = self._module(type_)
                kind = _WRITTEN.get((module or "", info.name))
                if kind is not None and module is not None:
                    library = module.split(".")[0]
            if not info.base:
                break
            type_ = info.base
        return GreenClass(kind, library, sizes, frozenset(sizes)) if kind is not None else None

    def _module(self, type_: int) -> Optional[str]:
        namespace = self._objects.memory.u64(type_ + self._objects.layout.tp_dict)
        value = self._objects.lookup(namespace, "__module__") if namespace else None
        return self._objects.optional_text(value) if value else None

    # ------------------------------------------------------------------ fields

    def words(self, address: int) -> Tuple[int, ...]:
        """Return the words of an object behind its header; empty if unreadable."""
        try:
            header = 16 + self._objects.layout.ob_extra
            size = self._objects.type_of(address).basicsize - header
            return self._objects.memory.words(address + header, min(size // 8, _MAX_WORDS))
        except (Fault, NotThat):
            return ()

    def value(self, address: int, name: str) -> Optional[int]:
        """Return an attribute in a slot or ``__dict__``; None if there is none."""
        found = self._slots.get(address, name)
        if found is not None:
            return found
        try:
            return attributes(self._objects, address).get(name)
        except (Fault, NotThat):
            return None

    def is_compiled(self, address: int) -> bool:
        """Return whether an object has the fields of a compiled class."""
        found = self.class_of(address)
        return found is not None and any(name in _COMPILED for name in found.names)

    def containers(self, address: int) -> List[int]:
        """Return the lists, deques, sets and tuples among an object's fields."""
        words: List[int] = [*self.words(address)]
        if not self.is_compiled(address):
            with contextlib.suppress(Fault, NotThat):
                words = [*attributes(self._objects, address).values(), *words]
        return [word for word in dict.fromkeys(words) if word and self._objects.type_name(word) in _CONTAINERS]

    def members(self, container: int) -> Tuple[int, ...]:
        """Return the items of a container; empty if unreadable."""
        try:
            kind = self._objects.type_name(container)
            if kind == "set":
                return tuple(self._objects.set_items(container))
            if kind == "collections.deque":
                return tuple(self._objects.deque_items(container, _MAX_ITEMS))
            return self._objects.items(container, _MAX_ITEMS)
        except (Fault, NotThat):
            return ()

    def is_given(self, address: int) -> bool:
        """Return whether a gevent AsyncResult has its result: none of its fields is the marker for "no value yet"."""
        found = self.class_of(address)
        if found is None or found.kind != "result" or found.library != "gevent":
            return False
        words = [*self.words(address)] if self.is_compiled(address) else [self.value(address, "_value") or 0]
        return any(words) and not any(word and self._objects.type_name(word) == _UNSET for word in words)

    # ------------------------------------------------------------------ primitives

    def at(self, address: Optional[int]) -> Optional[Primitive]:
        """Return the primitive at an address; None if it is none."""
        if not address:
            return None
        if address not in self._known:
            found = self.class_of(address)
            read = _READERS.get(found.kind) if found is not None else None
            try:
                self._known[address] = read(self, address, found) if read is not None and found is not None else None
            except (Fault, NotThat):
                self._known[address] = None
        return self._known[address]

    def _int(self, address: int, found: GreenClass, base: Tuple[str, ...], name: str) -> Optional[int]:
        """Return the C int behind the fields of a base class, or the attribute of this name."""
        offset = next((found.sizes[each] for each in base if each in found.sizes), None)
        if self.is_compiled(address) and offset is not None:
            return self._objects.memory.i32(address + offset)
        return self._objects.integer_or_none(self.value(address, name))

    def _semaphore(self, address: int, found: GreenClass) -> Optional[Primitive]:
        if found.library == "threading":
            return self._of_threading(address)
        left = self._int(address, found, _LINKABLE, "counter")
        bounded = _BOUNDED in found.sizes or "BoundedSemaphore" in found.sizes
        limit = self._int(address, found, (_SEMAPHORE,), "_initial_value") if bounded else None
        if found.kind == "lock":
            return Primitive(address, "lock", None if left is None else left <= 0, library=found.library)
        return Primitive(address, "semaphore", None, left, limit, library=found.library)

    def _of_threading(self, address: int) -> Optional[Primitive]:
        """Read a threading.Semaphore on whose condition greenlets wait (Lib/threading.py, 3.8-3.15)."""
        condition = self.at(self.value(address, "_cond"))
        if condition is None:
            return None
        left, limit = (self._objects.integer_or_none(self.value(address, n)) for n in ("_value", "_initial_value"))
        return Primitive(address, "semaphore", None, left, limit, inner=condition.address, library="threading")

    def _rlock(self, address: int, found: GreenClass) -> Optional[Primitive]:
        """Read a lock that records its holder: a greenlet, or the number that stands for it, its address."""
        block = self.at(self.value(address, "_block"))
        if block is None:
            return None
        owner = self.value(address, "_owner")
        count = self._objects.integer_or_none(self.value(address, "_count"))
        number = self._objects.integer_or_none(owner)
        if owner is not None and self._objects.type_name(owner) == "NoneType":
            owner = None
        held = number if number is not None else owner
        return Primitive(address, "lock", bool(count), inner=block.address, owner=held, library=block.library)

    def _event(self, address: int, found: GreenClass) -> Primitive:
        flag = self._int(address, found, _LINKABLE, "_flag")
        return Primitive(address, "event", None, flag, library=found.library)

    def _condition(self, address: int, found: GreenClass) -> Optional[Primitive]:
        """Read a threading.Condition whose lock is a library's."""
        lock = self.at(self.value(address, "_lock"))
        return Primitive(address, "condition", inner=lock.address, library=lock.library) if lock is not None else None

    def items_of(self, address: int) -> Optional[int]:
        """Return the container with the items of a compiled queue; None for any other object, and for a Channel."""
        found = self.class_of(address)
        if found is None or found.kind != "queue" or not self.is_compiled(address) or _QUEUES[2] in found.sizes:
            return None
        return next(iter(self.containers(address)), None)

    def _queue(self, address: int, found: GreenClass) -> Primitive:
        if not self.is_compiled(address):
            held = self.value(address, "queue")
            most = self._objects.integer_or_none(self.value(address, "maxsize") or self.value(address, "_maxsize"))
            return Primitive(address, "queue", None, self._objects.length_or_none(held), most, library=found.library)
        held = self.items_of(address)
        channel = _QUEUES[2] in found.sizes
        size = found.sizes.get(_QUEUES[0]) or found.sizes.get(_QUEUES[1])
        most = self._objects.memory.i64(address + size - 8) if size and not channel else None
        if most is not None and not -1 <= most < 1 << 32:
            most = None
        items = self._objects.length_or_none(held) if held is not None else 0
        return Primitive(address, "queue", None, items, 0 if most == -1 else most, library=found.library)


_READERS: Dict[GreenKind, Callable[[Structs, int, GreenClass], Optional[Primitive]]] = {
    "lock": Structs._semaphore, "semaphore": Structs._semaphore, "rlock": Structs._rlock, "event": Structs._event,
    "queue": Structs._queue, "condition": Structs._condition,
}  # fmt: skip
