"""asyncio's locks, events, conditions, semaphores, queues and barriers, their subclasses, anyio's locks, and Tornado's.

- All are written in Python and keep their state in attributes.
- A class is identified by the module of its bases, since threading and multiprocessing use the same names.
- anyio's Lock records its holder in ``_owner_task``: a task, or in older releases a TaskInfo with the task's address
  and coroutine.
- Tornado's have the same attributes; its Lock is a semaphore of one (``_block``), and the end of a queue an event.

Sources:
- Lib/asyncio/locks.py and queues.py of 3.8-3.15; barriers since 3.11.
- anyio 4.5-4.16: _backends/_asyncio.py (slots).
- anyio 2.0-4.4: _core/_synchronization.py and _core/_testing.py.
- tornado/locks.py and queues.py of 5.1 to 6.6.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Literal, NamedTuple, Optional, Set, Tuple

from ...cpython.objects.attributes import Slots, attribute, attributes
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault

PrimitiveKind = Literal["lock", "event", "condition", "semaphore", "queue", "barrier"]
#: Class name → kind, and the attribute that distinguishes it from other classes of that name.
_CLASSES: Dict[str, Tuple[PrimitiveKind, str]] = {
    "Lock": ("lock", "_locked"), "Event": ("event", "_waiters"), "Condition": ("condition", "_waiters"),
    "Semaphore": ("semaphore", "_waiters"), "Queue": ("queue", "_getters"), "Barrier": ("barrier", "_parties"),
}  # fmt: skip
_MODULES = ("asyncio.locks", "asyncio.queues")
#: Modules of Tornado's primitives; their class names → as above.
TORNADO = ("tornado.locks", "tornado.queues")
_OF_TORNADO: Dict[str, Tuple[PrimitiveKind, str]] = {**_CLASSES, "Lock": ("lock", "_block")}
#: Library → its modules, its classes.
_LIBRARIES = {"asyncio": (_MODULES, _CLASSES), "tornado": (TORNADO, _OF_TORNADO)}
#: Module of anyio's primitives with slots; their class names → as above.
_ANYIO = "anyio._backends._asyncio"
_SLOTTED: Dict[str, Tuple[PrimitiveKind, str]] = {"Lock": ("lock", "_waiters")}
#: Modules of anyio's older primitives: anyio/__init__.py rewrites ``__module__`` of public classes.
_ANYIO_BEFORE = ("anyio", "anyio._core._synchronization")
_MAX_BASES = 32


class Primitive(NamedTuple):
    """State of a primitive; None where a field is unknown or does not apply."""

    address: int
    kind: PrimitiveKind
    locked: Optional[bool] = None  # lock only
    value: Optional[int] = None  # permits left; items; arrived tasks; 1 for an event that is set
    limit: Optional[int] = None  # total permits; places of a queue (0: unbounded); parties of a barrier
    unfinished: Optional[int] = None  # items of a queue without task_done()
    inner: Optional[int] = None  # lock of a condition; condition of a barrier
    owner: Optional[int] = None  # task that holds the lock, if recorded
    owner_runs: Optional[int] = None  # coroutine of that task, if recorded
    library: str = "asyncio"
    called: Optional[str] = None  # name of its class, unless that of asyncio's
    owner_ended: Optional[bool] = None  # whether the recorded owner has ended; None: unknown
    holders: Tuple[int, ...] = ()  # recorded holders of permits: tasks, or any other objects
    unbuffered: bool = False  # a channel that hands items over without keeping any


class PrimitivesByAddress:
    """Primitives of one interpreter, each read once, since thousands of tasks may wait for it."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: Dict[int, Optional[Primitive]] = {}

    def at(self, address: Optional[int]) -> Optional[Primitive]:
        """Return the primitive at an address; None if there is none. Never raises."""
        if not address:
            return None
        if address not in self._known:
            self._known[address] = self._at(address)
        return self._known[address]

    def _at(self, address: int) -> Optional[Primitive]:
        raise NotImplementedError


