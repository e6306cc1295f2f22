"""Objects that lend parts of themselves, read from their structure: pools, limiters, semaphores, connectors.

Nothing here knows a library. An object X lends something if

- a `with` body began with one of the functions in which others wait for X (``begins``)
- X's own code makes the lent object, which refers to X (``makes``)
- X lists it: a container of X has what exists, another what is idle (``listed``)

X's numbers are attributes whose names say what they count: the limit of what it lends, and what is left (``limits``).
"""

from __future__ import annotations

from typing import Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..cpython.execution.instructions import Instructions, used_name
from ..cpython.frames.frame import Frame, Frames
from ..cpython.frames.functions import Functions
from ..cpython.heap.parts import Parts
from ..cpython.objects.attributes import class_value
from ..cpython.objects.builtins import NotThat
from ..cpython.objects.code import Code
from ..cpython.runtime import layouts as L
from ..memory import Fault

#: Parts of the names of attributes that limit what an object lends, and of those that limit something else.
_LIMITS = ("max", "limit", "size", "capacity", "total", "bound", "initial", "most")
_OTHER_LIMITS = (
    "idle", "wait", "time", "life", "retr", "age", "min", "keep", "usage", "host", "quer", "header", "redirect",
    "inactive", "recycle", "message", "depth", "buffer", "level", "byte", "pending", "attempt",
)  # fmt: skip
#: Methods by which a part goes back into a container, or waiters learn of it.
GIVES = frozenset((
    "put", "put_nowait", "append", "appendleft", "add", "insert", "push", "release", "notify", "notify_all", "set",
    "set_result", "heappush",
))  # fmt: skip
_MOST_LENT = 100_000
_ENTER, _ENTERS = ("__enter__", "__aenter__"), 2
#: Attributes of the standard library's queues that have their items (Lib/queue.py, asyncio/queues.py: 3.8-3.15), and
#: of home-made ones.
_QUEUED = ("queue", "_queue")
#: Functions of an object's class whose code is read because those in which others wait name them.
_MOST_CALLED, _MOST_NAMES = 40, 400
#: PyFunctionObject.func_globals: before func_code since 3.10, behind it before (Include/cpython/funcobject.h).
_GLOBALS_BEFORE, _GLOBALS_BEHIND = 16, 24


class Taking(NamedTuple):
    """The functions of an object in which agents wait for it."""

    thing: int
    codes: FrozenSet[int]  # addresses of code objects
    names: FrozenSet[str]
    frames: Tuple[Frame, ...]


class Listed(NamedTuple):
    """Objects of one class that containers of an object list."""

    kind: int  # address of the class
    out: Tuple[int, ...]  # not among the idle
    sure: bool  # True: other containers list idle ones
    names: FrozenSet[str]  # attributes that are the containers


class Numbers(NamedTuple):
    """Numbers that an object keeps about itself."""

    limits: Tuple[int, ...]  # numbers that may be the limit
    left: Optional[int]  # parts that nobody has
    empty: bool  # a container, such as of idle parts, is empty


