"""Semaphores that processes share: ``_multiprocessing.SemLock``, its wrappers, and the words in shared memory.

SemLockObject, after the object's header (Modules/_multiprocessing/semaphore.c of 3.8-3.15):
- ``SEM_HANDLE handle``: a ``sem_t *``.
- ``unsigned long last_tid``: threading.get_ident() of the last thread that acquired it.
- ``int count``: acquisitions minus releases of *this process*; reset to 0 in children that multiprocessing forks,
  initially 0 in those that it spawns.
- ``int maxvalue``, ``int kind``.
- ``char *name``: present until the semaphore's file is unlinked; start methods other than fork need it.

The semaphore itself lies at the beginning of a file of its own in /dev/shm (sem_open(3)):
- glibc 2.21 and later (sysdeps/nptl/internaltypes.h, struct new_sem): the value is the low half of the first 64 bits,
  the number of waiters the high half.
- musl: the same, but for the encoding of the value with waiters (``libc.musl.semaphore_value``).
"""

from __future__ import annotations

import contextlib
import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...libc import musl
from ...memory import Fault, Image
from ...timelimits import TimeLimit
from ..objects.attributes import attribute, attributes
from ..objects.builtins import NotThat, Objects
from ..objects.wordsearch import WordSearch
from ..state.interpreter import Python

#: enum { RECURSIVE_MUTEX, SEMAPHORE }
RECURSIVE = 0
#: SEM_VALUE_MAX of glibc: no bound.
NO_BOUND = 2147483647
_HANDLE, _SIZE = 16, 40
_FIELDS = struct.Struct("<QQiiiiQ")
#: Time for searching the memory of one process: a gigabyte takes about a second.
_SEARCH_S = 2.0
#: Most attributes from an object to its semaphore: JoinableQueue._cond._lock._semlock.
_DEPTH = 4
_MOST_OPENED = 20_000


class SemLock(NamedTuple):
    """A _multiprocessing.SemLock."""

    address: int
    handle: int  # address of the mapped semaphore
    ident: int  # of the last thread that acquired it; 0: none in this process
    taken: int  # ``count``
    limit: int
    recursive: bool
    name: Optional[str]  # "/mp-0a1b2c3d"

    @property
    def is_lock(self) -> bool:
        """Whether it has one permit, released by its holder: Lock, RLock, BoundedSemaphore(1)."""
        return self.recursive or self.limit == 1


class Count(NamedTuple):
    """The value of a semaphore, and its number of waiters."""

    value: int
    waiters: int


def semlock(objects: Objects, address: int) -> SemLock:
    """Return the SemLock at an address. Raises Fault or NotThat."""
    if objects.type_name(address) != "_multiprocessing.SemLock":
        raise NotThat("no SemLock")
    raw = objects.memory.read(address + objects.layout.ob_extra + _HANDLE, _SIZE)
    handle, ident, count, limit, kind, _padding, name = _FIELDS.unpack(raw)
    if kind not in (0, 1) or limit < 1 or not handle:
        raise NotThat("a damaged SemLock")
    text = None
    with contextlib.suppress(Fault):
        text = objects.memory.cstring(name, 64).decode("ascii", "backslashreplace") if name else None
    return SemLock(address, handle, ident, count, limit, kind == RECURSIVE, text)


def read_count(image: Image, handle: int) -> Optional[Count]:
    """Return the value and waiters of a semaphore; None if unreadable or implausible."""
    try:
        word = image.u64(handle)
    except Fault:
        return None
    value, waiters = word & 0xFFFFFFFF, word >> 32
    if musl.is_musl(image.files):
        value = musl.semaphore_value(value)
    return Count(value, waiters) if value <= NO_BOUND and waiters < 1 << 22 else None