class Primitives(PrimitivesByAddress):
    """Primitives of asyncio; public methods never raise."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._slots = Slots(objects)
        self._classes: Dict[int, Optional[Tuple[PrimitiveKind, str, str]]] = {}

    def _at(self, address: int) -> Optional[Primitive]:
        try:
            found = self._class(address)
            if found is None:
                return self._slotted(address)
            kind, mark, library = found
            values = attributes(self._objects, address)
            return self._read(address, kind, values)._replace(library=library) if mark in values else None
        except (Fault, NotThat):
            return None

    def _slotted(self, address: int) -> Optional[Primitive]:
        """Read a primitive of anyio's; None if it is none."""
        info = self._objects.type_of(address)
        found = _SLOTTED.get(info.name.split(".")[-1])
        if found is None:
            return None
        kind, mark = found
        module = self._module(info.address)
        if module in _ANYIO_BEFORE:
            return self._before(address, kind)
        if module != _ANYIO or self._slots.get(address, mark) is None:
            return None
        owner = self._slots.get(address, "_owner_task")
        if owner is not None and self._objects.type_name(owner) == "NoneType":
            owner = None
        return Primitive(address, kind, owner is not None, owner=owner, library="anyio")

    def _before(self, address: int, kind: PrimitiveKind) -> Optional[Primitive]:
        """Read a lock of anyio 2.0-4.4, which records a TaskInfo of its holder."""
        values = attributes(self._objects, address)
        if "_waiters" not in values:
            return None
        info = values.get("_owner_task")
        owner = self._objects.integer_or_none(self._slots.get(info, "id")) if info else None
        runs = self._slots.get(info, "coro") if info else None
        return Primitive(address, kind, info is not None, owner=owner, owner_runs=runs, library="anyio")

    def _class(self, address: int) -> Optional[Tuple[PrimitiveKind, str, str]]:
        """Return (kind, distinctive attribute, library) of an object's class or its bases; None if it is none of these."""
        objects = self._objects
        info = objects.type_of(address)
        type_ = info.address
        if type_ not in self._classes:
            names: List[str] = []
            modules: Set[Optional[str]] = set()
            for _ in range(_MAX_BASES):
                names.append(info.name.split(".")[-1])
                modules.add(self._module(info.address))
                if not info.base:
                    break
                info = objects.type_at(info.base)
            library = next((name for name, known in _LIBRARIES.items() if not modules.isdisjoint(known[0])), None)
            classes = _LIBRARIES[library][1] if library is not None else {}
            found = next((classes[name] for name in names if name in classes), None)
            self._classes[type_] = (*found, library) if found is not None and library is not None else None
        return self._classes[type_]

    def _module(self, type_: int) -> Optional[str]:
        """Return ``__module__`` of a class; None if unreadable."""
        objects = self._objects
        try:
            module = objects.lookup(objects.memory.u64(type_ + objects.layout.tp_dict), "__module__")
            return None if module is None else objects.text(module)
        except (Fault, NotThat):
            return None

    def _read(self, address: int, kind: PrimitiveKind, values: Dict[str, int]) -> Primitive:
        """Build a primitive from its attributes."""
        number = self._objects.integer_or_none
        if kind == "lock" and "_block" in values:
            left = number(attribute(self._objects, values["_block"], "_value"))
            return Primitive(address, kind, None if left is None else left == 0)
        if kind == "lock":
            locked = number(values.get("_locked"))
            return Primitive(address, kind, None if locked is None else bool(locked))
        if kind == "semaphore":
            limit = number(values.get("_bound_value", values.get("_initial_value")))
            return Primitive(address, kind, None, number(values.get("_value")), limit)
        if kind == "queue":
            return Primitive(
                address,
                kind,
                None,
                self._objects.length_or_none(values.get("_queue")),
                number(values.get("_maxsize")),
                number(values.get("_unfinished_tasks")),
            )
        if kind == "barrier":
            return Primitive(
                address,
                kind,
                None,
                number(values.get("_count")),
                number(values.get("_parties")),
                inner=values.get("_cond"),
            )
        if kind == "condition":
            return Primitive(address, kind, inner=values.get("_lock"))
        return Primitive(address, kind, None, number(values.get("_value")))

    def waiters(self, primitive: Primitive) -> List[int]:
        """Return the futures in the list of waiters; for a queue, those of getters and putters."""
        found: List[int] = []
        try:
            values = attributes(self._objects, primitive.address)
            parts = [values[name] for name in ("_block", "_finished") if name in values]  # Tornado's
            for each in (values, *(attributes(self._objects, part) for part in parts)):
                for name in ("_waiters", "_getters", "_putters"):
                    found += self._members(each.get(name))
        except (Fault, NotThat):
            pass
        return found

    def _members(self, container: Optional[int]) -> Iterator[int]:
        """Yield the members of a deque or set of waiters; of pairs of an item and a future, the future."""
        kind = self._objects.type_name(container) if container else None
        if container and kind == "set":
            yield from self._objects.set_items(container)
        elif container and kind == "collections.deque":
            for item in self._objects.deque_items(container):
                yield self._objects.items(item, 2)[-1] if self._objects.type_name(item) == "tuple" else item


def describe(primitive: Primitive) -> str:
    """Describe the state of a primitive, as in ``empty, no bound``; empty if there is nothing to add."""
    return ", ".join(_STATES[primitive.kind](primitive))


def _queue(queue: Primitive) -> List[str]:
    if queue.unbuffered:
        return ["no buffer"]
    if queue.value is None:
        return []
    full = bool(queue.limit) and queue.limit is not None and queue.value >= queue.limit > 0
    said = [
        "full" if full else "empty" if not queue.value else "1 item" if queue.value == 1 else f"{queue.value} items"
    ]
    if queue.limit is not None:
        said.append("no bound" if queue.limit <= 0 else "1 place" if queue.limit == 1 else f"{queue.limit} places")
    if queue.unfinished:
        said.append(f"{queue.unfinished} not done")
    return said


def _semaphore(semaphore: Primitive) -> List[str]:
    if semaphore.value is None:
        return []
    return [f"{semaphore.value} of {semaphore.limit} left" if semaphore.limit else f"{semaphore.value} left"]


def _barrier(barrier: Primitive) -> List[str]:
    known = barrier.value is not None and barrier.limit is not None
    return [f"{barrier.value} of {barrier.limit} have arrived"] if known else []


def _event(event: Primitive) -> List[str]:
    return [] if event.value is None else ["set" if event.value else "not set"]


_STATES = {
    "lock": lambda lock: ["free"] if lock.locked is False else [],
    "event": _event, "condition": lambda _condition: [], "semaphore": _semaphore, "queue": _queue, "barrier": _barrier,
}  # fmt: skip
