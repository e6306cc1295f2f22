"""Fingerprints of values: numbers that differ when anything differs that was read of two values.

They tell whether the variables of a loop change from round to round. A value is followed into containers, attributes,
bound methods and suspended generators. What cannot be read in full has no fingerprint:

- an object of a type in C that is not listed here: others may change a lock, a file, a socket
- one with more parts than are read

Sources: Objects/{list,tuple,dict,enum,range,iter,method}object.c and Modules/itertoolsmodule.c of 3.8-3.15.
"""

from __future__ import annotations

from typing import Container, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from ...memory import Fault
from ..frames.callheights import least_height
from ..frames.frame import Frame, Frames
from ..frames.functions import Functions
from ..objects.attributes import attributes, class_value, members
from ..objects.builtins import MAX_TEXT, NotThat, TypeInfo
from ..runtime import layouts as L

#: Objects of one look, levels, bytes of a value, names of a module or class, and bases of a class.
_MOST_OBJECTS = 800
_MOST_LEVELS, _MOST_BYTES, _MOST_NAMES, _MOST_BASES = 6, 1 << 16, 2_000, 16
#: Types of objects that do not change, or whose changes are of no account: their address tells them apart.
_FIXED: FrozenSet[str] = frozenset((
    "NoneType", "ellipsis", "NotImplementedType", "module", "code",
    "method_descriptor", "member_descriptor", "wrapper_descriptor", "property", "staticmethod", "classmethod",
    "re.Pattern", "getset_descriptor",
))  # fmt: skip
#: Types whose own words tell all that changes in them, besides the objects that they refer to. Each with the words, counted
#: from the end of the object's header, that refer to objects.
_WORDS: Dict[str, Tuple[int, ...]] = {
    "list_iterator": (1,), "tuple_iterator": (1,), "range_iterator": (), "float": (), "complex": (), "enumerate": (1,),
    "range": (0, 1, 2), "slice": (0, 1, 2), "datetime.datetime": (), "datetime.date": (), "datetime.timedelta": (),
    "str_ascii_iterator": (1,), "str_iterator": (1,),
}  # fmt: skip
#: Bytes of the head of an instance: reference count and class. PyTypeObject.tp_weaklistoffset (Include/cpython/object.h).
_HEAD, _TP_WEAKLISTOFFSET = 16, 208
_CALLABLES = ("function", "builtin_function_or_method", "builtin_method")
_ITERATORS = ("enumerate", "zip", "map", "filter", "reversed", "generator")
_GENERATORS = ("generator", "coroutine", "async_generator")
_SETS, _DEQUE = ("set", "frozenset"), "collections.deque"
_LOGGERS = ("Logger", "RootLogger")
_PLAIN = L.FLAG_UNICODE | L.FLAG_BYTES | L.FLAG_LONG


class _Unread(Exception):
    """A part of a value cannot be read, or may be changed by others."""