def find_semlocks(python: Python, image: Image, handles: Dict[int, str]) -> Tuple[List[SemLock], bool]:
    """Return (SemLocks whose semaphore is at one of ``handles``, whether all memory was searched).

    No list contains them, but each begins with the address of its type.
    """
    types = [python.module_value(i, "_multiprocessing", "SemLock") for i in python.interpreters]
    found: Dict[int, SemLock] = {}
    try:
        places = WordSearch(image, image.written, TimeLimit(_SEARCH_S)).places([t for t in types if t])
    except NotThat:
        return [], False
    for place in (place for several in places.values() for place in several):
        with contextlib.suppress(Fault, NotThat):
            lock = semlock(python.objects, place - python.layout.ob_type)
            if lock.handle in handles:
                found.setdefault(lock.address, lock)
    return list(found.values()), True


# ------------------------------------------------------------------ what the program has


class Paths:
    """Attribute paths from objects of multiprocessing to one SemLock: ``("_cond", "_lock", "_semlock")``.

    Each object is read once, and at most ``_MOST_OPENED`` are: references may form cycles.
    """

    def __init__(self, objects: Objects, semlock_address: int) -> None:
        self._objects = objects
        self._semlock = semlock_address
        self._left = _MOST_OPENED
        self._known: Dict[Tuple[int, int], Optional[Tuple[str, ...]]] = {}

    def of(self, value: int, depth: int = _DEPTH) -> Optional[Tuple[str, ...]]:
        """Return the path from an object to the SemLock; None if there is none."""
        key = (value, depth)
        if key not in self._known:
            self._known[key] = None  # ends cycles
            self._known[key] = self._search(value, depth)
        return self._known[key]

    def _search(self, value: int, depth: int) -> Optional[Tuple[str, ...]]:
        """Search an object's attributes for the SemLock."""
        self._left -= 1
        if self._left < 0:
            return None
        try:
            values = attributes(self._objects, value)
        except (Fault, NotThat):
            return None
        if values.get("_semlock") == self._semlock:
            return ("_semlock",)
        for name in _PARTS if depth > 1 else ():
            part = values.get(name)
            below = self.of(part, depth - 1) if part else None
            if below is not None:
                return (name, *below)
        return None


def wrapped(objects: Objects, value: int) -> Optional[int]:
    """Return the SemLock that ``with value:`` acquires; None if there is none.

    ``value``: a lock, condition, or synchronized object (Lib/multiprocessing of 3.8-3.15: synchronize.py,
    sharedctypes.py).
    """
    for _ in range(_DEPTH):
        if objects.type_name(value) == "_multiprocessing.SemLock":
            return value
        following = attribute(objects, value, "_semlock") or attribute(objects, value, "_lock")
        if not following:
            return None
        value = following
    return None


#: Role of the semaphore on which those wait who are to be notified: of a Condition, and so of an Event and a Barrier.
NOTIFICATION = "its notification"
#: Attribute of multiprocessing's own classes → role of the semaphore (Lib/multiprocessing of 3.8-3.15: synchronize.py,
#: queues.py, sharedctypes.py).
ROLES: Dict[str, Optional[str]] = {
    "_semlock": None,
    "_rlock": "its lock for reading",
    "_wlock": "its lock for writing",
    "_sem": "its free places",
    "_lock": "its lock",
    "_wait_semaphore": NOTIFICATION,
    "_sleeping_count": "its count of sleepers",
    "_woken_count": "its count of the woken",
    "_unfinished_tasks": "its count of unfinished tasks",
    "_flag": "its flag",
    "_cond": None,
}
_PARTS = (
    "_lock",
    "_rlock",
    "_wlock",
    "_sem",
    "_cond",
    "_wait_semaphore",
    "_sleeping_count",
    "_woken_count",
    "_unfinished_tasks",
    "_flag",
)


def role_of(path: Tuple[str, ...]) -> Optional[str]:
    """Return the role of the innermost attribute that has one, such as "its lock for reading"; None if none has."""
    return next((ROLES[name] for name in reversed(path) if ROLES.get(name)), None)
