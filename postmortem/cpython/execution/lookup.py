"""Loading of attributes, as the interpreter looks them up: the instance, its class and bases, descriptors."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Tuple

from ..objects.code import Code
from .library import Library, Limits
from .store import Store
from .values import PLAIN, UNKNOWN, Atom, Value, either

#: Names of methods that are noted when loaded or called: they end waits (threading, queue, asyncio, concurrent.futures).
OPERATIONS = frozenset((
    "set", "notify", "notify_all", "notifyAll", "put", "put_nowait", "get", "get_nowait", "task_done", "shutdown",
    "release", "acquire", "wait", "abort", "reset", "set_result", "set_exception", "set_running_or_notify_cancel", "cancel",
    "send", "send_exception", "release_on_behalf_of", "callback", "errback",
))  # fmt: skip
#: Stands for a call of the value itself.
CALL = "()"


#: Stands for a change of an item, and with the methods below for any change of a container's contents.
ITEM = "[]="
CHANGES = frozenset((
    ITEM, "append", "appendleft", "add", "extend", "extendleft", "insert", "update", "setdefault", "pop", "popleft", "popitem",
    "remove", "discard", "clear", "__setitem__", "__delitem__", "difference_update", "intersection_update",
    "symmetric_difference_update",
))  # fmt: skip


def stored(name: str) -> str:
    """Return the operation that stands for storing an attribute, or a global variable, of this name."""
    return f".{name} ="


class Watched(NamedTuple):
    """What changes a variable.

    - ``applied``: operations on its object: the owner of an attribute, the dict of a module's globals, a container
    - ``anywhere``: operations that may be on that object whatever their operand seems to be
    """

    applied: FrozenSet[str]
    anywhere: FrozenSet[str] = frozenset()


class Place:
    """The instruction that is evaluated, and whether the code can still run it.

    ``begun``: offset of the instruction after which the code goes on; -1 if it is called anew.
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        self.at = 0
        self.begun = -1

    @property
    def is_live(self) -> bool:
        """Whether the current instruction can run."""
        raise NotImplementedError

    def first(self) -> Value:
        """Return the first parameter, usually self."""
        raise NotImplementedError


class Applied(NamedTuple):
    """An operation, the value that it is applied to, and where.

    ``begun``: offset of the instruction after which the code goes on; -1 if it is called anew.
    """

    operation: str
    value: Value
    code: Optional[Code]
    offset: int
    begun: int = -1


_Key = Tuple[str, Value, int, int]