class Lending:
    """Reads what objects lend; methods never raise."""

    def __init__(self, frames: Frames, parts: Parts) -> None:
        self._frames, self._objects, self._parts = frames, frames.objects, parts
        self._functions, self._instructions = Functions(frames), Instructions(frames.objects)
        self._makes: Dict[int, Tuple[Set[int], Set[int]]] = {}
        self._codes: Dict[int, Dict[str, Code]] = {}  # by class

    # ------------------------------------------------------------------ with bodies

    def begins(self, manager: int, generator: Optional[Frame], taking: Taking) -> bool:
        """Return whether entering a context manager took a part: it did what others now wait in.

        ``generator``: the suspended frame of a ``contextmanager``; what it does after the body does not count. A `with`
        of the object itself is no part if it opens and closes the whole: its ``__enter__`` is then none of the functions
        in which others wait, and calls none.
        """
        if generator is not None:
            if generator.code.address in taking.codes:
                return self._names(generator, taking.thing)
            return self._names(generator, taking.thing) and not taking.names.isdisjoint(self._used_before(generator))
        if manager != taking.thing and taking.thing not in self._parts.attributes(manager).values():
            return False
        for name in _ENTER:
            code = self._functions.code(class_value(self._objects, manager, name))
            if code is not None and (code.address in taking.codes or not taking.names.isdisjoint(code.used_names())):
                return True
            if code is not None and taking.names.intersection(self._called(manager, code.used_names())):
                return True
        return False

    def opens(self, manager: int, thing: int) -> bool:
        """Return whether entering a context manager uses the object that it refers to: it opens the whole, and lends no part.

        So do wrappers of functions that make the object, whose ``__aenter__`` awaits it and enters it in turn.
        """
        names = {name for name, value in self._parts.attributes(manager).items() if value == thing}
        codes = (self._functions.code(class_value(self._objects, manager, name)) for name in _ENTER) if names else ()
        return any(code is not None and not names.isdisjoint(code.used_names()) for code in codes)

    def _used_before(self, frame: Frame) -> Set[str]:
        """Return the names of globals and attributes that a frame's code uses before the current instruction."""
        names, instructions = frame.code.used_names(), self._instructions.of(frame.code)
        if instructions is None:
            return set(names)
        version = self._objects.layout.version
        loads = ((each.name, each.argument) for at, each in instructions.items() if at < frame.lasti)
        indices = (used_name(name, argument, version) for name, argument in loads)
        return {names[index] for index in indices if index is not None and index < len(names)}

    def _called(self, receiver: int, names: Sequence[str]) -> Set[str]:
        """Return the names that the receiver's methods of these names use; cached by its class."""
        methods = self._methods(receiver)
        found: Set[str] = set()
        for name in names[:_MOST_CALLED]:
            found.update(methods[name].used_names() if name in methods else ())
        return found

    def _names(self, frame: Frame, thing: int) -> bool:
        """Return whether a local variable of a frame, or an attribute of one, is the object."""
        for _name, value in list(self._frames.locals(frame))[:50]:
            if value == thing or thing in self._parts.attributes(value).values():
                return True
        return False

    # ------------------------------------------------------------------ lent objects

    def makes(self, taking: Taking, kind: int) -> Optional[bool]:
        """Return whether an object's own code makes instances of a class.

        True: when others take a part; None: at another time, such as in its ``__init__``; False: no code of it does.
        """
        known = self._makes.get(taking.thing)
        if known is None:
            known = self._makes[taking.thing] = (self._made_when_taken(taking), self._made_elsewhere(taking.thing))
        own = {*self._parts.classes(kind)[:1]}
        return True if own & known[0] else None if own & known[1] else False

    def returns(self, taking: Taking) -> Iterator[Tuple[str, Code, FrozenSet[str]]]:
        """Yield the methods of an object that may give something back, the opposite of those in which others wait.

        They use an attribute that the others use, and put something somewhere or wake somebody up: (name, code, those
        attributes).
        """
        own = set(self._parts.attributes(taking.thing))
        used = frozenset(name for frame in taking.frames for name in frame.code.used_names()) & own
        for name, code in self._methods(taking.thing).items():
            names = set(code.used_names())
            if code.address not in taking.codes and names & used and names & GIVES and not name.startswith("__"):
                yield name, code, used

    def uses(self, taking: Taking) -> Set[str]:
        """Return the names used in the functions in which others wait, and in the methods that these name."""
        found: Set[str] = set()
        for frame in taking.frames:
            names = frame.code.used_names()
            found.update(names)
            found |= self._called(taking.thing, names)
        return found

    def _methods(self, thing: int) -> Dict[str, Code]:
        """Return the code of the methods of an object's class and its bases, by name; cached by class."""
        kind = self._parts.type_of(thing) or 0
        if kind not in self._codes:
            found: Dict[str, Code] = {}
            for name, code in self._read_methods(thing):
                found.setdefault(name, code)
            self._codes[kind] = found
        return self._codes[kind]

    def _read_methods(self, thing: int) -> Iterator[Tuple[str, Code]]:
        try:
            for type_ in self._parts.classes(self._objects.type_of(thing).address):
                namespace = self._objects.memory.u64(type_ + self._objects.layout.tp_dict)
                if not self._objects.type_at(type_).flags & L.FLAG_HEAP or not namespace:
                    return
                for name, value in list(self._objects.text_dict(namespace).items())[:_MOST_NAMES]:
                    code = self._functions.code(value)
                    if code is not None:
                        yield name, code
        except (Fault, NotThat):
            return

    def marks(self, taking: Taking, names: Set[str]) -> bool:
        """Return whether the code in which others take a part uses an attribute of these names that is not its own."""
        foreign = names - set(self._parts.attributes(taking.thing))
        return not foreign.isdisjoint(self.uses(taking))

    def _made_when_taken(self, taking: Taking) -> Set[int]:
        found = self._classes_among(self._parts.attributes(taking.thing).values())
        called: Set[str] = set()
        for frame in taking.frames:
            names = frame.code.used_names()
            found |= self._named(self._frames.globals(frame), names)
            called.update(names)
        for name in sorted(called)[:_MOST_NAMES]:
            found |= self._classes_among([value for value in [class_value(self._objects, taking.thing, name)] if value])
            found |= self._named_by(class_value(self._objects, taking.thing, name))
        return found

    def _made_elsewhere(self, thing: int) -> Set[int]:
        """Return the classes that any function of an object's class names."""
        found: Set[int] = set()
        try:
            for type_ in self._parts.classes(self._objects.type_of(thing).address):
                namespace = self._objects.memory.u64(type_ + self._objects.layout.tp_dict)
                if not self._objects.type_at(type_).flags & L.FLAG_HEAP or not namespace:
                    break
                for value in list(self._objects.text_dict(namespace).values())[:_MOST_NAMES]:
                    found |= self._named_by(value)
        except (Fault, NotThat):
            pass
        return found

    def _named_by(self, called: Optional[int]) -> Set[int]:
        """Return the classes that a function names as globals."""
        function = self._functions.function(called)
        code = self._functions.code(function)
        if function is None or code is None:
            return set()
        layout = self._objects.layout
        before = layout.func_code - layout.ob_extra > _GLOBALS_BEFORE
        try:
            namespace = self._objects.field(function, _GLOBALS_BEFORE if before else _GLOBALS_BEHIND)
        except Fault:
            return set()
        return self._named(namespace, code.used_names())

    def _named(self, namespace: Optional[int], names: Sequence[str]) -> Set[int]:
        """Return the classes among globals of these names."""
        found: List[int] = []
        for name in names[:_MOST_NAMES]:
            try:
                value = self._objects.lookup(namespace, name) if namespace else None
            except (Fault, NotThat):
                return set()
            if value:
                found.append(value)
        return self._classes_among(found)

    def _classes_among(self, values: object) -> Set[int]:
        found: Set[int] = set()
        for value in values:  # type: ignore[attr-defined]
            try:
                if self._objects.type_of(value).flags & L.FLAG_TYPE:
                    found.add(value)
            except (Fault, NotThat):
                continue
        return found

    def out(self, things: Sequence[int], idle: Set[int]) -> List[int]:
        """Return the lent objects of one class that were not given back.

        One that was has an attribute set to None that others do not, or refers to an idle part.
        """
        lost = {thing: self._lost(thing) for thing in things}
        common = set.intersection(*lost.values()) if lost else set()
        return [
            thing
            for thing in things
            if lost[thing] == common and thing not in idle and idle.isdisjoint(self._parts.attributes(thing).values())
        ]

    def _lost(self, thing: int) -> Set[str]:
        """Return the names of a thing's attributes that are None."""
        values = self._parts.attributes(thing)
        return {name for name, value in values.items() if self._objects.type_name(value) == "NoneType"}

    # ------------------------------------------------------------------ containers

    def containers(self, thing: int) -> Iterator[Tuple[str, Tuple[int, ...], bool]]:
        """Yield (attribute, items, whether it is a queue) of an object's containers."""
        for name, value in self._parts.attributes(thing).items():
            items = self._parts.items(value)
            if items is not None:
                if self._objects.type_name(value) != "tuple":
                    yield name, items, self._objects.type_name(value) == "_queue.SimpleQueue"
                continue
            inner = self._parts.attributes(value) if self._parts.is_plain(value) else {}
            for queued in _QUEUED:
                several = self._parts.items(inner[queued]) if queued in inner else None
                if several is not None:
                    yield name, several, True

    def idle(self, thing: int) -> Set[int]:
        """Return the parts that an object has at rest: the items of its queues, and of containers within others."""
        found: Set[int] = set()
        lists: List[Set[int]] = []
        for _name, items, queue in self.containers(thing):
            if queue:
                found.update(items)
            elif items:
                lists.append(set(items))
        for one in lists:
            if any(one < other for other in lists):
                found |= one
        return found

    def listed(self, thing: int, idle: Set[int]) -> List[Listed]:
        """Return the parts that an object lists, by class, without the idle ones.

        What has containers as values sorts something by its keys, such as connections by host: neither is a part.
        """
        by_kind: Dict[int, Dict[int, bool]] = {}
        names: Dict[int, Set[str]] = {}
        for name, items, queue in self.containers(thing):
            sorts = queue or any(map(self._parts.has_items, items))
            for item in items if not sorts else ():
                if self._parts.is_plain(item) and item != thing:
                    kind = self._parts.type_of(item)
                    if kind is not None:
                        by_kind.setdefault(kind, {})[item] = True
                        names.setdefault(kind, set()).add(name)
        rests = any(queue for _name, _items, queue in self.containers(thing)) or bool(idle)
        return [
            Listed(kind, tuple(item for item in items if item not in idle), rests, frozenset(names[kind]))
            for kind, items in by_kind.items()
        ]

    def members(self, thing: int) -> Iterator[FrozenSet[int]]:
        """Yield the items of each set and dict of an object: who is listed in order, in a list, holds nothing by it."""
        for value in self._parts.attributes(thing).values():
            items = self._parts.items(value)
            if items and self._parts.is_unordered(value):
                yield frozenset(items)

    # ------------------------------------------------------------------ numbers

    def numbers(self, thing: int) -> Numbers:
        """Return what an object says of its limit and of what is left."""
        values = self._parts.attributes(thing)
        limits, overflow, left, empty = set(self._limits(values)), None, None, False
        inner: Set[int] = set()
        for value in values.values():
            bound = self._objects.deque_bound(value)
            if bound is not None and 0 < bound <= _MOST_LENT:
                limits.add(bound)
            if self._parts.is_plain(value):
                within = self._parts.attributes(value)
                if any(name in within for name in (*_QUEUED, "_waiters", "_cond")):  # a queue, a semaphore
                    inner.update(self._limits(within))
                    permits = self._integer(within.get("_value"))
                    left = permits if permits is not None and "_flag" not in within else left
        for name, value in values.items():
            if "max" in name.lower() and "overflow" in name.lower():
                overflow = self._integer(value)
                limits.discard(overflow if overflow is not None else -1)
        if overflow is not None:
            inner = {size + overflow for size in inner} if overflow >= 0 else set()
        for _name, items, _queue in self.containers(thing):
            empty = empty or not items
        return Numbers(tuple(sorted(limits | inner)), left, empty)

    def is_full(self, taking: Taking, requests: Set[int], works: Callable[[int], bool]) -> Optional[int]:
        """Return the limit of an object that counts, or lists, as much as it lends at most; None if it does not say so.

        Call it for an object without idle parts. ``requests``: classes of what stands for those who wait; ``works``: whether
        an object is a thread or task, which an object lists that has workers.

        The functions in which others wait compare the two: an attribute that limits, and one whose value is the same.
        With an overflow, which begins below zero, the limit is that and the places of the queue inside.
        """
        values, used = self._parts.attributes(taking.thing), self.uses(taking)
        own = {name: self._integer(value) for name, value in values.items() if name in used}
        counts = {name: number for name, number in own.items() if number is not None and not _limits_something(name)}
        for name, limit in own.items():
            stem = name.lower().replace("max", "").strip("_")
            overflow = "overflow" in stem
            if limit is None or not (limit or overflow) or name in counts or not (overflow or _limits_this(name)):
                continue
            if limit in counts.values() and not overflow:
                return limit
            if any(number == limit and count.strip("_") == stem for count, number in counts.items()):
                sizes = self.numbers(taking.thing).limits
                return sizes[0] if len(sizes) == 1 else limit or None
        sizes = self.numbers(taking.thing).limits
        several = [one for one in self.listed(taking.thing, set()) if one.kind not in requests]
        listed = [one for one in several if one.sure or not one.names.isdisjoint(used)]
        return next((len(one.out) for one in listed if len(one.out) in sizes and not any(map(works, one.out))), None)

    def emptied(self, taking: Taking, slept_on: Set[Optional[int]]) -> Optional[int]:
        """Return the places of the queue in which an object keeps its parts, if all are out; None for other objects.

        It has a bound, is filled when the object is made, and is where all waiters sleep (``slept_on``): urllib3's pools
        of connections put as many None there (connectionpool.py of 1.25 to 2.5).
        """
        begins = self._methods(taking.thing).get("__init__")
        used = set(begins.used_names()) if begins is not None else set()
        if used.isdisjoint(("put", "put_nowait")):
            return None
        for name, value in self._parts.attributes(taking.thing).items():
            if name in used and slept_on == {value}:
                parts = self._parts.attributes(value)
                items = parts.get("queue", parts.get("_queue"))
                limit = self._integer(parts.get("maxsize", parts.get("_maxsize")))
                if limit is not None and limit > 0 and items and self._objects.length_or_none(items) == 0:
                    return limit
        return None

    def _limits(self, values: Dict[str, int]) -> Iterator[int]:
        for name, value in values.items():
            if _limits_this(name):
                number = self._integer(value)
                if number is not None and 0 < number <= _MOST_LENT:
                    yield number

    def _integer(self, value: Optional[int]) -> Optional[int]:
        """Return an int's value; None for a bool, or no int."""
        if value is None or self._objects.type_name(value) == "bool":
            return None
        return self._objects.integer_or_none(value)


def _limits_something(name: str) -> bool:
    """Return whether an attribute's name is that of a limit or a time rather than of a count."""
    return any(part in name.lower() for part in (*_LIMITS, *_OTHER_LIMITS))


def _limits_this(name: str) -> bool:
    """Return whether an attribute's name is that of a limit of what its object lends."""
    lower = name.lower()
    return any(part in lower for part in _LIMITS) and not any(part in lower for part in _OTHER_LIMITS)
