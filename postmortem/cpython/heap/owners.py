"""The live object around a place in memory, and whether the word there is a counted reference.

- The collector's rings prove that an object is alive: the neighbours of its head point back to it and are heads of
  objects. An object is found by walking back from a place to the nearest header with a type and such a head; freed
  memory has none.
- Which words are counted depends on the type. In types known to count all their references (``_KINDS``) and in classes
  written in Python (their slots and dicts; Objects/typeobject.c: tp_dealloc is subtype_dealloc) it is certain. In other
  types of C code it is presumed: they visit for the collector what they own, and seldom keep what they do not.

Limit: free-threaded builds have no rings, so nothing is found.

Source: Include/internal/pycore_gc.h, 3.8-3.15.
"""

from __future__ import annotations

from typing import Dict, Iterator, Literal, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..frames.frame import Frame
from ..objects.attributes import TP_ITEMSIZE
from ..objects.builtins import NotThat, TypeInfo
from ..objects.links import linked
from ..runtime import layouts as L
from ..state.interpreter import Python
from .allocations import DEBUG_PREFIXES, Allocations
from .gclists import ring_heads
from .slots import CALLBACK, FIELD, ITEM, OWN, SLOT, STACK, Slot

#: PyTypeObject.tp_dealloc, tp_weaklistoffset (Include/cpython/object.h, 3.8-3.15)
_TP_DEALLOC, _TP_WEAKLIST = 48, 208
#: PyTypeObject.tp_flags (Include/object.h)
_FLAG_HEAPTYPE, _FLAG_GC = 1 << 9, 1 << 14
_GC_HEAD, _HEADER = 16, 16
_LINK_FLAGS = 3
#: Largest distance from an object's header to a place in it, in bytes: a tuple of 8,000 items.
MAX_BODY = 1 << 16
_PAGE = 1 << 12
#: Most pages, and addresses, of which is remembered what they hold: up to 35 MB and 50 MB.
_MOST_PAGES, _MOST_KNOWN = 1 << 12, 1 << 17
_MOST_BASES = 32
#: PyWeakReference.wr_callback, wr_next (Include/weakrefobject.h of 3.8, cpython/weakrefobject.h); only the callback is
#: counted.
_CALLBACK, _NEXT = 24, 48
MAX_WEAK = 1_000

#: Layout of an object's references: the part of its body, or the frame in it. presumed: as "all", but not certain.
HolderKind = Literal["all", "presumed", "head", "tuple", "set", "generator", "frame", "weak", "type"]
#: tp_name → layout of its references. "all": each word of the body that is an object's address is counted; the structs
#: are those of the same names in Objects/ and Modules/ (3.8-3.15).
_KINDS: Dict[str, HolderKind] = {
    "object": "all", "tuple": "tuple", "list": "head", "dict": "head", "set": "set", "frozenset": "set",
    "collections.deque": "head", "generator": "generator", "coroutine": "generator", "async_generator": "generator",
    "frame": "frame", "weakref": "weak", "weakref.ReferenceType": "weak", "weakproxy": "weak",
    "weakref.ProxyType": "weak", "weakcallableproxy": "weak", "weakref.CallableProxyType": "weak",
    **dict.fromkeys(
        (
            "cell", "function", "method", "builtin_function_or_method", "builtin_method", "method-wrapper", "coroutine_wrapper",
            "async_generator_asend", "async_generator_athrow", "async_generator_wrapped_value",
            "_asyncio.Future", "_asyncio.Task", "_asyncio.FutureIter", "FutureIter", "TaskStepMethWrapper",
            "_asyncio.TaskStepMethWrapper", "TaskWakeupMethWrapper", "_asyncio.TaskWakeupMethWrapper",
            "functools.partial", "traceback", "property", "classmethod", "staticmethod", "super", "mappingproxy",
            "list_iterator", "list_reverseiterator", "tuple_iterator", "dict_keyiterator", "dict_valueiterator",
            "dict_itemiterator", "dict_keys", "dict_values", "dict_items", "enumerate", "zip", "map", "filter",
            "callable_iterator", "Context", "_contextvars.Context", "Token",
            "_contextvars.Token", "hamt", "hamt_bitmap_node", "hamt_array_node", "hamt_collision_node",
            "types.SimpleNamespace", "_queue.SimpleQueue", "collections.defaultdict", "module", "typing.Generic",
            # compiled by Cython, which counts every reference in an object (gevent 20.12-26.9, the .pxd of each)
            "gevent._gevent_c_semaphore.Semaphore", "gevent._gevent_c_semaphore.BoundedSemaphore",
            "gevent._gevent_cevent.Event", "gevent._gevent_cevent.AsyncResult", "gevent._gevent_cqueue.SimpleQueue",
            "gevent._gevent_cqueue.Queue", "gevent._gevent_cqueue.ItemWaiter", "gevent._gevent_c_waiter.Waiter",
            "gevent._gevent_cgreenlet.Greenlet", "gevent.libev.corecext.callback", "gevent.libev.corecext.io",
            "gevent.libev.corecext.timer",
        ),
        "all",
    ),
}  # fmt: skip
#: A ContextVar caches its last value without counting it (Python/context.c, var_cached).
_UNKNOWN = ("ContextVar", "_contextvars.ContextVar")
#: An entry of a cache with a bound, which the collector does not track, and the cache, which is in the ring of its entries
#: (Modules/_functoolsmodule.c, lru_list_elem: prev, next, hash, key, result).
_ENTRIES = ("functools._lru_list_elem", "_functools._lru_list_elem")
_CACHES = ("functools._lru_cache_wrapper", "_functools._lru_cache_wrapper")
_ENTRY_PREVIOUS, _ENTRY_NEXT, _ENTRY_REFERENCES = 16, 24, (40, 48)
_MOST_ENTRIES = 4_096


