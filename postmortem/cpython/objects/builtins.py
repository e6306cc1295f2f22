"""Objects of the target, read through Memory: every loop is bounded, every pointer may be garbage.

Only two errors are raised, and callers turn both into *unknown*:
- ``Fault``: the memory is not available.
- ``NotThat``: the memory does not hold what was expected.
"""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ...memory import Fault, Memory
from ..runtime import layouts as L
from ..runtime.layouts import Layout

#: Most characters read of a string; longer ones are truncated.
MAX_TEXT = 4096
MAX_ITEMS = 100_000
_MAX_KEY_TEXTS = 50_000
#: Most bytes of tables and names read for the code objects of a process, all together: ten times what the stacks of a
#: large program need. So an analysis ends in a second or two even if all are damaged, each within its own bounds.
MAX_SPENT = 4 << 20


class NotThat(Exception):
    """An object of another type than expected, or damaged."""


class TypeInfo(NamedTuple):
    """Fields of a type object."""

    address: int
    name: str  # tp_name: "str", "_thread.lock", "Account"; "" if lost (see ``typenames``)
    flags: int
    basicsize: int
    dictoffset: int
    base: int


class Objects:
    """Objects of one interpreter. Caches types and dict keys, which recur."""

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self.memory = memory
        self.layout = layout
        self._types: Dict[int, TypeInfo] = {}
        self._ob_type = layout.ob_type
        self._key_texts: Dict[int, Optional[str]] = {}
        #: Address of a type → tp_name, for types whose names are lost with their file.
        self.type_names: Dict[int, str] = {}
        self._texts: Dict[int, str] = {}
        #: Class → (name, offset) of its instances' slots: see ``attributes.members``.
        self.members: Dict[int, Tuple[Tuple[str, int], ...]] = {}
        self._left = MAX_SPENT
        self._type_size = max(layout.tp_dictoffset, layout.tp_base, layout.tp_flags) + 8

    def field(self, address: int, offset: int) -> int:
        """Return a word of an object; ``offset``: in builds with a GIL. Raises Fault.

        Free-threaded builds have a larger header, which is added.
        """
        return self.memory.u64(address + self.layout.ob_extra + offset)

    def spend(self, size: int) -> None:
        """Count bytes of a code object's tables against the limit for all of them.

        Raises: NotThat beyond MAX_SPENT.
        """
        self._left -= size
        if self._left < 0:
            raise NotThat("implausibly large together with all others")

    # ------------------------------------------------------------------ types

    def type_of(self, address: int) -> TypeInfo:
        """Return the type of an object. Raises Fault or NotThat."""
        if not 0x1000 <= address < 1 << 48 or address & 7:
            raise NotThat(f"{address:#x} is not an object")
        type_ = self.memory.u64(address + self._ob_type)
        return self._types.get(type_) or self.type_at(type_)

    def type_at(self, address: int) -> TypeInfo:
        """Return the type object at an address. Raises Fault, or NotThat if it does not look like a type."""
        known = self._types.get(address)
        if known is not None:
            return known
        if not 0x1000 <= address < 1 << 48 or address & 7:
            raise NotThat(f"{address:#x} is not a type")
        layout, words = self.layout, self.memory.words(address, self._type_size // 8)
        basicsize = words[layout.tp_basicsize // 8]
        if not 16 <= basicsize < 1 << 20:
            raise NotThat(f"no type at {address:#x}")
        name = self._name(address, words)
        offset = words[layout.tp_dictoffset // 8]
        info = TypeInfo(
            address,
            name,
            words[layout.tp_flags // 8],
            basicsize,
            offset - (1 << 64 if offset >> 63 else 0),
            words[layout.tp_base // 8],
        )
        if name:
            self._types[address] = info
        return info

    def _name(self, type_: int, words: Tuple[int, ...]) -> str:
        """Return tp_name; if it is lost, the name in ``type_names`` or "". Raises Fault or NotThat.

        A type whose name is lost must itself be an instance of a metatype: too much memory looks like one by chance.
        """
        try:
            name = self.memory.cstring(words[self.layout.tp_name // 8], 200).decode("utf-8", "backslashreplace")
        except Fault:
            metatype = words[self.layout.ob_type // 8]
            if not self.memory.u64(metatype + self.layout.tp_flags) & L.FLAG_TYPE:
                raise NotThat(f"no type at {type_:#x}") from None
            return self.type_names.get(type_, "")
        if not name or not name.isprintable():
            raise NotThat(f"no type at {type_:#x}")
        return name

    def type_name(self, address: int) -> Optional[str]:
        """Return tp_name of an object's type; None if it is not an object, or the name is lost."""
        try:
            return self.type_of(address).name or None
        except (Fault, NotThat):
            return None

    def is_instance(self, address: int, name: str) -> bool:
        """Return whether an object's type, or one of its single-inheritance bases, has this tp_name."""
        try:
            info = self.type_of(address)
            for _ in range(32):
                if info.name == name:
                    return True
                if not info.base:
                    return False
                info = self.type_at(info.base)
        except (Fault, NotThat):
            pass
        return False

    # ------------------------------------------------------------------ scalars

    def text(self, address: int) -> str:
        """Return a str of at most MAX_TEXT characters. Raises Fault or NotThat.

        Lone surrogates become backslash escapes, so that the result is valid Unicode.
        """
        known = self._texts.get(address)
        if known is not None:
            return known
        if not self.type_of(address).flags & L.FLAG_UNICODE:
            raise NotThat("not a str")
        layout = self.layout
        length = self.memory.u64(address + layout.str_length)
        state = self.memory.u32(address + layout.str_state) >> layout.str_kind_bit
        kind, compact, ascii_ = state & 7, state >> 3 & 1, state >> 4 & 1
        if kind not in (1, 2, 4) or length > 1 << 40:
            raise NotThat("damaged str")
        length = min(length, MAX_TEXT)
        if compact:
            start = address + (layout.ascii_size if ascii_ else layout.compact_size)
        else:
            start = self.memory.u64(address + layout.unicode_data)
        raw = self.memory.read(start, length * kind)
        codec = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind]
        try:
            text = raw.decode(codec, "surrogatepass" if kind != 1 else "strict")
        except UnicodeDecodeError:
            raise NotThat("damaged str") from None
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        if len(self._texts) < MAX_ITEMS:
            self._texts[address] = text
        return text

    def forget_texts(self) -> None:
        """Forget the texts read so far: in a running process other ones may be at their addresses by now."""
        self._texts.clear()

    def optional_text(self, address: int) -> Optional[str]:
        """Return a str; None if it is unreadable or not a str."""
        try:
            return self.text(address)
        except (Fault, NotThat):
            return None

    def integer(self, address: int) -> int:
        """Return an int of up to four digits of 30 bits. Raises Fault or NotThat."""
        if not self.type_of(address).flags & L.FLAG_LONG:
            raise NotThat("not an int")
        if self.layout.long_tag:
            tag = self.memory.u64(address + self.layout.long_value)
            count, sign = tag >> 3, 1 - (tag & 3)
        else:
            size = self.memory.i64(address + self.layout.long_value)
            count, sign = abs(size), (size > 0) - (size < 0)
        if count > 4:
            raise NotThat("a very large int")
        digits = [self.memory.u32(address + self.layout.long_digits + 4 * i) for i in range(count)]
        return sign * sum(d << 30 * i for i, d in enumerate(digits))

    def number(self, address: int) -> float:
        """Return a float or an int as a float. Raises Fault or NotThat."""
        if self.type_of(address).name == "float":
            return self.memory.f64(address + self.layout.float_value)
        return float(self.integer(address))

    def bytes_(self, address: int, limit: int = 1 << 20) -> bytes:
        """Return a bytes object's contents, at most ``limit``. Raises Fault or NotThat."""
        if not self.type_of(address).flags & L.FLAG_BYTES:
            raise NotThat("not bytes")
        size = self.memory.u64(address + self.layout.ob_size)
        return self.memory.read(address + self.layout.bytes_data, min(size, limit))

    # ------------------------------------------------------------------ containers

    def items(self, address: int, limit: int = MAX_ITEMS) -> Tuple[int, ...]:
        """Return the addresses of the items of a tuple or list. Raises Fault, or NotThat beyond ``limit``."""
        count = self.memory.u64(address + self.layout.ob_size)
        if count > limit:
            raise NotThat("implausibly long")
        return self.first_items(address, count)

    def first_items(self, address: int, most: int) -> Tuple[int, ...]:
        """Return the addresses of at most ``most`` items of a tuple or list. Raises Fault or NotThat."""
        flags = self.type_of(address).flags
        count = min(most, self.memory.u64(address + self.layout.ob_size))
        if flags & L.FLAG_TUPLE:
            return self.memory.words(address + self.layout.tuple_items, count)
        if flags & L.FLAG_LIST:
            return self.memory.words(self.memory.u64(address + self.layout.list_items), count)
        raise NotThat("neither tuple nor list")

    def set_items(self, address: int) -> Iterator[int]:
        """Yield the items of a set or frozenset. Raises Fault or NotThat.

        Its table has mask + 1 slots (key, hash); deleted ones point to a dummy whose hash is -1 (Objects/setobject.c).
        """
        if self.type_of(address).name not in ("set", "frozenset"):
            raise NotThat("not a set")
        mask = self.memory.u64(address + self.layout.set_mask)
        table = self.memory.u64(address + self.layout.set_table)
        if mask > 4 * MAX_ITEMS or mask & (mask + 1):
            raise NotThat("implausibly large")
        words = self.memory.words(table, 2 * (mask + 1))
        for key, hash_ in zip(words[::2], words[1::2]):
            if key and hash_ != (1 << 64) - 1:
                yield key

    def deque_items(self, address: int, limit: int = 10_000) -> Iterator[int]:
        """Yield the items of a collections.deque, left to right. Raises Fault or NotThat.

        It is a chain of blocks of 64 items with a link at either end (Modules/_collectionsmodule.c, BLOCKLEN 64).
        """
        if self.type_of(address).name != "collections.deque":
            raise NotThat("not a deque")
        count, block, _right, index = self.memory.words(address + self.layout.ob_size, 4)
        for _ in range(min(count, limit)):
            if index >= 64:
                block, index = self.memory.u64(block + 8 + 64 * 8), 0
            yield self.memory.u64(block + 8 + index * 8)
            index += 1

    def deque_bound(self, address: int) -> Optional[int]:
        """Return the most items of a collections.deque (dequeobject.maxlen); None if it has no bound, or is none."""
        try:
            if self.type_of(address).name != "collections.deque":
                return None
            most = self.memory.i64(address + self.layout.ob_size + 6 * 8)
        except Fault:
            return None
        return most if most >= 0 else None

    def integer_or_none(self, address: Optional[int]) -> Optional[int]:
        """Return the value of an int; None if missing or unreadable."""
        try:
            return self.integer(address) if address else None
        except (Fault, NotThat):
            return None

    def length_or_none(self, address: Optional[int]) -> Optional[int]:
        """Return ``length``; None if missing or unreadable."""
        try:
            return self.length(address) if address else None
        except (Fault, NotThat):
            return None

    def length(self, address: int) -> int:
        """Return the length of a container. Raises Fault or NotThat.

        Read from ob_size of a list, tuple or deque; ma_used of a dict; used of a set.
        """
        info = self.type_of(address)
        if info.name in ("set", "frozenset"):
            return self.memory.u64(address + self.layout.set_used)
        size = self.memory.u64(address + self.layout.ob_size)
        if size > 1 << 40:
            raise NotThat("implausibly long")
        return size

    def dict_items(self, address: int) -> Iterator[Tuple[int, int]]:
        """Return (key, value) addresses of a dict, with a combined or split table (Objects/dictobject.c).

        Raises: Fault or NotThat, also while iterating.
        """
        if not self.type_of(address).flags & L.FLAG_DICT:
            raise NotThat("not a dict")
        keys = self.memory.u64(address + self.layout.dict_keys)
        values = self.memory.u64(address + self.layout.dict_values)
        return self._table_items(keys, values + self.layout.dict_values_start if values else 0)

    def _table_items(self, keys: int, values: int) -> Iterator[Tuple[int, int]]:
        """Yield (key, value) of a PyDictKeysObject; ``values``: array of a split table, else 0."""
        start, stride, count = self._entries(keys)
        words = self.memory.words(start, count * stride)
        found_keys, found_values = words[stride - 2 :: stride], words[stride - 1 :: stride]
        if values:
            found_values = self.memory.words(values, count)
        for key, value in zip(found_keys, found_values):
            if key and value:
                yield key, value

    def _entries(self, keys: int) -> Tuple[int, int, int]:
        """Return (address of the first entry, words per entry, number of entries) of a PyDictKeysObject.

        Before 3.11 (Objects/dict-common.h) the header has the number of slots of the index table, whose entries have 1,
        2, 4 or 8 bytes depending on it (DK_IXSIZE); every entry stores a hash.

        Raises: Fault or NotThat.
        """
        if self.layout.dk_log2:
            sizes, _usable, count = self.memory.words(keys + 8, 3)
            log2_size, log2_index_bytes, kind = sizes & 0xFF, sizes >> 8 & 0xFF, sizes >> 16 & 0xFF
            if not log2_size <= log2_index_bytes <= log2_size + 3 or kind > 2 or _overfull(log2_size, count):
                raise NotThat("damaged dict")
            # a general table stores the hash first
            return keys + 32 + (1 << log2_index_bytes), 3 if kind == 0 else 2, count
        size, count = self.memory.u64(keys + 8), self.memory.u64(keys + 32)
        if not size or size & (size - 1) or _overfull(size.bit_length() - 1, count):
            raise NotThat("damaged dict")
        return keys + 40 + size * (1 if size <= 0xFF else 2 if size <= 0xFFFF else 4), 3, count

    def text_dict(self, address: int) -> Dict[str, int]:
        """Return name → address for the str keys of a dict. Raises Fault or NotThat."""
        found: Dict[str, int] = {}
        for key, value in self.dict_items(address):
            name = self.key_text(key)
            if name is not None:
                found[name] = value
        return found

    def lookup(self, address: int, name: str) -> Optional[int]:
        """Return the value of a str key of a dict; None if missing. Raises Fault or NotThat."""
        for key, value in self.dict_items(address):
            if self.key_text(key) == name:
                return value
        return None

    def key_text(self, address: int) -> Optional[str]:
        """Return ``optional_text``, cached: attribute names recur with every object of a class."""
        if address not in self._key_texts:
            if len(self._key_texts) >= _MAX_KEY_TEXTS:
                self._key_texts.clear()
            self._key_texts[address] = self.optional_text(address)
        return self._key_texts[address]


def _overfull(log2_size: int, count: int) -> bool:
    """Return whether a table has more entries than USABLE_FRACTION (two thirds) of its slots, or than plausible."""
    return log2_size > 32 or count > min((2 << log2_size) // 3, MAX_ITEMS * 10)