class Prints:
    """Fingerprints of one interpreter's values; one object for each look."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self._objects = frames, frames.objects
        self._functions = Functions(frames)
        self._left = _MOST_OBJECTS
        self._above: Set[int] = set()
        self._known: Dict[int, int] = {}  # object → fingerprint
        self._classes: Dict[int, int] = {}  # the same of classes
        self._namespaces: Dict[int, Dict[str, int]] = {}  # of modules
        self._objects.forget_texts()

    def of_frame(self, frame: Frame, inner: Optional[Frame]) -> Dict[str, Optional[int]]:
        """Return name → fingerprint of a frame's variables, and of its loops' iterators as ""; None if it is not read in full.

        ``inner``: the frame that it has called.
        """
        found = {name: self.of(value) for name, value in self._frames.locals(frame)}
        values = self._stack(frame, inner)
        stack = [self.of(value) for value in values if self._iterates(value)] if values is not None else [None]
        found[""] = None if None in stack else hash(tuple(stack))
        return found

    def _iterates(self, address: int) -> bool:
        """Return whether an object is an iterator."""
        name = self._objects.type_name(address) or ""
        return (
            name.endswith("iterator")
            or name.startswith("itertools.")
            or name in _ITERATORS
            or (class_value(self._objects, address, "__next__") is not None)
        )

    def _stack(self, frame: Frame, inner: Optional[Frame]) -> Optional[List[int]]:
        """Return what is on the value stack of a frame that is in a call; None if its height is unknown."""
        height = self._frames.height(frame)
        if height is None:
            height = least_height(self._frames, frame, inner)
        if height is None:
            return None
        return [value for value in self._frames.value_stack(frame)[: height - frame.code.nlocalsplus] if value]

    def of_globals(self, frame: Frame) -> Dict[Tuple[int, str], Optional[int]]:
        """Return (namespace, name) → fingerprint of the globals that a frame's code uses; None if it is not read in full."""
        namespace, names = self._frames.globals(frame), frame.code.used_names()
        found: Dict[Tuple[int, str], Optional[int]] = {}
        try:
            known = self._objects.text_dict(namespace) if namespace else {}
            for name in (name for name in names if name in known):
                found[namespace or 0, name] = self.of(known[name])
                if self._objects.type_name(known[name]) == "module":
                    inside = self._of_module(known[name])
                    found.update({(known[name], each): self.of(inside[each]) for each in names if each in inside})
        except (Fault, NotThat):
            found[0, ""] = None
        return found

    def _of_module(self, address: int) -> Dict[str, int]:
        """Return name → value of a module; empty for a large one, whose names are functions. Raises Fault or NotThat."""
        if address not in self._namespaces:
            namespace = self._objects.field(address, L.MODULE_DICT)
            small = self._objects.length(namespace) <= _MOST_NAMES // 5
            self._namespaces[address] = self._objects.text_dict(namespace) if small else {}
        return self._namespaces[address]

    def of(self, address: int) -> Optional[int]:
        """Return the fingerprint of a value; None if it is not read in full."""
        try:
            return self._value(address, 0)
        except (Fault, NotThat, _Unread, UnicodeDecodeError):
            return None

    def _value(self, address: int, level: int) -> int:
        """Return the fingerprint of a value at a level. Raises Fault, NotThat or _Unread."""
        known = self._known.get(address)
        if known is not None:
            return known
        self._left -= 1
        if self._left < 0 or level > _MOST_LEVELS:
            raise _Unread
        if address in self._above:
            return 0  # a cycle: what it leads back to is read already
        info = self._objects.type_of(address)
        if info.flags & L.FLAG_TYPE:
            return hash((address, self._of_class(address)))
        if _is_listed(info, _FIXED) or self._is_logger(info):
            return hash(address)
        if info.name in _CALLABLES:
            return hash((address, *(self._value(value, level + 1) for value in self._functions.carried(address))))
        if info.flags & _PLAIN and not info.flags & L.FLAG_HEAP:
            return self._plain(address, info.flags)
        self._above.add(address)
        try:
            found = hash((info.address, *self._parts(address, info, level + 1)))
        finally:
            self._above.discard(address)
        self._known[address] = found
        return found

    def _plain(self, address: int, flags: int) -> int:
        objects = self._objects
        if flags & L.FLAG_UNICODE:
            if objects.memory.u64(address + objects.layout.str_length) > MAX_TEXT:
                raise _Unread
            return hash(objects.text(address))
        if flags & L.FLAG_BYTES:
            if objects.length(address) > _MOST_BYTES:
                raise _Unread
            return hash(objects.bytes_(address, _MOST_BYTES))
        return hash(objects.integer(address))

    def _parts(self, address: int, info: TypeInfo, level: int) -> List[int]:
        """Return the fingerprints of what a value consists of. Raises Fault, NotThat or _Unread."""
        found = self._contents(address, info, level)
        if found is None:
            return self._of_instance(address, info, level)
        if info.flags & L.FLAG_HEAP:  # a container's or a number's class of the program's own may have attributes
            found = [*found, *self._attributes(address, level)]
        return found

    def _contents(self, address: int, info: TypeInfo, level: int) -> Optional[List[int]]:
        """Return the same of a number, a text, a container, a method or a generator; None for anything else."""
        objects, flags, name = self._objects, info.flags, info.name
        if flags & _PLAIN:
            return [self._plain(address, flags)]
        if _is_listed(info, _WORDS):
            words, held = self._words(address, info), _WORDS[name]
            if len(words) <= max(held, default=-1):
                raise _Unread
            own = [hash(word) for index, word in enumerate(words) if index not in held]
            return [*own, *(self._value(words[index], level) for index in held if words[index])]
        if flags & (L.FLAG_LIST | L.FLAG_TUPLE | L.FLAG_DICT) or name in (*_SETS, _DEQUE):
            if objects.length(address) > self._left:
                raise _Unread
            return [self._value(item, level) for item in self._items(address, info)]
        if name == "method":
            function, owner = self._functions.function(address), self._functions.bound(address)
            if function is None or owner is None:
                raise _Unread
            return [self._value(function, level), self._value(owner, level)]
        return self._of_generator(address, level) if name in _GENERATORS else None

    def _items(self, address: int, info: TypeInfo) -> Iterator[int]:
        objects = self._objects
        if info.flags & (L.FLAG_LIST | L.FLAG_TUPLE):
            yield from objects.items(address, _MOST_OBJECTS)
        elif info.flags & L.FLAG_DICT:
            yield from (part for pair in objects.dict_items(address) for part in pair)
        else:
            yield from objects.deque_items(address) if info.name == _DEQUE else objects.set_items(address)

    def _words(self, address: int, info: TypeInfo) -> Tuple[int, ...]:
        """Return the words of an object behind its header. Raises Fault."""
        head = L.OB_SIZE + self._objects.layout.ob_extra
        return self._objects.memory.words(address + head, (info.basicsize - head) // 8)

    def _of_generator(self, address: int, level: int) -> List[int]:
        state, frame = self._frames.generator(address)
        if state == "running":
            raise _Unread  # what it does is on the stack, and not read here
        if frame is None:
            return [hash(state)]
        stack = self._stack(frame, None)
        if stack is None:
            raise _Unread
        values = [value for _name, value in self._frames.locals(frame)] + stack
        return [frame.lasti, *(self._value(value, level) for value in values)]

    def _of_instance(self, address: int, info: TypeInfo, level: int) -> List[int]:
        if not info.flags & L.FLAG_HEAP or not self._is_pythons(info):
            raise _Unread
        return [self._of_class(info.address), *self._attributes(address, level)]

    def _attributes(self, address: int, level: int) -> List[int]:
        found = attributes(self._objects, address)
        return [part for name, value in found.items() for part in (hash(name), self._value(value, level))]

    def _is_logger(self, info: TypeInfo) -> bool:
        """Return whether a class is one of the standard library's loggers, whose state is no progress of the program."""
        if info.name not in _LOGGERS or not info.flags & L.FLAG_HEAP:
            return False
        namespace = self._objects.memory.u64(info.address + self._objects.layout.tp_dict)
        module = self._objects.lookup(namespace, "__module__") if namespace else None
        return module is not None and self._objects.optional_text(module) == "logging"

    def _is_pythons(self, info: TypeInfo) -> bool:
        """Return whether a class, with all its bases but object, has no fields that C code defined."""
        weak = self._objects.memory.i64(info.address + self._objects.layout.ob_extra + _TP_WEAKLISTOFFSET)
        own = len(members(self._objects, info)) + (info.dictoffset > 0) + (weak > 0)
        return info.basicsize == _HEAD + self._objects.layout.ob_extra + 8 * own

    def _of_class(self, address: int) -> int:
        """Return the fingerprint of the data among the attributes of a class and its bases, as far as Python code made them."""
        known = self._classes.get(address)
        if known is not None:
            return known
        parts: List[int] = []
        base = address
        for _ in range(_MOST_BASES):
            info = self._objects.type_at(base)
            namespace = self._objects.memory.u64(base + self._objects.layout.tp_dict) if info.flags & L.FLAG_HEAP else 0
            if not namespace:
                break
            if self._objects.length(namespace) > _MOST_NAMES:
                raise _Unread
            parts += self._data(self._objects.text_dict(namespace))
            base = info.base
            if not base:
                break
        found = self._classes[address] = hash(tuple(parts))
        return found

    def _data(self, namespace: Dict[str, int]) -> Iterator[int]:
        """Yield the fingerprints of a class's attributes: numbers and texts; of others addresses, and lengths of containers."""
        for name, value in namespace.items():
            kind = self._objects.type_of(value)
            if kind.flags & _PLAIN:
                yield hash((name, self._plain(value, kind.flags)))
            elif kind.name == "float":
                yield hash((name, *self._words(value, kind)))
            elif kind.flags & (L.FLAG_LIST | L.FLAG_DICT) or kind.name in (*_SETS, _DEQUE):
                yield hash((name, value, self._objects.length(value)))
            else:
                yield hash((name, value))


def _is_listed(info: TypeInfo, names: Container[str]) -> bool:
    """Return whether a type is one of these of the interpreter's or the standard library's, and no class of the same name."""
    return info.name in names and (not info.flags & L.FLAG_HEAP or "." in info.name)
