"""Texts of values, like ``repr`` but without running any code of the target.

- Texts are bounded, containers to a few items and levels, cycles end.
- What looks like a secret (``redaction.secrets``) is masked.
- An unknown value is shown as its type and address.

Sources: Include/cpython/*object.h and Objects/{bytearray,range,slice,func,class,method}object.c of 3.8-3.14: the words
after the object's header.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Tuple

from ...memory import Fault
from ...redaction.secrets import MASK, is_secret, masked
from ..frames.exceptions import qualified
from ..frames.frame import Frames
from ..objects.attributes import attribute, attributes, class_value
from ..objects.builtins import NotThat, Objects
from ..objects.code import Code
from ..runtime import layouts as L
from ..sync.locks import Locks

LIMIT, ITEMS, DEPTH = 120, 10, 2
#: Largest dict, set or deque that is opened; larger ones are only counted.
MAX_OPENED = 10_000

_BRACKETS = {
    "tuple": ("(", ")"), "list": ("[", "]"), "set": ("{", "}"), "frozenset": ("frozenset({", "})"),
    "collections.deque": ("deque([", "])"),
}  # fmt: skip


class Values:
    """Texts of objects of one interpreter; ``threads``: ident → name, for owners of locks."""

    def __init__(self, frames: Frames, threads: Optional[Dict[int, str]] = None) -> None:
        self._frames = frames
        self._objects: Objects = frames.objects
        self._locks = Locks(frames)
        self._threads = threads or {}
        self._known: Dict[str, Callable[[_Reading, int], str]] = {
            "NoneType": lambda _r, _a: "None",
            "ellipsis": lambda _r, _a: "...",
            "bool": self._bool,
            "float": self._float,
            "complex": self._complex,
            "bytearray": self._bytearray,
            "range": self._range,
            "slice": self._slice,
            "function": self._function,
            "builtin_function_or_method": self._builtin,
            "method": self._method,
            "module": self._module,
            "generator": self._suspended,
            "coroutine": self._suspended,
            "async_generator": self._suspended,
            "numpy.ndarray": self._array,
            "_thread.lock": self._lock,
            "_thread.RLock": self._lock,
            "mappingproxy": self._proxy,
        }

    def describe(self, address: int, limit: int = LIMIT) -> str:
        """Return the text of a value in at most ``limit`` characters. Never raises: unreadable parts say so."""
        return _cut(self._text(_Reading(DEPTH, frozenset(), limit), address), limit)

    def type(self, address: int) -> str:
        """Return the class name of an object as tracebacks print it."""
        return qualified(self._objects, address)

    def message(self, exception: int, limit: int = LIMIT) -> Optional[str]:
        """Return the message of an exception; None if unreadable.

        Its only argument if that is a str, else all arguments.
        """
        objects = self._objects
        try:
            args = objects.items(objects.memory.u64(exception + objects.layout.be_args))
            if len(args) == 1 and objects.type_of(args[0]).flags & L.FLAG_UNICODE:
                return _cut(masked(objects.text(args[0])), limit)
        except (Fault, NotThat, UnicodeDecodeError):
            return None
        reading = _Reading(DEPTH, frozenset(), limit)
        return _cut(", ".join(self._items(reading, exception, args)), limit)

    # ------------------------------------------------------------------ one value

    def _text(self, reading: _Reading, address: int) -> str:
        """Return the text of a value; a placeholder for cycles and unreadable values."""
        if address in reading.above:
            return "…"
        try:
            return self._of_type(reading, address)
        except (Fault, NotThat, UnicodeDecodeError, IndexError, OverflowError):
            name = self._objects.type_name(address)
            return f"<{name} at {address:#x}>" if name else "<unreadable>"

    def _of_type(self, reading: _Reading, address: int) -> str:
        """Return the text of a value by its type. Raises Fault or NotThat."""
        info = self._objects.type_of(address)
        known = self._known.get(info.name)
        if known is not None:
            return known(reading, address)
        if info.flags & L.FLAG_TYPE:
            return f"<class {self._class_name(address)}>"
        for flag, describe in (
            (L.FLAG_UNICODE, self._str),
            (L.FLAG_BYTES, self._bytes),
            (L.FLAG_LONG, self._int),
            (L.FLAG_TUPLE | L.FLAG_LIST, self._sequence),
            (L.FLAG_DICT, self._dict),
            (L.FLAG_EXCEPTION, self._exception),
        ):
            if info.flags & flag:
                return self._subclass(info.name, address, describe(reading, address))
        if info.name in _BRACKETS:
            return self._sequence(reading, address)
        return self._instance(reading, address)

    def _subclass(self, name: str, address: int, text: str) -> str:
        """Add the class to the text of a subclass: ``Color.RED``, ``Text('…')``."""
        if name in ("str", "bytes", "int", "tuple", "list", "dict") or text.startswith(
            name.rsplit(".", maxsplit=1)[-1]
        ):
            return text
        member = attribute(self._objects, address, "_name_")
        if member is not None:
            return f"{name}.{self._objects.text(member)}"
        return f"{name}({text})"

    def _word(self, address: int, index: int) -> int:
        """Return a word of an object, counted from the end of its header. Raises Fault."""
        return self._objects.field(address, L.OB_SIZE + 8 * index)

    # ------------------------------------------------------------------ scalars

    def _bool(self, _reading: _Reading, address: int) -> str:
        return str(bool(self._objects.integer(address)))

    def _int(self, _reading: _Reading, address: int) -> str:
        tag = self._word(address, 0)
        size = tag - (1 << 64) if tag >> 63 else tag
        digits = tag >> 3 if self._objects.layout.long_tag else abs(size)
        if digits <= 4:
            return str(self._objects.integer(address))
        if digits > 1 << 40:
            raise NotThat("damaged int")
        return f"<int of about {math.ceil(digits * 30 * math.log10(2)):,} digits>"

    def _float(self, _reading: _Reading, address: int) -> str:
        return repr(self._objects.memory.f64(address + self._objects.layout.float_value))

    def _complex(self, _reading: _Reading, address: int) -> str:
        memory, start = self._objects.memory, address + self._objects.layout.ob_size
        return repr(complex(memory.f64(start), memory.f64(start + 8)))

    def _str(self, reading: _Reading, address: int) -> str:
        text = masked(self._objects.text(address))
        return _long(repr(text[: reading.limit]), self._word(address, 0), len(text) > reading.limit, "characters")

    def _bytes(self, reading: _Reading, address: int) -> str:
        length = self._word(address, 0)
        return self._raw(self._objects.bytes_(address, 4096), length, reading.limit)

    def _bytearray(self, reading: _Reading, address: int) -> str:
        length, start = self._word(address, 0), self._word(address, 3)
        raw = self._objects.memory.read(start, min(length, 4096)) if length else b""
        return f"bytearray({self._raw(raw, length, reading.limit)})"

    @staticmethod
    def _raw(raw: bytes, length: int, limit: int) -> str:
        kept = masked(raw.decode("latin-1")).encode("latin-1", "replace")
        return _long(repr(kept[:limit]), length, len(kept) > limit, "bytes")

    def _range(self, reading: _Reading, address: int) -> str:
        start, stop, step = (self._text(reading, self._word(address, i)) for i in range(3))
        return f"range({start}, {stop})" if step == "1" else f"range({start}, {stop}, {step})"

    def _slice(self, reading: _Reading, address: int) -> str:
        return f"slice({', '.join(self._text(reading, self._word(address, i)) for i in range(3))})"

    # ------------------------------------------------------------------ containers

    def _sequence(self, reading: _Reading, address: int) -> str:
        objects, info = self._objects, self._objects.type_of(address)
        kind = "tuple" if info.flags & L.FLAG_TUPLE else "list" if info.flags & L.FLAG_LIST else info.name
        length = objects.length(address)
        if reading.depth == 0 and length:
            return f"<{info.name} of {length:,}>"
        if kind in ("tuple", "list"):
            start = address + objects.layout.tuple_items if kind == "tuple" else self._word(address, 1)
            members: Iterable[int] = objects.memory.words(start, min(length, ITEMS))
        elif length > MAX_OPENED:
            return f"<{info.name} of {length:,}>"
        else:
            members = islice(objects.deque_items(address) if "deque" in kind else objects.set_items(address), ITEMS)
        fields = self._fields(address) if kind == "tuple" and info.name != "tuple" else ()
        if fields:
            pairs = self._named(reading, address, zip(fields, members))
            return f"{info.name.split('.')[-1]}({', '.join(_more(pairs, length))})"
        begin, end = _BRACKETS[kind]
        if kind in ("set", "frozenset") and not length:
            return f"{kind}()"
        shown = _more(list(self._items(reading, address, members)), length)
        return f"{begin}{', '.join(shown)}{',' if kind == 'tuple' and length == 1 else ''}{end}"

    def _items(self, reading: _Reading, address: int, members: Iterable[int]) -> Iterator[str]:
        """Yield the texts of items; an item after one that names a secret (a pair, an option) is masked."""
        deeper, named = reading.into(address), False
        for member in members:
            if reading.spent():
                return
            yield MASK if named else self._text(deeper, member)
            named = self._is_secret(member)

    def _is_secret(self, key: int) -> bool:
        """Return whether a key is a short text that names a secret; long texts are prose."""
        objects = self._objects
        try:
            if objects.type_of(key).flags & L.FLAG_BYTES:
                return is_secret(objects.bytes_(key, 64).decode("latin-1"))
            text = objects.text(key)
            return len(text) <= 64 and " " not in text and is_secret(text)
        except (Fault, NotThat, UnicodeDecodeError):
            return False

    def _fields(self, address: int) -> Tuple[str, ...]:
        """Return the field names of a named tuple; empty for other tuples."""
        found = class_value(self._objects, address, "_fields")
        if found is None or self._objects.type_name(found) != "tuple":
            return ()
        return tuple(self._objects.optional_text(item) or "?" for item in self._objects.items(found))

    def _dict(self, reading: _Reading, address: int) -> str:
        objects = self._objects
        length = objects.length(address)
        if length > MAX_OPENED or (reading.depth == 0 and length):
            return f"<{objects.type_of(address).name} of {length:,}>"
        pairs, deeper = [], reading.into(address)
        for key, value in islice(objects.dict_items(address), ITEMS):
            if reading.spent():
                break
            pairs.append(f"{self._text(deeper, key)}: {MASK if self._is_secret(key) else self._text(deeper, value)}")
        return f"{{{', '.join(_more(pairs, length))}}}"

    def _proxy(self, reading: _Reading, address: int) -> str:
        return f"mappingproxy({self._text(reading, self._word(address, 0))})"

    def _array(self, _reading: _Reading, address: int) -> str:
        dimensions = self._word(address, 1) & 0xFFFFFFFF
        if dimensions > 64:
            raise NotThat("damaged array")
        sizes = self._objects.memory.words(self._word(address, 2), dimensions)
        return f"<numpy.ndarray of {' × '.join(f'{size:,}' for size in sizes) or 'no'} items>"

    # ------------------------------------------------------------------ code

    def _function(self, _reading: _Reading, address: int) -> str:
        for index in range(8):  # func_code is the first field up to 3.9, the fifth since 3.10
            if self._objects.type_name(self._word(address, index)) == "code":
                return f"<function {self._place(self._frames.codes.get(self._word(address, index)))}>"
        raise NotThat("a function without code")

    @staticmethod
    def _place(code: Code) -> str:
        return f"{code.qualname or code.name} {code.filename}:{code.firstlineno}"

    def _builtin(self, _reading: _Reading, address: int) -> str:
        memory = self._objects.memory
        name = memory.cstring(memory.u64(self._word(address, 0)), 64).decode("ascii", "replace")
        return f"<built-in {name}>"

    def _method(self, _reading: _Reading, address: int) -> str:
        function, owner = self._word(address, 0), self._word(address, 1)
        name = self._text(_Reading(0, frozenset(), LIMIT), function).replace("<function ", "").rstrip(">")
        return f"<bound method {name} of {self.type(owner)}>"

    def _module(self, _reading: _Reading, address: int) -> str:
        name = self._objects.lookup(self._word(address, 0), "__name__")
        return f"<module {self._objects.text(name) if name else '?'}>"

    def _class_name(self, address: int) -> str:
        """Return the name of a class, not that of its metaclass."""
        return self._objects.type_at(address).name

    def _suspended(self, _reading: _Reading, address: int) -> str:
        name, (state, frame) = self._objects.type_of(address).name, self._frames.generator(address)
        if frame is None:
            return f"<{name}, {state}>"
        return f"<{name} {frame.function} {frame.code.filename}:{frame.line}, {state}>"

    # ------------------------------------------------------------------ instances

    def _lock(self, _reading: _Reading, address: int) -> str:
        lock = self._locks.at(address)
        if lock is None or lock.locked is None:
            raise NotThat("not a lock")
        owner = self._threads.get(lock.owner_ident or 0)
        by = f" by {owner}" if lock.locked and owner else ""
        return f"<{'RLock' if lock.kind == 'rlock' else 'Lock'}, {'locked' if lock.locked else 'unlocked'}{by}>"

    def _exception(self, reading: _Reading, address: int) -> str:
        message = self.message(address, reading.limit)
        return f"{self.type(address)}({message or ''})"

    def _instance(self, reading: _Reading, address: int) -> str:
        info = self._objects.type_of(address)
        found = attributes(self._objects, address)
        member = found.get("_name_")
        if member is not None and "_value_" in found:
            return f"{info.name}.{self._objects.text(member)}"
        if not found or reading.depth == 0:
            return f"<{info.name} at {address:#x}>"
        shown = self._named(reading, address, islice(found.items(), ITEMS))
        return f"<{info.name} {', '.join(_more(shown, len(found)))}>"

    def _named(self, reading: _Reading, address: int, pairs: Iterable[Tuple[str, int]]) -> List[str]:
        deeper = reading.into(address)
        return [
            f"{name}={MASK if is_secret(name) else self._text(deeper, value)}"
            for name, value in pairs
            if not reading.spent()
        ]


class _Reading:
    """State of a description: levels left, enclosing containers, and items left (one per character of the limit)."""

    __slots__ = ("_left", "above", "depth", "limit")

    def __init__(self, depth: int, above: FrozenSet[int], limit: int, left: Optional[List[int]] = None) -> None:
        self.depth, self.above, self.limit = depth, above, limit
        self._left = left if left is not None else [limit]  # shared by all levels

    def into(self, address: int) -> _Reading:
        """Return the state inside a container."""
        return _Reading(self.depth - 1, self.above | {address}, self.limit, self._left)

    def spent(self) -> bool:
        """Count one more item; return True if the text has no room for it."""
        self._left[0] -= 1
        return self._left[0] < 0


def _cut(text: str, limit: int) -> str:
    """Shorten a text to a limit."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _long(text: str, length: int, cut: bool, unit: str) -> str:
    """Append the length to a text that was cut."""
    return f"{text}… ({length:,} {unit})" if cut else text


def _more(shown: List[str], length: int) -> List[str]:
    """Append the number of items not shown."""
    return [*shown, f"… {length - len(shown):,} more"] if length > len(shown) else shown
