"""asyncio's locks, events, conditions, semaphores, queues and barriers, and those derived from them.

All are written in Python and keep their state in attributes (Lib/asyncio/locks.py and queues.py of 3.8-3.15; barriers
since 3.11). A class is told by the module of its bases: threading's and multiprocessing's are called alike. anyio's Lock
says who holds it: ``_owner_task``, a task (anyio 4.5-4.16, _backends/_asyncio.py, in slots), or before that a TaskInfo with
the task's address and its coroutine (anyio 2.0-4.4, _core/_synchronization.py and _core/_testing.py).
"""

from __future__ import annotations

from typing import Dict, List, Literal, NamedTuple, Optional, Tuple

from ...cpython.objects.attributes import Slots, attributes
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault

PrimitiveKind = Literal["lock", "event", "condition", "semaphore", "queue", "barrier"]
#: Name of the class → kind, and the attribute that tells it from its namesakes.
_CLASSES: Dict[str, Tuple[PrimitiveKind, str]] = {
    "Lock": ("lock", "_locked"), "Event": ("event", "_waiters"), "Condition": ("condition", "_waiters"),
    "Semaphore": ("semaphore", "_waiters"), "Queue": ("queue", "_getters"), "Barrier": ("barrier", "_parties"),
}  # fmt: skip
_MODULES = ("asyncio.locks", "asyncio.queues")
#: Whose primitives have slots: module → the same.
_ANYIO = "anyio._backends._asyncio"
_SLOTTED: Dict[str, Tuple[PrimitiveKind, str]] = {"Lock": ("lock", "_waiters")}
#: anyio/__init__.py says of its public classes that they are its own.
_ANYIO_BEFORE = ("anyio", "anyio._core._synchronization")
_MAX_BASES = 32


class Primitive(NamedTuple):
    """One of them, as it was."""

    address: int
    kind: PrimitiveKind
    locked: Optional[bool] = None  # of a lock
    value: Optional[int] = None  # permits left, items, tasks that have arrived; 1 for an event that is set
    limit: Optional[int] = None  # permits in all, places in a queue (0: no bound), parties of a barrier
    unfinished: Optional[int] = None  # items of a queue that are not done
    inner: Optional[int] = None  # the lock of a condition, the condition of a barrier
    owner: Optional[int] = None  # the task that holds a lock, where the lock says so
    owner_runs: Optional[int] = None  # the coroutine of that task, where the lock says that, too
    library: str = "asyncio"


class Primitives:
    """Reads primitives of one interpreter; nothing here raises."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._slots = Slots(objects)
        self._classes: Dict[int, Optional[Tuple[PrimitiveKind, str]]] = {}
        self._known: Dict[int, Optional[Primitive]] = {}

    def at(self, address: Optional[int]) -> Optional[Primitive]:
        """None for what is none. Thousands of tasks may wait for one."""
        if not address:
            return None
        if address not in self._known:
            self._known[address] = self._at(address)
        return self._known[address]

    def _at(self, address: int) -> Optional[Primitive]:
        try:
            found = self._class(address)
            if found is None:
                return self._slotted(address)
            kind, mark = found
            values = attributes(self._objects, address)
            return self._read(address, kind, values) if mark in values else None
        except (Fault, NotThat):
            return None

    def _slotted(self, address: int) -> Optional[Primitive]:
        """One of anyio's."""
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
        """A lock that refers to a description of its owner."""
        values = attributes(self._objects, address)
        if "_waiters" not in values:
            return None
        info = values.get("_owner_task")
        owner = self._objects.integer_or_none(self._slots.get(info, "id")) if info else None
        runs = self._slots.get(info, "coro") if info else None
        return Primitive(address, kind, info is not None, owner=owner, owner_runs=runs, library="anyio")

    def _class(self, address: int) -> Optional[Tuple[PrimitiveKind, str]]:
        objects = self._objects
        info = objects.type_of(address)
        type_ = info.address
        if type_ not in self._classes:
            found, is_async = None, False
            for _ in range(_MAX_BASES):
                found = found or _CLASSES.get(info.name.split(".")[-1])
                is_async = is_async or self._of_asyncio(info.address)
                if not info.base:
                    break
                info = objects.type_at(info.base)
            self._classes[type_] = found if is_async else None
        return self._classes[type_]

    def _of_asyncio(self, type_: int) -> bool:
        """Does a class come from a module of asyncio?"""
        return self._module(type_) in _MODULES

    def _module(self, type_: int) -> Optional[str]:
        objects = self._objects
        try:
            module = objects.lookup(objects.memory.u64(type_ + objects.layout.tp_dict), "__module__")
            return None if module is None else objects.text(module)
        except (Fault, NotThat):
            return None

    def _read(self, address: int, kind: PrimitiveKind, values: Dict[str, int]) -> Primitive:
        number = self._objects.integer_or_none
        if kind == "lock":
            locked = number(values.get("_locked"))
            return Primitive(address, kind, None if locked is None else bool(locked))
        if kind == "semaphore":
            return Primitive(address, kind, None, number(values.get("_value")), number(values.get("_bound_value")))
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
        """The futures in its list of waiters; of a queue, those of both getters and putters."""
        found: List[int] = []
        try:
            values = attributes(self._objects, primitive.address)
            for name in ("_waiters", "_getters", "_putters"):
                queue = values.get(name)
                if queue and self._objects.type_name(queue) == "collections.deque":
                    found += self._objects.deque_items(queue)
        except (Fault, NotThat):
            pass
        return found


def describe(primitive: Primitive) -> str:
    """Its state in a few words: ``empty, no bound``; empty when there is nothing to say."""
    return ", ".join(_STATES[primitive.kind](primitive))


def _queue(queue: Primitive) -> List[str]:
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
