"""Python signal handlers that a program has set.

The interpreter has a table of NSIG = 65 entries of 16 bytes, ``{int tripped; PyObject *func;}``, in its file's data:
- up to 3.11: the static ``Handlers`` of Modules/signalmodule.c.
- since 3.12: ``_PyRuntime.signals.handlers`` (Include/internal/pycore_signal.h).

It is found by its contents, without a symbol: entry 0 is unused; each of the other 64 holds SIG_DFL's or SIG_IGN's
object (known from module ``_signal``), None for a signal with a C handler, or a callable.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..runtime.candidates import data_areas
from .interpreter import Python

_SIGNALS, _ENTRY = 64, 16
#: Fewest entries with SIG_DFL: programs set only a few signals.
_LEAST_DEFAULT = 32
#: Most bytes searched of one file's data.
_MAX_AREA = 16 << 20
_PAGE = 4096


class Handler(NamedTuple):
    """A Python handler of a signal."""

    signal: int
    callable: int  # address


def handlers(python: Python) -> Optional[List[Handler]]:
    """Return the handlers other than SIG_DFL, SIG_IGN and ``default_int_handler``, by signal number.

    None if the table was not found.
    """
    if not python.interpreters:
        return None
    own = {
        name: python.module_value(python.interpreters[0], "_signal", name)
        for name in ("SIG_DFL", "SIG_IGN", "default_int_handler")
    }
    default, ignore = own["SIG_DFL"], own["SIG_IGN"]
    if default is None or ignore is None:
        return None
    for data in _data(python):
        for table in _tables(data, default):
            found = _entries(python, data, table, default, ignore)
            if found is not None:
                return [handler for handler in found if handler.callable != own["default_int_handler"]]
    return None


def _data(python: Python) -> Iterator[bytes]:
    """Yield the interpreter file's data and what follows it directly, each as one piece."""
    merged: List[Tuple[int, int]] = []
    for area in data_areas(python.memory):
        if area.path != python.runtime.path and not area.start <= python.runtime.address < area.end:
            continue
        if merged and merged[-1][1] == area.start:
            merged[-1] = (merged[-1][0], area.end)
        else:
            merged.append((area.start, area.end))
    for start, end in merged:
        size = min(end - start, _MAX_AREA)
        try:
            yield python.memory.read(start, size)
        except Fault:
            yield b"".join(_page(python, page) for page in range(start, start + size, _PAGE))


def _page(python: Python, address: int) -> bytes:
    """Return a page; zeros, which match no entry of the table, if missing."""
    try:
        return python.memory.read(address, _PAGE)
    except Fault:
        return bytes(_PAGE)


def _tables(data: bytes, default: int) -> Iterator[int]:
    """Yield possible offsets of the table, by number of entries with SIG_DFL, most first."""
    needle = struct.pack("<Q", default)
    counts: Dict[int, int] = {}
    places = []
    at = data.find(needle)
    while at >= 0:
        if at % 8 == 0:
            places.append(at)
        at = data.find(needle, at + 8 - at % 8)
    known = set(places)
    marks = [
        bytearray(len(data) // _ENTRY + _SIGNALS + 2) for _ in range(2)
    ]  # of entries at 0 and at 8 of every 16 bytes
    for place in places:
        marks[place // 8 % 2][place // _ENTRY] = 1
    for place in places:
        if place - _ENTRY not in known:  # the first of a run: the signals before it have other handlers
            mine = marks[place // 8 % 2]
            for number in range(1, _SIGNALS + 1):
                table = place - 8 - _ENTRY * number
                if table >= 0 and table not in counts:
                    first = (table + 8) // _ENTRY + 1
                    counts[table] = mine.count(1, first, first + _SIGNALS)
    yield from sorted((t for t, count in counts.items() if count >= _LEAST_DEFAULT), key=lambda t: -counts[t])


def _entries(python: Python, data: bytes, table: int, default: int, ignore: int) -> Optional[List[Handler]]:
    """Return the handlers in a table at this offset; None if it is not a table."""
    size = _ENTRY * (_SIGNALS + 1)
    if table + size > len(data):
        return None
    words = struct.unpack_from(f"<{size // 8}Q", data, table)
    if words[1] or any(word & 0xFFFFFFFF > 1 for word in words[::2]):
        return None
    found = []
    for number, callable_ in enumerate(words[3::2], 1):
        if callable_ in (default, ignore):
            continue
        name = python.objects.type_name(callable_) if callable_ else None
        if name is None:
            return None
        if name != "NoneType":
            found.append(Handler(number, callable_))
    return found
