"""Queues, and what is used as one, that frames of threads and tasks lead to: where they lie and how long they are.

A queue is recognised by what it is made of: a deque or a list beside a bound, as ``queue.Queue`` (``queue``, ``maxsize``),
``asyncio.Queue`` (``_queue``, ``_maxsize``), ``multiprocessing.Queue`` (``_buffer``, ``_maxsize``) and anyio's memory streams
(``buffer``, ``max_buffer_size``) have it; a ``SimpleQueue``; or a bare deque. The search follows variables, attributes and
the first items of containers for a few steps, which is how far a program's own names lead.

dequeobject (Modules/_collectionsmodule.c, 3.8-3.15): after the length two blocks, two indices and a state, then maxlen.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from typing import Deque, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..memory import Fault
from .attributes import Slots, attributes, class_value
from .frames import Frame
from .interpreter import Python, ThreadState
from .names import MACHINERY
from .objects import NotThat, Objects
from .primitives import simple_queue
from .tasks import TaskState

_CONTAINERS = ("queue", "_queue", "_buffer", "buffer")
_BOUNDS = ("maxsize", "_maxsize", "max_buffer_size", "_max_buffer_size")
_DEQUE, _SIMPLE = "collections.deque", "_queue.SimpleQueue"
_MAXLEN = 64
_STEPS = 3  # from a variable
_MOST_ITEMS = 32  # of a container that is looked into
_LONG = 10_000  # longer lists are data, not what a few objects are kept in
_MOST_VISITS = 20_000
_MOST_QUEUES = 500
_MOST_USERS = 32
_MOST_FRAMES, _MOST_ALIKE, _MOST_ROOTS = 60, 4, 5000
#: Whose attributes are not the program's: an event loop's list of ready callbacks is no queue of the program.
_CLOSED = ("EventLoop", "Loop")
_LEAVES = frozenset((
    "str", "bytes", "int", "float", "bool", "NoneType", "type", "function", "builtin_function_or_method", "method", "code",
    "module", "bytearray", "memoryview", "_io.TextIOWrapper", "property", "complex", "frame", "traceback", "cell",
))  # fmt: skip


class User(NamedTuple):
    """A thread (address of its state) or a task (address) with the frame that leads to a queue."""

    thread: Optional[int]
    task: Optional[int]
    frame: Frame


class Queue(NamedTuple):
    address: int
    kind: str  # class, with its module
    name: str
    container: int  # the deque, list or SimpleQueue that has the items
    limit: Optional[int]  # 0: no bound
    users: List[User]


def length(objects: Objects, queue: Queue) -> int:
    """Items now. Raises Fault or NotThat."""
    if objects.is_instance(queue.container, _SIMPLE):
        simple = simple_queue(objects, queue.container)
        if simple is None or simple.items is None:
            raise NotThat("a damaged queue")
        return len(simple.items)
    return objects.length(queue.container)


def users_of(states: Iterable[ThreadState], tasks: Iterable[TaskState]) -> List[User]:
    """Frames of threads, and of some tasks of each kind: a thousand that run the same code lead to the same queues."""
    users = [User(state.address, None, frame) for state in states for frame in state.frames[:_MOST_FRAMES]]
    alike: Dict[int, int] = {}
    for task in tasks:
        code = task.frames[0].code.address if task.frames else 0
        alike[code] = alike.get(code, 0) + 1
        if alike[code] <= _MOST_ALIKE and len(users) < _MOST_ROOTS:
            users += [User(None, task.address, frame) for frame in task.frames[:_MOST_FRAMES]]
    return users


class Backlogs:
    """The queues of one process; ``until``: of time.monotonic(), when the search ends wherever it is."""

    def __init__(self, python: Python, until: float) -> None:
        self._python = python
        self._objects = python.objects
        self._slots = Slots(python.objects)
        self._until = until
        self._visits = 0
        self._queues: Dict[int, Queue] = {}
        self._seen: Set[int] = set()
        self._modules: Set[int] = set()

    def found(self, users: Iterable[User]) -> List[Queue]:
        """In the order in which these frames lead to them, the program's own frames first."""
        for user in sorted(users, key=lambda user: user.frame.code.filename.endswith(MACHINERY)):
            if self._spent:
                break
            self._from_frame(user)
        return list(self._queues.values())

    @property
    def _spent(self) -> bool:
        over = self._visits >= _MOST_VISITS or len(self._queues) >= _MOST_QUEUES
        return over or time.monotonic() > self._until

    def _from_frame(self, user: User) -> None:
        frames = self._python.frames
        self._search([(name, value) for name, value in itertools.islice(frames.locals(user.frame), 200)], user)
        namespace = frames.globals(user.frame)
        if not namespace or namespace in self._modules or "/lib/python3." in user.frame.code.filename:
            return
        self._modules.add(namespace)
        try:
            named = list(self._objects.text_dict(namespace).items())[:2000]
        except (Fault, NotThat):
            return
        self._search([(name, value) for name, value in named if not name.startswith("__")], user)

    def _search(self, named: Sequence[Tuple[str, int]], user: User) -> None:
        """Breadth first, so that the shortest name wins. What another frame led to is looked at again one step deep, to
        know who uses it."""
        waiting: Deque[Tuple[str, int, int]] = deque((name, value, 0) for name, value in named)
        mine: Set[int] = set()
        while waiting and not self._spent:
            name, value, steps = waiting.popleft()
            if not value or value in mine:
                continue
            mine.add(value)
            self._visits += 1
            known = self._queues.get(value)
            if known is not None:
                self._note_user(known, user)
                continue
            if value in self._seen and steps > 1:
                continue
            self._seen.add(value)
            try:
                inner = self._look_at(name, value, user)
            except (Fault, NotThat):
                continue
            if steps < _STEPS:
                waiting.extend((n, v, steps + 1) for n, v in inner)

    def _look_at(self, name: str, value: int, user: User) -> Sequence[Tuple[str, int]]:
        """Notes a queue; else what an object has inside."""
        objects = self._objects
        kind = objects.type_name(value)
        if kind is None or kind in _LEAVES or kind.endswith(_CLOSED):
            return ()
        if kind == _DEQUE:
            limit = objects.memory.i64(value + objects.layout.ob_extra + _MAXLEN)
            self._note(Queue(value, kind, name, value, max(limit, 0), []), user)
            return ()
        if objects.is_instance(value, _SIMPLE):
            self._note(Queue(value, "queue.SimpleQueue", name, value, 0, []), user)
            return ()
        if kind in ("list", "tuple", "set", "frozenset", "dict"):
            return [(f"{name}[…]", item) for item in self._items(value, kind)]
        parts = attributes(objects, value)
        made = self._made_queue(name, value, kind, parts)
        if made is not None:
            self._note(made, user)
            return ()
        cls = kind.rsplit(".", 1)[-1]
        return [(f"{cls}.{part}", inner) for part, inner in itertools.islice(parts.items(), 100)]

    def _items(self, value: int, kind: str) -> Iterator[int]:
        objects = self._objects
        if kind == "dict":
            return (item for _key, item in itertools.islice(objects.dict_items(value), _MOST_ITEMS))
        if kind in ("set", "frozenset"):
            return itertools.islice(objects.set_items(value), _MOST_ITEMS)
        return iter(objects.items(value, _LONG)[:_MOST_ITEMS] if objects.length(value) <= _LONG else ())

    def _made_queue(self, name: str, value: int, kind: str, parts: Dict[str, int]) -> Optional[Queue]:
        bound = next((parts[b] for b in _BOUNDS if b in parts), None)
        container = next((parts[c] for c in _CONTAINERS if c in parts), None)
        if not parts:  # dataclasses with slots: anyio's
            bound, container = self._slots.get(value, "max_buffer_size"), self._slots.get(value, "buffer")
        if not bound or not container or self._objects.type_name(container) not in (_DEQUE, "list"):
            return None
        try:
            limit = max(0, int(self._objects.number(bound)))
        except (OverflowError, ValueError):
            limit = 0  # math.inf
        module = class_value(self._objects, value, "__module__")
        home = self._objects.optional_text(module) if module else None
        cls = kind.rsplit(".", 1)[-1]
        return Queue(value, f"{home}.{cls}" if home else cls, name, container, limit, [])

    def _note(self, queue: Queue, user: User) -> None:
        self._queues[queue.address] = queue
        self._note_user(queue, user)

    def _note_user(self, queue: Queue, user: User) -> None:
        who = (user.thread, user.task)
        if len(queue.users) < _MOST_USERS and all((u.thread, u.task) != who for u in queue.users):
            queue.users.append(user)
