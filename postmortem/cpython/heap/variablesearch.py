"""Objects that a program's variables lead to.

The search starts from the frames of threads and tasks and the globals of their modules, and follows attributes and the
first items of containers for a few steps.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Deque, Dict, Iterable, Iterator, List, NamedTuple, Optional, Protocol, Sequence, Set, Tuple

from ...memory import Fault
from ...sourcepaths import is_program
from ...timelimits import TimeLimit
from ..frames.frame import Frame
from ..frames.names import MACHINERY
from ..objects.attributes import attributes
from ..objects.builtins import NotThat
from ..runtime import layouts as L
from ..state.interpreter import Python, ThreadState

_MOST_ITEMS = 32  # most items followed of a container
_LONG = 10_000  # longest list followed: longer ones are data
_MOST_VISITS = 20_000
_MOST_FRAMES, _MOST_ALIKE, _MOST_ROOTS = 60, 4, 5000
#: Endings of class names whose attributes are not the program's, such as an event loop's list of ready callbacks.
_CLOSED = ("EventLoop", "Loop")
_LEAVES = frozenset((
    "str", "bytes", "int", "float", "bool", "NoneType", "type", "function", "builtin_function_or_method", "method", "code",
    "module", "bytearray", "memoryview", "_io.TextIOWrapper", "property", "complex", "frame", "traceback", "cell",
))  # fmt: skip
CONTAINERS = ("list", "tuple", "set", "frozenset", "dict")

Named = Sequence[Tuple[str, int]]


class User(NamedTuple):
    """A thread (address of its state) or a task (address), and the frame that leads to an object."""

    thread: Optional[int]
    task: Optional[int]
    frame: Frame


class Suspended(Protocol):
    """A task: its address, and the frames of its coroutines."""

    @property
    def address(self) -> int:
        """Address of the task."""

    @property
    def frames(self) -> Sequence[Frame]:
        """Frames of the task's coroutines, innermost first."""


def users_of(states: Iterable[ThreadState], tasks: Iterable[Suspended]) -> List[User]:
    """Return the frames of threads, and of a few tasks per innermost code: more would lead to the same objects."""
    users = [User(state.address, None, frame) for state in states for frame in state.frames[:_MOST_FRAMES]]
    alike: Dict[int, int] = {}
    for task in tasks:
        code = task.frames[0].code.address if task.frames else 0
        alike[code] = alike.get(code, 0) + 1
        if alike[code] <= _MOST_ALIKE and len(users) < _MOST_ROOTS:
            users += [User(None, task.address, frame) for frame in task.frames[:_MOST_FRAMES]]
    return users


class VariableSearch:
    """Search of one process; ``limit``: the search ends where it is once this has passed."""

    #: Most steps from a variable.
    steps = 3

    def __init__(self, python: Python, limit: TimeLimit) -> None:
        self.python = python
        self.objects = python.objects
        self._limit = limit
        self._visits = 0
        self._seen: Set[int] = set()
        self._parents: Dict[int, int] = {}  # object → object that first led to it
        self._names: Dict[int, str] = {}
        self._taken: Dict[int, int] = {}  # object → steps from a variable
        self._modules: Set[int] = set()

    def found_at(self, name: str, value: int, kind: str, user: User) -> Optional[Named]:
        """Handle an object that was reached; return the contents to follow, () for none, None for the default."""
        raise NotImplementedError

    def look(self, users: Iterable[User]) -> None:
        """Search from these frames, the program's own first."""
        for user in sorted(users, key=lambda user: user.frame.code.filename.endswith(MACHINERY)):
            if self.spent:
                break
            self._from_frame(user)

    def way_to(self, value: int) -> List[Tuple[int, str]]:
        """Return the objects that lead to one, with their names, itself first."""
        found: List[Tuple[int, str]] = []
        while value in self._names and len(found) < 16:
            found.append((value, self._names[value]))
            value = self._parents.get(value, 0)
        return found

    def reached(self, steps: int) -> Set[int]:
        """Return the objects reached within so many steps."""
        return {value for value, taken in self._taken.items() if taken <= steps}

    @property
    def spent(self) -> bool:
        """Whether the limit of visits or of time is reached."""
        return self._visits >= _MOST_VISITS or self._limit.passed()

    def _from_frame(self, user: User) -> None:
        """Search from a frame's locals and, once per module of the program, its globals."""
        frames = self.python.frames
        self._search(list(itertools.islice(frames.locals(user.frame), 200)), user)
        namespace = frames.globals(user.frame)
        if not namespace or namespace in self._modules or not is_program(user.frame.code.filename):
            return
        self._modules.add(namespace)
        try:
            named = list(self.objects.text_dict(namespace).items())[:2000]
        except (Fault, NotThat):
            return
        self._search([(name, value) for name, value in named if not name.startswith("__")], user)

    def _search(self, named: Named, user: User) -> None:
        """Search breadth first, so that the shortest name wins.

        Objects that another frame led to are visited again one step deep, to record this user.
        """
        waiting: Deque[Tuple[str, int, int]] = deque((name, value, 0) for name, value in named)
        mine: Set[int] = set()
        while waiting and not self.spent:
            name, value, steps = waiting.popleft()
            if not value or value in mine or (value in self._seen and steps > 1):
                continue
            mine.add(value)
            self._seen.add(value)
            self._names.setdefault(value, name)
            self._taken[value] = min(steps, self._taken.get(value, steps))
            self._visits += 1
            try:
                inner = self._inside(name, value, user)
            except (Fault, NotThat):
                continue
            if steps < self.steps:
                for inner_name, item in inner:
                    self._parents.setdefault(item, value)
                    waiting.append((inner_name, item, steps + 1))

    def _inside(self, name: str, value: int, user: User) -> Named:
        """Return the named contents of an object to follow. Raises Fault or NotThat."""
        kind = self.objects.type_name(value)
        if kind is None or kind in _LEAVES or kind.endswith(_CLOSED):
            return ()
        told = self.found_at(name, value, kind, user)
        if told is not None:
            return told
        flags = self.objects.type_of(value).flags
        if kind in CONTAINERS:
            return [(f"{name}[…]", item) for item in self.items(value, kind)]
        if flags & (L.FLAG_TUPLE | L.FLAG_LIST):  # named tuples and other subclasses
            return [(f"{kind}[…]", item) for item in self.items(value, "list")]
        cls = kind.rsplit(".", 1)[-1]
        return [
            (f"{cls}.{part}", item) for part, item in itertools.islice(attributes(self.objects, value).items(), 100)
        ]

    def items(self, value: int, kind: str, most: int = _MOST_ITEMS) -> Iterator[int]:
        """Return the first items of a container; none of a list longer than _LONG. Raises Fault or NotThat."""
        if kind == "dict":
            return (item for _key, item in itertools.islice(self.objects.dict_items(value), most))
        if kind in ("set", "frozenset"):
            return itertools.islice(self.objects.set_items(value), most)
        return iter(self.objects.items(value, _LONG)[:most] if self.objects.length(value) <= _LONG else ())
