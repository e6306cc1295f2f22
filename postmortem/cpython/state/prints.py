"""Fingerprints of values: numbers that differ when anything differs that was read of two values.

They tell whether the variables of a loop change from round to round. A value is followed into containers, attributes,
bound methods and suspended generators. What cannot be read in full has no fingerprint:

- an object of a type in C that is not listed here: others may change a lock, a file, a socket
- one with more parts than are read

Sources: Objects/{list,tuple,dict,enum,range,iter,method}object.c and Modules/itertoolsmodule.c of 3.8-3.15.
"""

from __future__ import annotations

import contextlib
from typing import Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from ...memory import Fault
from ..frames.callheights import least_height
from ..frames.frame import Frame, Frames
from ..frames.functions import Functions
from ..objects.attributes import attributes, members
from ..objects.builtins import NotThat, TypeInfo
from ..runtime import layouts as L

#: Objects of one look, levels, and bytes of a text or table.
MOST_OBJECTS = 800
_MOST_LEVELS, _MOST_BYTES = 6, 1 << 16
_SELF = 24  # PyMethodObject.im_self
#: Types whose instances stay as they are, or belong to the program's code: their address tells them apart.
_FIXED: FrozenSet[str] = frozenset((
    "NoneType", "ellipsis", "NotImplementedType", "module", "code",
    "method_descriptor", "member_descriptor", "wrapper_descriptor", "property", "staticmethod", "classmethod",
    "re.Pattern", "getset_descriptor", "Logger", "RootLogger",
))  # fmt: skip
#: Types whose own words tell all that changes in them, besides the objects that they refer to. Each with the words, counted
#: from the end of the object's header, that refer to objects.
_WORDS: Dict[str, Tuple[int, ...]] = {
    "list_iterator": (1,), "tuple_iterator": (1,), "range_iterator": (), "longrange_iterator": (), "float": (), "complex": (),
    "enumerate": (1,), "range": (0, 1, 2), "slice": (0, 1, 2), "itertools.count": (), "datetime.datetime": (),
    "datetime.date": (), "datetime.timedelta": (), "re.Match": (), "str_ascii_iterator": (1,), "str_iterator": (1,),
}  # fmt: skip
#: Bytes of the head of an instance: reference count and class. PyTypeObject.tp_weaklistoffset (Include/cpython/object.h).
_HEAD, _TP_WEAKLISTOFFSET = 16, 208
_CALLABLES = ("function", "builtin_function_or_method", "builtin_method")
_GENERATORS = ("generator", "coroutine", "async_generator")
_SETS = ("set", "frozenset")


class _Unread(Exception):
    """A part of a value cannot be read, or may be changed by others."""


