"""Offsets that an interpreter publishes: ``_Py_DebugOffsets`` at the start of ``_PyRuntime`` (3.13+).

The struct is a cookie, the version, a flag for free-threaded builds, then sections of 64-bit words: each has the size
of a struct and offsets of its fields. Every minor version adds words in between; within a minor version it is frozen.

Every value is checked for plausibility: that reveals a table of another shape in an unknown minor version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, NamedTuple, Optional, Set, Tuple

from ...memory import Fault, Memory
from .layouts import Layout
from .releases import FREE_THREADED, LAYOUTS

DEBUG_COOKIE = b"xdebugpy"
#: (section, its words in order), in order.
_Shape = Tuple[Tuple[str, str], ...]
_RUNTIME = ("runtime", "size finalizing interpreters_head")
_GIL = "ceval_gil gil gil_enabled gil_locked gil_holder"
_FRAME = ("frame", "size previous executable instr_ptr localsplus owner stackpointer tlbc_index")
_CODE = "size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds co_code_adaptive"
_OBJECT, _TUPLE, _LIST = ("object", "size type"), ("tuple", "size items ob_size"), ("list", "size items ob_size")
_SET, _DICT, _FLOAT = ("set", "size used table mask"), ("dict", "size keys values"), ("float", "size value")
_LONG, _BYTES = ("long", "size value digits"), ("bytes", "size ob_size data")

#: Sources: Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of 3.14 and 3.15; unused words at the end
#: are left out.
SHAPES: Dict[Tuple[int, int], _Shape] = {
    (3, 13): (
        _RUNTIME, ("interpreter", f"size id next threads_head gc modules sysdict builtins {_GIL}"),
        ("thread", "size prev next interp current_frame thread_id native_thread_id datastack_chunk status"),
        ("frame", "size previous executable instr_ptr localsplus owner"), ("code", _CODE),
        _OBJECT, ("type", "size tp_name tp_repr tp_flags"), _TUPLE, _LIST, _DICT, _FLOAT, _LONG, _BYTES,
        ("str", "size state length ascii_size"), ("gc", "size collecting"),
    ),
    (3, 14): (
        _RUNTIME,
        ("interpreter", f"size id next threads_head threads_main gc modules sysdict builtins {_GIL} generation tlbc"),
        ("thread", "size prev next interp current_frame thread_id native_thread_id datastack_chunk status"),
        _FRAME, ("code", f"{_CODE} co_tlbc"),
        _OBJECT, ("type", "size tp_name tp_repr tp_flags"), _TUPLE, _LIST, _SET, _DICT, _FLOAT, _LONG, _BYTES,
        ("str", "size state length ascii_size"), ("gc", "size collecting"), ("gen", "size gi_name iframe frame_state"),
    ),
    (3, 15): (
        _RUNTIME,
        ("interpreter", f"size id next threads_head threads_main gc modules sysdict builtins {_GIL} generation tlbc"),
        ("thread", "size prev next interp current_frame base_frame profiled profiled_seq thread_id native_thread_id"
                   " datastack_chunk status holds_gil gil_requested current_exception exc_state"),
        ("handled", "exc_value"), _FRAME, ("code", f"{_CODE} co_tlbc"),
        _OBJECT, ("type", "size tp_name tp_repr tp_flags tp_basicsize tp_dictoffset"), ("heap_type", "size cached_keys"),
        _TUPLE, _LIST, _SET, _DICT, _FLOAT, _LONG, _BYTES, ("str", "size state length ascii_size compact_size"),
        ("gc", "size collecting frame stats_size stats"), ("gen", "size gi_name iframe frame_state"),
    ),
}  # fmt: skip

#: section.word → field of Layout.
_FIELDS = {
    "runtime.finalizing": "rt_finalizing", "runtime.interpreters_head": "rt_interpreters_head",
    "interpreter.id": "is_id", "interpreter.next": "is_next", "interpreter.threads_head": "is_threads_head",
    "interpreter.modules": "is_modules", "interpreter.sysdict": "is_sysdict", "interpreter.builtins": "is_builtins",
    "interpreter.ceval_gil": "is_gil",
    "thread.next": "ts_next", "thread.interp": "ts_interp", "thread.current_frame": "ts_current_frame",
    "thread.thread_id": "ts_thread_id", "thread.native_thread_id": "ts_native_thread_id",
    "thread.current_exception": "ts_raised", "handled.exc_value": "exc_value",
    "frame.previous": "fr_previous", "frame.executable": "fr_code", "frame.instr_ptr": "fr_instr",
    "frame.localsplus": "fr_localsplus", "frame.owner": "fr_owner", "frame.stackpointer": "fr_stackpointer",
    "code.filename": "co_filename", "code.name": "co_name", "code.qualname": "co_qualname",
    "code.linetable": "co_linetable", "code.firstlineno": "co_firstlineno",
    "code.localsplusnames": "co_localsplusnames", "code.co_code_adaptive": "co_code",
    "object.type": "ob_type", "type.tp_name": "tp_name", "type.tp_flags": "tp_flags",
    "type.tp_basicsize": "tp_basicsize", "type.tp_dictoffset": "tp_dictoffset",
    "heap_type.cached_keys": "ht_cached_keys",
    "tuple.ob_size": "ob_size", "tuple.items": "tuple_items", "list.items": "list_items",
    "set.used": "set_used", "set.table": "set_table", "set.mask": "set_mask",
    "dict.keys": "dict_keys", "dict.values": "dict_values",
    "float.value": "float_value", "long.value": "long_value", "long.digits": "long_digits",
    "bytes.data": "bytes_data", "str.state": "str_state", "str.length": "str_length", "str.ascii_size": "ascii_size",
    "str.compact_size": "compact_size", "gen.iframe": "gen_iframe", "gen.frame_state": "gen_frame_state",
}  # fmt: skip
#: Fields of free-threaded builds only; 0, not an offset, in others.
_FREE_THREADED_FIELDS = {"frame.tlbc_index": "fr_tlbc_index", "code.co_tlbc": "co_tlbc"}

#: Plausible size of a struct in bytes: (least, most); up to _MOST for the others.
_SIZES = {
    "runtime": (1 << 9, 1 << 24), "interpreter": (1 << 10, 1 << 24), "thread": (1 << 7, 1 << 18), "frame": (48, 512),
    "code": (128, 1024), "object": (16, 64), "type": (300, 1 << 12), "tuple": (24, 96), "list": (32, 128),
    "set": (64, 1024), "dict": (40, 256), "float": (24, 96), "long": (24, 96), "bytes": (32, 96), "str": (40, 256),
    "gc": (8, 1 << 16), "gen": (64, 2048),
}  # fmt: skip
_MOST = 1 << 24
#: Words that are sizes of something else, or offsets in another struct than their section's.
_SIZES_OF_OTHERS = ("ascii_size", "compact_size", "stats_size", "gil_enabled", "exc_value")
#: Fields that need not be aligned to 8 bytes; all others are pointers, or structs that begin with one.
_UNALIGNED = ("fr_owner", "fr_tlbc_index", "co_firstlineno", "str_state", "gen_frame_state")


class Published(NamedTuple):
    """Version, build and layout that an interpreter publishes."""

    version: Tuple[int, int, int]
    free_threaded: bool
    layout: Layout
    warnings: Tuple[str, ...] = ()


class Garbage(Exception):
    """An implausible table of offsets; the message gives the reason."""


def describe(memory: Memory, address: int) -> Optional[Published]:
    """Return the offsets published at the start of a ``_PyRuntime``; None if absent or implausible."""
    try:
        return read(memory, address)
    except Garbage:
        return None


def read(memory: Memory, address: int) -> Optional[Published]:
    """Return the offsets published at the start of a ``_PyRuntime``; None if absent. Raises Garbage."""
    try:
        if memory.read(address, 8) != DEBUG_COOKIE:
            return None
        hex_version, free_threaded = memory.words(address + 8, 2)
        version = (hex_version >> 24 & 0xFF, hex_version >> 16 & 0xFF, hex_version >> 8 & 0xFF)
        if hex_version >> 32 or version[0] != 3 or version[1] < min(SHAPES)[1] or free_threaded > 1:
            raise Garbage(f"its table of offsets claims version {hex_version:#x}")
        known = version[:2] in SHAPES
        minor = version[:2] if known else max(SHAPES)
        table = _table(memory, address + 24, SHAPES[minor])
    except Fault as exc:
        raise Garbage(f"its table of offsets cannot be read: {exc}") from exc
    _check(table)
    layout = _layout(table, (FREE_THREADED if free_threaded else LAYOUTS)[minor], bool(free_threaded))
    warnings: Tuple[str, ...] = ()
    if not known:
        said = "{}.{}".format(*version)
        newest = "{}.{}".format(*minor)
        warnings = (
            f"CPython {said} is newer than this version of postmortem: it is read by the offsets that it publishes, and as"
            f" {newest} where it publishes none",
        )
    return Published(version, bool(free_threaded), layout, warnings)


def published(shape: _Shape) -> Set[str]:
    """Return the fields of Layout that a table of that shape gives, in a build of either kind."""
    words = {f"{section}.{word}" for section, words in shape for word in words.split()}
    given = {field for name, field in {**_FIELDS, **_FREE_THREADED_FIELDS}.items() if name in words}
    return given | {"rt_interpreters_main", "is_gc_collecting", "ob_extra"}


def _table(memory: Memory, address: int, shape: _Shape) -> Dict[str, int]:
    """Map section.word to its value. Raises Fault."""
    names = [f"{section}.{word}" for section, words in shape for word in words.split()]
    return dict(zip(names, memory.words(address, len(names))))


def _check(table: Dict[str, int]) -> None:
    """Check a table: raise Garbage for an implausible size, or an offset outside its struct."""
    for name, value in table.items():
        section, word = name.split(".")
        size = table.get(f"{section}.size", _MOST)
        if word == "size":
            least, most = _SIZES.get(section, (8, _MOST))
            if not least <= value <= most:
                raise Garbage(f"its table of offsets says that a {section} has {value} bytes")
        elif value >= (_MOST if word in _SIZES_OF_OTHERS else size) and not _at_end(name, value, size):
            raise Garbage(f"its table of offsets puts {word} at {value} of a {section} of {size} bytes")
        elif name in _FIELDS and _FIELDS[name] not in _UNALIGNED and value % 8:
            raise Garbage(f"its table of offsets puts {word} of a {section} at {value}, where no pointer can be")
    if table["object.type"] != table["object.size"] - 8:
        raise Garbage("its table of offsets does not end an object's header with its type")
    for name in ("tuple.ob_size", "list.ob_size", "bytes.ob_size"):
        if table[name] != table["object.size"]:
            raise Garbage(f"its table of offsets does not begin a {name.split('.')[0]} with its length")


def _at_end(name: str, value: int, size: int) -> bool:
    """Return whether a word is a flexible array at the end of its struct."""
    return value == size and name in ("tuple.items", "code.co_code_adaptive", "frame.localsplus", "long.digits")


def _layout(table: Dict[str, int], row: Layout, free_threaded: bool) -> Layout:
    """Build a layout: the release's row, overridden by the table."""
    found = {field: table[name] for name, field in _FIELDS.items() if name in table}
    if free_threaded:
        found.update({field: table[name] for name, field in _FREE_THREADED_FIELDS.items() if name in table})
    # PyInterpreterState *main follows *head (Include/internal/pycore_runtime_structs.h)
    found["rt_interpreters_main"] = found["rt_interpreters_head"] + 8
    found["is_gc_collecting"] = table["interpreter.gc"] + table["gc.collecting"]
    found["ob_extra"] = table["object.size"] - 16
    return replace(row, **found)  # type: ignore[arg-type]
