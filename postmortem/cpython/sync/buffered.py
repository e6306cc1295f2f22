"""The lock inside a buffered file: sys.stdin, sys.stdout, what ``open`` gives.

One thread at a time reads or writes such a file: the struct has a lock of C, and next to it the ident of the thread that
holds it, 0 when there is none (Modules/_io/bufferedio.c of 3.8-3.15, struct buffered: PyThread_type_lock lock; volatile
unsigned long owner; ENTER_BUFFERED). No object of Python leads to that lock, but the file has its address: it is looked for
in memory, and the file around it is known by its type. From 3.8 to 3.13 the lock lies 104 bytes into the object.
"""

from __future__ import annotations

import time
from typing import Iterable, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.attributes import attribute
from ..objects.builtins import NotThat, Objects
from ..objects.wordsearch import WordSearch
from .parking import parked_on

_TYPES = ("_io.BufferedReader", "_io.BufferedWriter", "_io.BufferedRandom")
_RAW = 16
#: Where in the object the lock may be: after the file and the buffer, whatever a version adds to them.
_LOCK_AT = (104, *range(72, 160, 8))


class BufferedLock(NamedTuple):
    address: int  # of the file object
    type: str  # "BufferedReader"
    owner_ident: int  # 0: nobody
    name: Optional[str]  # of the file: a path, "<stdin>", "descriptor 7"


def awaited_buffer(
    objects: Objects, word: int, ranges: Iterable[Tuple[int, int]], seconds: float
) -> Optional[BufferedLock]:
    """The buffered file for whose lock a thread sleeps on a futex word; None when it is for none, or was not found in so
    many seconds. ``ranges``: (start, end) of the memory to look through."""
    parked = parked_on(objects.memory, word)
    lock = word if parked is None else parked
    try:
        places = WordSearch(objects.memory, list(ranges), time.monotonic() + seconds).places([lock])[lock]
    except NotThat:
        return None
    for place in places:
        for offset in _LOCK_AT:
            address = place - objects.layout.ob_extra - offset
            name = objects.type_name(address)
            if name in _TYPES:
                try:
                    owner = objects.memory.u64(place + 8)
                    return BufferedLock(address, name.partition(".")[2], owner, _name(objects, address))
                except Fault:
                    return None
    return None


def _name(objects: Objects, address: int) -> Optional[str]:
    """FileIO keeps in its ``__dict__`` what it was opened with: a path or a descriptor."""
    try:
        raw = objects.field(address, _RAW)
        name = attribute(objects, raw, "name") if raw else None
        if not name:
            return None
        text = objects.optional_text(name)
        return text if text is not None else f"descriptor {objects.integer(name)}"
    except (Fault, NotThat):
        return None