class Lookup(Store):
    """Attributes as values; notes the operations that are loaded, and what is handed on.

    ``applied``: operations; ``passed``: arguments of calls of something unknown; ``incomplete``: whether anything was
    left out.
    """

    def __init__(self, library: Library, limits: Limits) -> None:
        super().__init__(library.heap)
        self.library = library
        self.limits = limits
        self.incomplete = False
        self.functions = library.functions
        self.watched: FrozenSet[str] = frozenset()
        self.applied: Dict[_Key, Applied] = {}
        self.passed: Dict[_Key, Applied] = {}

    def call(self, called: Value, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        """Return what a call may give."""
        raise NotImplementedError

    # ------------------------------------------------------------------ notes

    def note(self, operation: str, value: Value, run: Optional[Place]) -> None:
        """Note an operation on a value; without ``run`` it is the interpreter's own, as of a signal handler."""
        if value and value != PLAIN and (run is None or run.is_live):
            self._add_to(self.applied, operation, value, run)

    def store_attribute(self, owner: Value, name: str, value: Value, run: Optional[Place]) -> None:
        """Store an attribute, and note that if it is one of ``watched``."""
        self.note_stored(name, owner, run)
        self.store(owner, name, value)

    def note_stored(self, name: str, owner: Value, run: Optional[Place]) -> None:
        """Note that an attribute, or a global variable of a namespace, is stored if that is one of ``watched``."""
        operation = stored(name) if self.watched else ""
        if operation in self.watched:
            self.note(operation, owner or frozenset((("name", name),)), run)

    def note_changed(self, container: Value, run: Optional[Place]) -> None:
        """Note that an item of a container changes, if that is one of ``watched``."""
        if ITEM in self.watched:
            self.note(ITEM, container, run)

    def hand_on(self, values: Iterable[Value], run: Optional[Place]) -> None:
        """Note the arguments of a call of something unknown."""
        for value in values:
            if value and value != PLAIN and (run is None or run.is_live):
                self._add_to(self.passed, "", value, run)

    @staticmethod
    def _add_to(notes: Dict[_Key, Applied], operation: str, value: Value, run: Optional[Place]) -> None:
        code, at = (run.code, run.at) if run is not None else (None, 0)
        begun = run.begun if run is not None else -1
        key = (operation, value, code.address if code is not None else 0, at)
        if key not in notes:
            notes[key] = Applied(operation, value, code, at, begun)

    def operate(self, values: Iterable[Value], run: Place) -> None:
        """Note the operands of an operator, a test or a format, whose own methods are not followed."""

    def overwrite(self, before: Value, after: Value, run: Place) -> None:
        """Note that a variable gets a value in place of what it held."""

    # ------------------------------------------------------------------ attributes

    def attribute(self, value: Value, name: str, run: Optional[Place]) -> Value:
        """Return what loading an attribute gives."""
        if name in OPERATIONS or name in self.watched:
            self.note(name, value, run)
        if not value:
            return frozenset((("name", name),))
        if len(value) == 1:
            (atom,) = value
            return self._attribute(atom, name, run)
        return either(*(self._attribute(atom, name, run) for atom in value))

    def _attribute(self, atom: Atom, name: str, run: Optional[Place]) -> Value:
        kind = atom[0]
        stored = self.attributes.get((atom, name), UNKNOWN)
        if kind == "obj":
            found = self._of_object(atom, atom[1], name, run)
        elif kind == "inst":
            found = self._of_class(atom, atom[1], name, run) or self._of_c_base(atom, atom[1], name)
        elif kind == "ns":
            found = self.heap.value(self.heap.namespace(atom[1]).get(name))
        elif kind == "super":
            found = self._of_super(atom, name)
        elif kind in ("new", "tuple", "many", "map", "str"):
            found = frozenset((("cmethod", name, atom),))
        elif kind == "plain":
            return PLAIN
        else:
            found = None
        if found is None:
            return stored or frozenset((("name", name),))
        return either(found, stored) if stored else found

    def _of_object(self, atom: Atom, address: int, name: str, run: Optional[Place]) -> Optional[Value]:
        """Return an attribute of an object in memory; None if it has none of that name."""
        heap, kind = self.heap, self.heap.kind(address)
        if kind == "module":
            return heap.value(heap.of_instance(address, name)) or None
        if heap.is_class(address):
            found = heap.in_class(address, name)
            return None if found is None else self._from_class(atom, found, None, name, run)
        own = heap.of_instance(address, name)
        if own is not None:
            return heap.value(own)
        found_in_class = self._of_class(atom, heap.type_of(atom), name, run)
        if found_in_class is not None:
            return found_in_class
        if kind in ("method", "function"):
            return None
        if kind == "functools.partial" and name == "func":
            return heap.value(heap.field(address, 16))
        return self._of_c_base(atom, heap.type_of(atom), name)

    def _of_c_base(self, atom: Atom, type_: int, name: str) -> Optional[Value]:
        """Return a method that a base in C may have, whose dict is elsewhere for builtin types since 3.12."""
        in_c = any(not self.heap.is_written_in_python(cls) for cls in self.heap.mro(type_)[:-1]) if type_ else True
        return frozenset((("cmethod", name, atom),)) if in_c else None

    def _of_class(self, atom: Atom, type_: int, name: str, run: Optional[Place]) -> Optional[Value]:
        """Return an attribute that an instance has from its class; None if there is none."""
        found = self.heap.in_class(type_, name) if type_ else None
        return None if found is None else self._from_class(("obj", type_), found, atom, name, run)

    def _from_class(
        self, owner: Atom, found: int, atom: Optional[Atom], name: str, run: Optional[Place]
    ) -> Optional[Value]:
        """Return what a value in a class's dict gives, loaded from an instance, or with None from the class."""
        heap, kind = self.heap, self.heap.kind(found)
        if kind == "function":
            return frozenset((("method", found, atom),)) if atom is not None else heap.value(found)
        if kind == "staticmethod":
            return heap.value(heap.wrapped(found))
        if kind == "classmethod":
            inner = heap.wrapped(found)
            cls: Atom = ("obj", heap.type_of(atom)) if atom is not None else owner
            return frozenset((("method", inner, cls),)) if inner and heap.kind(inner) == "function" else UNKNOWN
        if atom is None:
            return heap.value(found)
        if kind in ("method_descriptor", "wrapper_descriptor"):
            return frozenset((("cmethod", name, atom),))
        if kind in ("member_descriptor", "getset_descriptor"):
            return None
        return self._from_descriptor(atom, found, kind, run)

    def _from_descriptor(self, atom: Atom, found: int, kind: str, run: Optional[Place]) -> Value:
        """Return what a property, a field of a namedtuple, or a plain value gives for an instance."""
        heap = self.heap
        if kind == "property" or "cached_property" in kind:
            getter = heap.wrapped(found) if kind == "property" else heap.of_instance(found, "func")
            return self.call(heap.value(getter), [frozenset((atom,))], {}, run) if getter else UNKNOWN
        if kind.endswith("_tuplegetter") and atom[0] == "obj":
            items, index = heap.sequence(atom[1]), heap.index_of(found)
            return items[index] if index < len(items) else UNKNOWN
        return heap.value(found)

    def _of_super(self, atom: Atom, name: str) -> Optional[Value]:
        """Return a method of the class after the one that defines the running function."""
        _kind, code, bound = atom
        found: List[Atom] = []
        behind = False
        type_ = bound[1] if bound[0] == "obj" and self.heap.is_class(bound[1]) else self.heap.type_of(bound)
        for cls in self.heap.mro(type_) if type_ else ():
            value = self.heap.namespace_of(cls).get(name)
            if not value or self.heap.kind(value) != "function":
                continue
            function = self.functions.function(value)
            if function is not None and function.code.address == code:
                found, behind = [], True
                continue
            found.append(("method", value, bound))
            if behind:
                break
        return frozenset(found[:1] if behind else found) or None
