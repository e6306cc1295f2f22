"""Calls of what is written in C: methods of containers, builtin functions and classes, ``getattr`` and ``super``."""

from __future__ import annotations

from functools import cached_property
from typing import Callable, Dict, List, Mapping, Optional

from .lookup import Lookup, Place
from .values import MOST_ATOMS, PLAIN, UNKNOWN, Atom, Value, either, one_of

#: Alternatives of a callable that are followed.
MOST_CALLED = 24
#: Methods of containers in C that store their arguments, and those that return an item.
_FILLS = frozenset((
    "append", "appendleft", "add", "extend", "extendleft", "insert", "put", "update", "setdefault", "__setitem__",
))  # fmt: skip
_SAME = frozenset(("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter", "dict", "aiter"))
_GIVES_ITSELF = frozenset(("copy", "values", "keys", "__iter__", "__enter__", "__aenter__", "__await__"))
#: Files whose context managers give back what they took: their `with` ends nobody else's wait.
_BALANCED = ("/threading.py", "/asyncio/locks.py", "/asyncio/mixins.py")
#: Functions whose results reach nothing.
_TELLS = frozenset((
    "len", "isinstance", "issubclass", "print", "repr", "str", "id", "hash", "bool", "int", "float", "hasattr", "type",
))  # fmt: skip


class CallsInC(Lookup):
    """Results of calls in C, which are not followed: what they may give back, or store."""

    def call_method(self, name: str, owner: Value, given: List[Value]) -> Value:
        """Call a method in C: of a container, or of something whose result is unknown."""
        if name in _FILLS:
            value = either(*given)
            if name in ("extend", "extendleft", "update"):
                value = self.items(value)
            self.put(owner, value)
            return self.items(owner) if name == "setdefault" else PLAIN
        if name in _GIVES_ITSELF:
            return owner
        if name == "items":
            found: List[Atom] = []
            for atom in owner:
                if atom[0] == "obj":
                    found += [("tuple", pair) for pair in self.heap.entries(atom[1])]
                elif atom[0] == "map":
                    found += [("tuple", (frozenset((("str", text),)), value)) for text, value in atom[1]]
            others = self.items(owner)
            both = [("tuple", (UNKNOWN, others))] if others else []
            return frozenset((("many", one_of([*found[: MOST_ATOMS - 1], *both])),))
        if name == "get" and given:
            return either(self.item(owner, given[0]), *given[1:])
        return self.items(owner)

    def call_builtin(self, name: str, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        """Call a function or class in C."""
        if name in _SAME:
            return given[0] if given else UNKNOWN
        if name in _TELLS:
            return PLAIN
        known = self._known.get(name)
        found = known(given, run) if known is not None else None
        if found is not None:
            return found
        inner = self.items(either(*given)) if given else UNKNOWN
        return either(inner, frozenset((("many", inner),))) if inner else UNKNOWN

    @cached_property
    def _known(self) -> Mapping[str, Callable[[List[Value], Optional[Place]], Optional[Value]]]:
        """Functions with a meaning of their own; None from one of them for arguments that it does not understand."""
        return {
            "super": self._super,
            "getattr": self._named_later,
            "setattr": self._set_later,
            "enumerate": self._enumerate,
            "zip": self._zip,
            "map": self._map,
            "filter": lambda given, _run: given[1] if len(given) > 1 else None,
            "heappush": self._push,
        }

    def _set_later(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        for atom in given[1] if len(given) > 2 else ():
            if atom[0] == "str":
                self.store_attribute(given[0], atom[1], given[2], run)
        return PLAIN

    def _enumerate(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        each = self.items(given[0]) if given else UNKNOWN
        return frozenset((("many", frozenset((("tuple", (PLAIN, each)),))),))

    def _zip(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        return frozenset((("many", frozenset((("tuple", tuple(map(self.items, given))),))),))

    def _map(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        if not given:
            return None
        return frozenset((("many", self.call(given[0], [self.items(each) for each in given[1:]], {}, run)),))

    def _push(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        if given:
            self.put(given[0], either(*given[1:]))
        return PLAIN

    def _named_later(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        """Return an attribute by a name that the code makes: any method of the class's own if it is unknown."""
        if len(given) < 2:
            return None
        texts = [atom[1] for atom in given[1] if atom[0] == "str"]
        if texts:
            return either(*(self.attribute(given[0], text, run) for text in texts), *given[2:])
        found: List[Atom] = []
        for atom in given[0]:
            type_ = self.heap.type_of(atom)
            for cls in self.heap.mro(type_)[:4] if type_ else ():
                for name, value in self.heap.namespace_of(cls).items():
                    if self.heap.kind(value) == "function" and not name.startswith("__"):
                        found.append(("method", value, atom))
        return one_of(found[:MOST_CALLED])

    def _super(self, given: List[Value], run: Optional[Place]) -> Optional[Value]:
        bound = given[1] if len(given) > 1 else run.first() if run is not None else UNKNOWN
        if run is None:
            return UNKNOWN
        return one_of(("super", run.code.address, atom) for atom in bound if atom[0] in ("obj", "inst"))

    def special(self, value: Value, name: str, run: Optional[Place]) -> Value:
        """Return a context manager's ``__enter__`` or ``__exit__``, without those that only give back what they took."""
        found: List[Atom] = []
        for atom in value:
            type_ = self.heap.type_of(atom)
            method = self._of_class(atom, type_, name, run) if type_ else None
            for each in method or ():
                function = self.functions.function(each[1]) if each[0] == "method" else None
                if function is not None and not function.code.filename.endswith(_BALANCED):
                    found.append(each)
        return frozenset(found)