class Prints:
    """Fingerprints of one interpreter's values; one object for each look."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self._objects = frames, frames.objects
        self._functions = Functions(frames)
        self._left = MOST_OBJECTS
        self._above: Set[int] = set()
        self._known: Dict[int, int] = {}  # object → fingerprint
        self._classes: Dict[int, int] = {}  # the same of classes

    def of_frame(self, frame: Frame, inner: Optional[Frame]) -> Dict[str, Optional[int]]:
        """Return name → fingerprint of a frame's variables, and of its value stack as ""; None if it is not read in full.

        - ``inner``: the frame that it has called

        Without "" if the height of its value stack is unknown.
        """
        found = {name: self.of(value) for name, value in self._frames.locals(frame)}
        values = self._stack(frame, inner)
        if values is not None:
            stack = [self.of(value) for value in values]
            found[""] = None if None in stack else hash(tuple(stack))
        return found

    def of_caller(self, frame: Frame, inner: Optional[Frame]) -> Dict[str, Optional[int]]:
        """Return the same of those variables that are numbers, texts or iterators, which count a caller's rounds."""
        values = [*self._frames.locals(frame), *(("", value) for value in self._stack(frame, inner) or ())]
        found: Dict[str, Optional[int]] = {}
        for name, value in values:
            with contextlib.suppress(Fault, NotThat, _Unread, UnicodeDecodeError):
                info = self._objects.type_of(value)
                if info.flags & (L.FLAG_UNICODE | L.FLAG_BYTES | L.FLAG_LONG):
                    found[name] = hash((found.get(name), self._plain(value, info.flags)))
                elif info.name in _WORDS:
                    found[name] = hash((found.get(name), *self._words(value, info)))
        return found

    def _stack(self, frame: Frame, inner: Optional[Frame]) -> Optional[List[int]]:
        """Return what is on the value stack below the call that a frame is in: the iterators of its loops; None if unknown."""
        height = self._frames.height(frame)
        if height is None:
            height = least_height(self._frames, frame, inner)
        if height is None:
            return None
        return [value for value in self._frames.value_stack(frame)[: height - frame.code.nlocalsplus] if value]

    def of_globals(self, frame: Frame) -> Dict[Tuple[int, str], Optional[int]]:
        """Return (namespace, name) → fingerprint of the globals that a frame's code uses; None if it is not read in full."""
        namespace = self._frames.globals(frame)
        try:
            known = self._objects.text_dict(namespace) if namespace else {}
        except (Fault, NotThat):
            return {}
        return {(namespace or 0, name): self.of(known[name]) for name in frame.code.used_names() if name in known}

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
        if info.name in _FIXED:
            return hash(address)
        if info.name in _CALLABLES:
            return hash((address, *(self._value(value, level + 1) for value in self._functions.carried(address))))
        if info.flags & (L.FLAG_UNICODE | L.FLAG_BYTES | L.FLAG_LONG):
            return self._plain(address, info.flags)
        self._above.add(address)
        try:
            found = hash((info.address, *self._parts(address, info.name, info.flags, level + 1)))
        finally:
            self._above.discard(address)
        self._known[address] = found
        return found

    def _plain(self, address: int, flags: int) -> int:
        objects = self._objects
        if flags & L.FLAG_UNICODE:
            if objects.field(address, L.OB_SIZE) > _MOST_BYTES:
                raise _Unread
            return hash(objects.text(address))
        if flags & L.FLAG_BYTES:
            return hash(objects.bytes_(address, _MOST_BYTES))
        return hash(objects.integer(address))

    def _parts(self, address: int, name: str, flags: int, level: int) -> List[int]:
        """Return the fingerprints of what a value consists of. Raises Fault, NotThat or _Unread."""
        objects = self._objects
        if name in _WORDS:
            words, held = self._words(address, objects.type_of(address)), _WORDS[name]
            own = [hash(word) for index, word in enumerate(words) if index not in held]
            return [*own, *(self._value(words[index], level) for index in held if words[index])]
        if flags & (L.FLAG_LIST | L.FLAG_TUPLE):
            return [self._value(item, level) for item in objects.items(address, MOST_OBJECTS)]
        if flags & L.FLAG_DICT:
            return [self._value(part, level) for pair in objects.dict_items(address) for part in pair]
        if name in _SETS:
            return [self._value(item, level) for item in objects.set_items(address)]
        if name == "collections.deque":
            if objects.length(address) > MOST_OBJECTS:
                raise _Unread
            return [self._value(item, level) for item in objects.deque_items(address)]
        if name == "method":
            return [objects.field(address, _SELF - 8), self._value(objects.field(address, _SELF), level)]
        if name in _GENERATORS:
            return self._of_generator(address, level)
        return self._of_instance(address, flags, level)

    def _words(self, address: int, info: TypeInfo) -> Tuple[int, ...]:
        """Return the words of an object behind its header. Raises Fault."""
        head = L.OB_SIZE + self._objects.layout.ob_extra
        return self._objects.memory.words(address + head, (info.basicsize - head) // 8)

    def _of_generator(self, address: int, level: int) -> List[int]:
        state, frame = self._frames.generator(address)
        if frame is None or state == "running":
            return [hash(state)]
        values = [value for _name, value in self._frames.locals(frame)] + (self._stack(frame, None) or [])
        return [frame.lasti, *(self._value(value, level) for value in values)]

    def _of_instance(self, address: int, flags: int, level: int) -> List[int]:
        info = self._objects.type_of(address)
        if not flags & L.FLAG_HEAP or not self._is_pythons(info):
            raise _Unread
        found = attributes(self._objects, address)
        parts = [part for name, value in found.items() for part in (hash(name), self._value(value, level))]
        return [self._of_class(info.address), *parts]

    def _is_pythons(self, info: TypeInfo) -> bool:
        """Return whether a class, with all its bases but object, has no fields that C code defined."""
        weak = self._objects.memory.i64(info.address + self._objects.layout.ob_extra + _TP_WEAKLISTOFFSET)
        own = len(members(self._objects, info)) + (info.dictoffset > 0) + (weak > 0)
        return info.basicsize == _HEAD + self._objects.layout.ob_extra + 8 * own

    def _of_class(self, address: int) -> int:
        """Return the fingerprint of the data among the attributes of a class and its bases, as far as Python code made them."""
        known = self._classes.get(address)
        if known is None:
            self._classes[address] = 0  # while it is read: its attributes may lead back to it
            info, layout = self._objects.type_at(address), self._objects.layout
            namespace = self._objects.memory.u64(address + layout.tp_dict) if info.flags & L.FLAG_HEAP else 0
            data = self._data(self._objects.text_dict(namespace)) if namespace else ()
            known = hash((self._of_class(info.base) if info.base else 0, *data))
            self._classes[address] = known
        return known

    def _data(self, namespace: Dict[str, int]) -> Iterator[int]:
        """Yield the fingerprints of a class's attributes: numbers and texts; of others addresses, and lengths of containers."""
        for name, value in namespace.items():
            kind = self._objects.type_of(value)
            if kind.flags & (L.FLAG_UNICODE | L.FLAG_BYTES | L.FLAG_LONG):
                yield hash((name, self._plain(value, kind.flags)))
            elif kind.flags & (L.FLAG_LIST | L.FLAG_DICT) or kind.name in (*_SETS, "collections.deque"):
                yield hash((name, value, self._objects.length(value)))
            else:
                yield hash((name, value))
