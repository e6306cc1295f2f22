"""Checks of evidence beyond its types, so that later stages need none.

- Numbers lie in the range of a kernel field or a clock.
- Ids are unique within their process.
- There are no more processes, threads, tasks and resources than a machine can have.

msgspec checks the types. One violation rejects the whole document: a file with one absurd number is damaged or
forged, and the rest of it deserves no more trust.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any, Callable, Iterable, Set, Tuple, Type, get_type_hints

import msgspec

from .document import Evidence
from .processes import Process

#: Bytes of JSON. A capture of 2,000 threads and 20,000 tasks has 58 MB; its reports take seven times as much memory.
MOST_BYTES = 64 << 20
#: Integers are ids, counts, addresses, lines: fields of 64 bits, signed or unsigned.
LEAST_INTEGER, MOST_INTEGER = -(1 << 63), (1 << 64) - 1
#: Floats are seconds and shares; a timespec (64 bits of seconds), even from a damaged core, holds no more.
MOST_FLOAT = 2.0**64
#: Most threads, tasks or resources of all processes together; most processes. Linux's PID_MAX_LIMIT is larger, but no
#: process tree of a Python program has come near it.
MOST_AGENTS, MOST_PROCESSES = 200_000, 20_000
#: Most threads and tasks in the waiters and wakers of all resources, repeated ones included: each waits for one or two.
MOST_REFERENCES = 3_000_000


def check(evidence: Evidence) -> None:
    """Check evidence for impossible values; raise ValueError, with one sentence, at the first."""
    _count(evidence)
    _numbers(evidence)
    _unique("process", (process.pid for process in evidence.processes))
    for process in evidence.processes:
        for what, ids in _ids(process):
            _unique(what, ids, f" of process {process.pid}")


def _count(evidence: Evidence) -> None:
    """Raise ValueError if there are too many processes, agents, resources or references."""
    processes = evidence.processes
    if len(processes) > MOST_PROCESSES:
        raise ValueError(f"it has {len(processes)} processes, more than {MOST_PROCESSES}")
    for what in ("threads", "tasks", "resources", "loops", "pools"):
        count = sum(len(getattr(process, what)) for process in processes)
        if count > MOST_AGENTS:
            raise ValueError(f"it has {count} {what}, more than {MOST_AGENTS}")
    count = sum(
        len(r.waiters) + len(r.waiting_tasks) + len(r.wakers) for process in processes for r in process.resources
    )
    if count > MOST_REFERENCES:
        raise ValueError(f"its resources name {count} threads and tasks, more than {MOST_REFERENCES}")


def _ids(process: Process) -> Tuple[Tuple[str, Iterable[object]], ...]:
    """Return the ids that must be unique within a process, grouped by kind."""
    return (
        ("thread", (thread.tid for thread in process.threads)),
        ("task", (task.id for task in process.tasks)),
        ("resource", (resource.id for resource in process.resources)),
        ("loop", (loop.id for loop in process.loops)),
        ("pool", (pool.id for pool in process.pools)),
    )


def _unique(what: str, ids: Iterable[object], where: str = "") -> None:
    known: Set[object] = set()
    for each in ids:
        if each in known:
            raise ValueError(f"it has {what} {str(each)[:40]}{where} twice")
        known.add(each)


# ---------------------------------------------------------------------- numbers


def _numbers(value: Any) -> None:
    """Raise ValueError if a number anywhere in a value is out of range."""
    kind = type(value)
    if kind is int:
        if not LEAST_INTEGER <= value <= MOST_INTEGER:
            raise ValueError("it has an integer of more than 64 bits")
    elif kind is float:
        if not -MOST_FLOAT <= value <= MOST_FLOAT:
            raise ValueError(f"it has a number beyond {MOST_FLOAT:.0e}")
    elif kind is tuple:
        for item in value:
            _numbers(item)
    elif kind is dict:
        for key, item in value.items():
            _numbers(key)
            _numbers(item)
    elif isinstance(value, msgspec.Struct):
        for item in _telling(type(value))(value):
            _numbers(item)


@lru_cache(maxsize=None)
def _telling(kind: Type[msgspec.Struct]) -> Callable[[Any], Tuple[Any, ...]]:
    """Return a getter of those fields of a struct type that can contain numbers, as a tuple."""
    hints = get_type_hints(kind)
    names = [name for name in kind.__struct_fields__ if not _leaves(hints[name]) <= {str, bool, type(None)}]
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda value: (only(value),)
    return attrgetter(*names) if names else lambda value: ()


def _leaves(hint: Any) -> Set[Any]:
    """Return the types that a type hint contains, without the containers."""
    inner = getattr(hint, "__args__", None)
    if not inner:
        return {hint}
    return {leaf for each in inner if each is not ... for leaf in _leaves(each)}
