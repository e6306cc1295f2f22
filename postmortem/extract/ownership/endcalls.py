"""What is called when a task ends: the callbacks of asyncio's tasks, and the links of gevent's greenlets.

Nothing here knows a layout: they are callables among an object's words and attributes, or in a list that is one of these.

- asyncio (Lib/asyncio/futures.py, Modules/_asynciomodule.c, 3.8-3.15): one callable, or a list of pairs (callable, context)
- gevent (gevent/greenlet.py, 20.12-26.9): a list of callables, or of ``SpawnedLink`` objects that have one
"""

from __future__ import annotations

from typing import Iterator, List, Tuple

from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault

_CALLABLES = ("function", "method", "functools.partial", "builtin_function_or_method", "builtin_method")
#: Compiled classes whose instances have a callable among their words.
_LINKS = ("SpawnedLink", "SuccessSpawnedLink", "FailureSpawnedLink")
#: Bytes of an object's header: reference count and type.
_HEADER = 16
_MOST_WORDS, _MOST_CALLED, _DEEPEST = 64, 50, 3


def called_at_end(parts: Parts, task: int) -> Tuple[int, ...]:
    """Return the addresses of the callables that are to be called when a task or greenlet ends; never raises."""
    found: List[int] = []
    for value in (*_words(parts.objects, task), *parts.attributes(task).values()):
        found += _callables(parts, value, 1)
    return tuple(dict.fromkeys(found))[:_MOST_CALLED]


def _callables(parts: Parts, value: int, depth: int) -> Iterator[int]:
    """Yield a value that is callable, and those in the containers and links that it leads to."""
    name = parts.objects.type_name(value) if value else None
    if name in _CALLABLES:
        yield value
    elif name is None or depth > _DEEPEST:
        return
    elif name in ("list", "tuple", "collections.deque"):
        for item in (parts.items(value) or ())[:_MOST_CALLED]:
            yield from _callables(parts, item, depth + 1)
    elif name.rpartition(".")[2] in _LINKS:
        for word in (*_words(parts.objects, value), *parts.attributes(value).values()):
            yield from _callables(parts, word, depth + 1)


def _words(objects: Objects, address: int) -> Tuple[int, ...]:
    """Return the words of an object's structure behind its header; empty if it cannot be read."""
    try:
        size = objects.type_of(address).basicsize
        return tuple(objects.memory.words(address + _HEADER, min(_MOST_WORDS, (size - _HEADER) // 8)))
    except (Fault, NotThat):
        return ()
