"""The lock inside a buffered file: sys.stdin, sys.stdout, results of ``open``.

struct buffered has a C lock, ``PyThread_type_lock lock``, followed by ``volatile unsigned long owner``: the ident of
the holding thread, 0 if free. No Python object refers to the lock, but the file stores its address: that address is
searched in memory, and the file around it recognised by its type. From 3.8 to 3.13 the lock is 104 bytes into the
object.

Source: Modules/_io/bufferedio.c of 3.8-3.15 (struct buffered, ENTER_BUFFERED).
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional, Tuple

from ...memory import Fault
from ...timelimits import TimeLimit
from ..objects.attributes import attribute
from ..objects.builtins import NotThat, Objects
from ..objects.wordsearch import WordSearch
from .parking import parked_on

_TYPES = ("_io.BufferedReader", "_io.BufferedWriter", "_io.BufferedRandom")
_RAW = 16
#: Possible offsets of the lock: after the file and the buffer, plus what a release may add.
_LOCK_AT = (104, *range(72, 160, 8))


class BufferedLock(NamedTuple):
    """The lock of a buffered file."""

    address: int  # of the file object
    type: str  # "BufferedReader"
    owner_ident: int  # 0: free
    name: Optional[str]  # name of the file: a path, "<stdin>", "descriptor 7"


def awaited_buffer(
    objects: Objects, word: int, ranges: Iterable[Tuple[int, int]], limit: TimeLimit
) -> Optional[BufferedLock]:
    """Return the buffered file whose lock a thread awaits on a futex word.

    None if it awaits something else, or nothing is found within the time limit. ``ranges``: (start, end) of the memory to
    search.
    """
    parked = parked_on(objects.memory, word)
    lock = word if parked is None else parked
    try:
        places = WordSearch(objects.memory, list(ranges), limit).places([lock])[lock]
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
    """Return the name of a file as opened, a path or a descriptor, from FileIO's ``__dict__``; None if unknown."""
    try:
        raw = objects.field(address, _RAW)
        name = attribute(objects, raw, "name") if raw else None
        if not name:
            return None
        text = objects.optional_text(name)
        return text if text is not None else f"descriptor {objects.integer(name)}"
    except (Fault, NotThat):
        return None
