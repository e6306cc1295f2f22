"""Queues that frames of threads and tasks lead to: addresses and lengths.

A queue is
- an object with a deque or list and a bound: ``queue.Queue`` (``queue``, ``maxsize``), ``asyncio.Queue`` (``_queue``,
  ``_maxsize``), ``multiprocessing.Queue`` (``_buffer``, ``_maxsize``), anyio's memory streams (``buffer``,
  ``max_buffer_size``), Twisted's DeferredQueue (``pending``, ``size``: None without a bound);
- a ``SimpleQueue``;
- a bare deque.

Source of dequeobject: Modules/_collectionsmodule.c, 3.8-3.15: after the length two blocks, two indices and a state,
then maxlen.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from ...timelimits import TimeLimit
from ..objects.attributes import Slots, attributes, class_value
from ..objects.builtins import NotThat, Objects
from ..state.interpreter import Python
from ..sync.primitives import simple_queue
from .variablesearch import CONTAINERS, Named, User, VariableSearch

_PARTS = ("queue", "_queue", "_buffer", "buffer")
_BOUNDS = ("maxsize", "_maxsize", "max_buffer_size", "_max_buffer_size")
_DEQUE, _SIMPLE = "collections.deque", "_queue.SimpleQueue"
_DEFERRED = "DeferredQueue"
_MAXLEN = 64
#: Bounds from here on mean none: multiprocessing.Queue uses SEM_VALUE_MAX (Lib/multiprocessing/queues.py).
_NO_BOUND = 1 << 30
_MOST_QUEUES = 500
_MOST_USERS = 32


class Queue(NamedTuple):
    """A queue, and the threads and tasks that use it."""

    address: int
    kind: str  # class, with its module
    name: str
    container: int  # the deque, list or SimpleQueue with the items
    limit: Optional[int]  # 0: unbounded
    users: List[User]
    through: Tuple[str, ...] = ()  # names of the objects that lead to it


def length(objects: Objects, queue: Queue) -> int:
    """Return the current number of items. Raises Fault or NotThat."""
    if objects.is_instance(queue.container, _SIMPLE):
        simple = simple_queue(objects, queue.container)
        if simple is None or simple.items is None:
            raise NotThat("a damaged queue")
        return len(simple.items)
    return objects.length(queue.container)


class Backlogs(VariableSearch):
    """The queues of one process."""

    def __init__(self, python: Python, limit: TimeLimit) -> None:
        super().__init__(python, limit)
        self._slots = Slots(python.objects)
        self._queues: Dict[int, Queue] = {}

    def found(self, users: Iterable[User]) -> List[Queue]:
        """Return the queues in the order in which these frames lead to them."""
        self.look(users)
        return [
            queue._replace(through=tuple(name for _at, name in self.way_to(queue.address)[1:]))
            for queue in self._queues.values()
        ]

    @property
    def spent(self) -> bool:
        """Whether the limit of queues, visits or time is reached."""
        return len(self._queues) >= _MOST_QUEUES or super().spent

    def found_at(self, name: str, value: int, kind: str, user: User) -> Optional[Named]:
        """Record a queue and its user; () for a queue, None for any other object."""
        queue = self._queues.get(value) or self._queue(name, value, kind)
        if queue is None:
            return None
        self._queues[value] = queue
        who = (user.thread, user.task)
        if len(queue.users) < _MOST_USERS and all((u.thread, u.task) != who for u in queue.users):
            queue.users.append(user)
        return ()

    def _queue(self, name: str, value: int, kind: str) -> Optional[Queue]:
        """Return the queue at an address; None if it is none. Raises Fault or NotThat."""
        if kind == _DEQUE:
            limit = self.objects.memory.i64(value + self.objects.layout.ob_extra + _MAXLEN)
            return Queue(value, kind, name, value, max(limit, 0), [])
        if kind in CONTAINERS:
            return None
        if self.objects.is_instance(value, _SIMPLE):
            return Queue(value, "queue.SimpleQueue", name, value, 0, [])
        return self.made_queue(name, value, kind)

    def made_queue(self, name: str, value: int, kind: str) -> Optional[Queue]:
        """Return the queue made of a container and a bound; None if the object has no such parts.

        Raises Fault or NotThat.
        """
        parts = attributes(self.objects, value)
        bound = next((parts[b] for b in _BOUNDS if b in parts), None)
        container = next((parts[c] for c in _PARTS if c in parts), None)
        if not parts:  # anyio: dataclasses with slots
            bound, container = self._slots.get(value, "max_buffer_size"), self._slots.get(value, "buffer")
        if kind == _DEFERRED:
            bound, container = parts.get("size"), parts.get("pending")
        if not bound or not container or self.objects.type_name(container) not in (_DEQUE, "list"):
            return None
        try:
            limit = int(self.objects.number(bound)) if self.objects.type_name(bound) != "NoneType" else 0
        except (OverflowError, ValueError):
            limit = 0  # math.inf
        limit = limit if 0 < limit < _NO_BOUND else 0
        module = class_value(self.objects, value, "__module__")
        home = self.objects.optional_text(module) if module else None
        cls = kind.rsplit(".", 1)[-1]
        return Queue(value, f"{home}.{cls}" if home else cls, name, container, limit, [])