class Holder(NamedTuple):
    """A live object around a place."""

    address: int
    info: TypeInfo
    kind: Optional[HolderKind]  # None: layout of references unknown
    end: int


class _Type(NamedTuple):
    """A type, as far as it matters for references."""

    info: TypeInfo
    kind: Optional[HolderKind]
    base: int  # bytes of the body that the kind describes; slots of Python classes follow
    itemsize: int
    weaklist: int
    gc: bool


class ReferenceHolders:
    """Live objects of one interpreter process."""

    def __init__(self, python: Python) -> None:
        self._python = python
        self._objects = python.objects
        self._layout = python.layout
        self.allocations = Allocations(python.memory, python.layout.version, python.on_musl)
        self._types: Dict[int, Optional[_Type]] = {}
        self._headers: Dict[int, Tuple[int, ...]] = {}  # page → addresses whose type's place has a type
        self._at: Dict[int, Optional[Holder]] = {}
        self._subtype_dealloc = self._learn_dealloc()
        self._heads = {head for interpreter in python.interpreters for head in ring_heads(python, interpreter)}

    def _learn_dealloc(self) -> Optional[int]:
        """Return the address of subtype_dealloc, tp_dealloc of any Python class; None if unknown."""
        for interpreter in self._python.interpreters[:1]:
            example = self._python.module_value(interpreter, "_frozen_importlib", "ModuleSpec")
            try:
                return self._objects.field(example, _TP_DEALLOC) if example else None
            except Fault:
                return None
        return None

    # ------------------------------------------------------------------ finding

    def around(self, place: int) -> Optional[Holder]:
        """Return the live object whose body contains a place; None if none is near."""
        block = self.allocations.block(place)
        least = block.start if block is not None and block.sure else max(place - MAX_BODY, 0)
        page = place & -_PAGE
        while page > least - _PAGE:
            headers = self._headers_in(page)
            if headers is None:
                return None
            for address in reversed(headers):
                if address + _HEADER <= place and self.is_live(address):
                    if address < least:
                        return None
                    holder = self.at(address)
                    # objects do not overlap: beyond the nearest one lies something else
                    return holder if holder is not None and place < holder.end else None
            page -= _PAGE
        return None

    def _headers_in(self, page: int) -> Optional[Tuple[int, ...]]:
        """Return the addresses, ordered, whose second word lies in a page and is a collectable type; None: no page."""
        if page not in self._headers:
            try:
                words = self._objects.memory.words(page, _PAGE // 8)
            except Fault:
                return None
            if len(self._headers) >= _MOST_PAGES:
                self._headers.clear()
            at, first = self._layout.ob_type, self._layout.ob_type // 8 % 2  # objects are aligned to 16 bytes
            found = {word for word in words[first::2] if word}
            types = {word for word in found if self.is_collectable(word)}
            at -= 8 * first
            self._headers[page] = tuple(
                page + 16 * index - at for index, word in enumerate(words[first::2]) if word in types
            )
        return self._headers[page]

    def at(self, address: int) -> Optional[Holder]:
        """Return the live object at an address, cached; None if there is none."""
        if address not in self._at:
            if len(self._at) >= _MOST_KNOWN:
                self._at.clear()
            self._at[address] = self._read_at(address)
        return self._at[address]

    def _read_at(self, address: int) -> Optional[Holder]:
        """Return the live object at an address; None if there is none."""
        try:
            found = self._type(self._objects.memory.u64(address + self._layout.ob_type))
        except Fault:
            return None
        return self._holder(address, found) if found is not None and found.gc and self.is_live(address) else None

    def with_dict(self, address: int) -> Optional[Holder]:
        """Return the live object at an address if its class stores a dict pointer before it (3.11+); else None."""
        holder = self.at(address) if not address & 15 else None
        return holder if holder is not None and holder.info.flags & L.FLAG_MANAGED_DICT else None

    def namespace(self, holder: Holder) -> Optional[int]:
        """Return the dict that shares an instance's inline values (3.13+); None if there is none."""
        if not self._layout.inline_values or not holder.info.flags & L.FLAG_INLINE_VALUES:
            return None
        try:
            return self._objects.memory.u64(holder.address + self._layout.managed_dict) or None
        except Fault:
            return None

    def cache_of(self, place: int) -> Optional[Holder]:
        """Return the functools.lru_cache that has the key or result at a place in one of its entries; None if there is none."""
        block = self.allocations.block(place)
        if block is None or not block.sure:
            return None
        starts = (block.start + prefix for prefix in DEBUG_PREFIXES)
        entry = next((start for start in starts if place - start in _ENTRY_REFERENCES), None)
        try:
            return self._cache_around(entry) if entry is not None else None
        except (Fault, NotThat):
            return None

    def _cache_around(self, entry: int) -> Optional[Holder]:
        """Return the cache in whose ring an entry is; None for what is none, or was removed. Raises Fault or NotThat."""
        memory = self._objects.memory
        if self._objects.type_at(memory.u64(entry + self._layout.ob_type)).name not in _ENTRIES:
            return None
        if memory.u64(memory.u64(entry + _ENTRY_NEXT) + _ENTRY_PREVIOUS) != entry:
            return None  # the ring goes past it
        ring = linked(entry, lambda one: memory.u64(one + _ENTRY_NEXT), _MOST_ENTRIES)
        cache = next((one for one in ring if self._objects.type_name(one) in _CACHES), None)
        return self.at(cache) if cache is not None else None

    def is_live(self, address: int) -> bool:
        """Return whether the collector tracks an object here.

        Other lists have the same links as its rings, so the neighbours must be objects too, or the head of a ring.
        """
        node, memory = address - _GC_HEAD, self._objects.memory
        try:
            after, before = (link & ~_LINK_FLAGS for link in memory.words(node, 2))
            return bool(
                after
                and before
                and memory.u64(after + 8) & ~_LINK_FLAGS == node
                and memory.u64(before) & ~_LINK_FLAGS == node
                and all(end in self._heads or self._is_object(end + _GC_HEAD) for end in (after, before))
                and memory.u64(address) & 0xFFFFFFFF
            )
        except Fault:
            return False

    def _is_object(self, address: int) -> bool:
        """Return whether a collectable type's instance may be at an address. Raises Fault."""
        found = self._type(self._objects.memory.u64(address + self._layout.ob_type))
        return found is not None and found.gc

    def weak_references(self, address: int) -> Iterator[int]:
        """Yield the weak references to an object. Raises Fault or NotThat.

        Its class gives the offset of their list, which may be before the object (Objects/typeobject.c,
        MANAGED_WEAKREF_OFFSET, 3.12+).
        """
        found = self._type(self._objects.memory.u64(address + self._layout.ob_type))
        if found is None:
            raise NotThat("its class was not read")
        if found.weaklist:
            first = self._objects.memory.u64(address + found.weaklist)
            yield from linked(first, lambda weak: self._objects.memory.u64(weak + _NEXT), MAX_WEAK)

    # ------------------------------------------------------------------ types

    def _type(self, address: int) -> Optional[_Type]:
        """Return the type at an address, cached; None if it is not a type."""
        if address in self._types:
            return self._types[address]
        found = None
        if 0x1000 <= address < 1 << 47 and not address & 7:
            try:
                found = self._read_type(address)
            except (Fault, NotThat):
                found = None
        if len(self._types) > 1 << 20:
            self._types.clear()
        self._types[address] = found
        return found

    def is_collectable(self, address: int) -> bool:
        """Return whether a type of collectable objects is at an address."""
        found = self._type(address)
        return found is not None and found.gc

    def _read_type(self, address: int) -> Optional[_Type]:
        """Read a type; None if its own type is not a metatype. Raises Fault or NotThat."""
        objects = self._objects
        metatype = objects.memory.u64(address + self._layout.ob_type)
        if not objects.type_at(metatype).flags & L.FLAG_TYPE:
            return None
        info = objects.type_at(address)
        kind, base = self._kind(info)
        weaklist = objects.memory.i64(address + self._layout.ob_extra + _TP_WEAKLIST)
        return _Type(info, kind, base, objects.field(address, TP_ITEMSIZE), weaklist, bool(info.flags & _FLAG_GC))

    def _kind(self, info: TypeInfo) -> Tuple[Optional[HolderKind], int]:
        """Return (layout of references, bytes that it describes) of a type by its bases."""
        for _ in range(_MOST_BASES):
            if info.flags & L.FLAG_TYPE:
                return "type", info.basicsize
            if info.name in _KINDS and not self._is_python_class(info):
                return _KINDS[info.name], info.basicsize
            if info.flags & L.FLAG_EXCEPTION and not info.flags & _FLAG_HEAPTYPE:
                return "all", info.basicsize
            if not self._is_python_class(info) or not info.base:
                return None if info.name in _UNKNOWN else "presumed", info.basicsize
            info = self._objects.type_at(info.base)
        return None, info.basicsize

    def _is_python_class(self, info: TypeInfo) -> bool:
        """Return whether a class is written in Python. Raises Fault."""
        return bool(
            info.flags & _FLAG_HEAPTYPE
            and self._subtype_dealloc is not None
            and self._objects.field(info.address, _TP_DEALLOC) == self._subtype_dealloc
        )

    # ------------------------------------------------------------------ extent

    def _holder(self, address: int, found: _Type) -> Holder:
        """Build the holder with its extent; basicsize if its length is unreadable."""
        try:
            size = self._size(address, found)
        except (Fault, NotThat):
            size = found.info.basicsize
        return Holder(address, found.info, found.kind, address + size)

    def _size(self, address: int, found: _Type) -> int:
        """Return the size of an object in bytes. Raises Fault or NotThat."""
        memory, layout = self._objects.memory, self._layout
        frame = self.frame_in(address, found.kind)
        if frame is not None:
            start = frame.address + layout.fr_localsplus
            return start + 8 * (frame.code.nlocalsplus + frame.code.stacksize) - address
        size = found.info.basicsize
        if found.itemsize and found.kind not in ("generator", "frame"):
            count = abs(memory.i64(address + layout.ob_size))
            if count > 1 << 24:
                raise NotThat("implausibly long")
            size += count * found.itemsize
        if layout.inline_values and found.info.flags & L.FLAG_INLINE_VALUES:
            size += layout.dict_values_start + 8 * memory.u8(address + found.info.basicsize)
        return size

    def frame_in(self, address: int, kind: Optional[HolderKind]) -> Optional[Frame]:
        """Return the interpreter frame inside a generator, coroutine or frame object; None if there is none.

        Up to 3.10 a frame object is the frame itself, and generators contain none.
        """
        layout, frames = self._layout, self._python.frames
        try:
            if kind == "generator" and not layout.heap_frames:
                return frames.generator(address).frame
            if kind == "frame":
                at = address if layout.heap_frames else self._objects.memory.u64(address + layout.fo_frame)
                return frames.frame(at) if address <= at < address + MAX_BODY else None
        except (Fault, NotThat):
            pass
        return None

    # ------------------------------------------------------------------ words

    def counts(self, holder: Holder, place: int) -> Tuple[Optional[bool], Slot]:
        """Return (whether the word at a place in an object is a counted reference, its slot); None: unknown."""
        found, kind = self._types.get(holder.info.address), holder.kind
        offset = place - holder.address
        if found is None or kind is None:
            return None, Slot("word")
        if offset == found.weaklist:
            return False, Slot("weak-list")
        if kind == "weak":
            return offset == _CALLBACK, CALLBACK
        if holder.info.name in _CACHES and offset in (_ENTRY_PREVIOUS, _ENTRY_NEXT):
            return False, Slot("word")  # the ring of its entries begins in it, and owns nothing
        if offset >= found.base and kind in ("head", "set", "all", "presumed", "type") and not found.itemsize:
            return self._behind(holder, place)
        return self._within(holder, kind, place)

    def _within(self, holder: Holder, kind: HolderKind, place: int) -> Tuple[Optional[bool], Slot]:
        """Return the same for a place in the part of the body that the kind describes."""
        layout, offset = self._layout, place - holder.address
        if kind in ("generator", "frame"):
            frame = self.frame_in(holder.address, kind)
            if frame is not None and place >= frame.address and (frame.address > holder.address or layout.heap_frames):
                return slot_of(self._python, frame, place)
            return offset >= _HEADER, OWN
        if kind == "tuple":
            count = self._objects.memory.u64(holder.address + layout.ob_size)
            return 0 <= offset - layout.tuple_items < 8 * count or offset >= holder.info.basicsize, ITEM
        if kind == "set":
            table = self._objects.memory.u64(holder.address + layout.set_table)
            return holder.address <= table <= place and (place - table) % 16 == 0, ITEM
        return kind in ("all", "presumed", "type"), FIELD

    def _behind(self, holder: Holder, place: int) -> Tuple[Optional[bool], Slot]:
        """Return the same for the slots of a Python class, and since 3.13 for inline attribute values."""
        layout, values = self._layout, holder.address + holder.info.basicsize
        if place < values:
            return True, SLOT
        if not layout.inline_values or not self._objects.memory.u8(values + 3):  # PyDictValues.valid
            return False, Slot("gone")
        return True, Slot("attribute")


def slot_of(python: Python, frame: Frame, place: int, least: Optional[int] = None) -> Tuple[Optional[bool], Slot]:
    """Return (whether the word at a place in a frame is a counted reference, its slot).

    None if that depends on an unknown height of the value stack; ``least``: slots that are in use at least.
    """
    layout = python.layout
    start = frame.address + layout.fr_localsplus
    if place < start:
        # up to 3.10 f_gen, the word before f_lasti, is borrowed, and the stack of blocks behind holds no references, but what
        # was there before (Include/frameobject.h); later f_globals and f_builtins are borrowed
        if layout.heap_frames:
            return place - frame.address < layout.fr_instr - 8, OWN
        return place - frame.address not in (layout.fr_globals, layout.fr_globals + 8, layout.fr_previous), OWN
    index = (place - start) // 8
    if index < frame.code.nlocalsplus:
        names = frame.code.local_names()
        return True, Slot("local", names[index] if index < len(names) else None)
    height = python.frames.height(frame)
    if height is None:
        return (True if least is not None and index < least else None), STACK
    return index < height, STACK
