"""Connections that a suspended task serves: descriptors to which the variables of its frames lead.

A handler has its connection at hand: as the stream it reads or writes, as ``self.transport`` of a protocol, or behind the
callable through which its framework receives. Only attributes of objects, bound methods, cells and partials are followed, no
containers: what a registry holds belongs to others, too.

Sources: see ``streams.py``; greenlets and trio's streams have the socket itself as an attribute.
"""

from __future__ import annotations

import itertools
from typing import Iterator, List, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame, Frames
from ...cpython.frames.functions import Functions
from ...cpython.objects.attributes import attributes
from ...cpython.objects.builtins import NotThat
from ...memory import Fault
from .streams import descriptor_of_socket

#: Limits: frames of a task, locals of a frame, objects visited, steps from a variable, descriptors of one connection.
_MOST_FRAMES, _MOST_LOCALS, _MOST_OBJECTS, _DEPTH, _MOST_FOUND = 30, 60, 300, 6, 2
_TRANSPORT = ("_sock_fd", "_fileno")
#: Ends of names of classes whose objects belong to the whole process.
_SHARED = (
    "EventLoop", "Logger", "Task", "Future", "Lock", "Condition", "Event", "Queue", "Thread", "Selector", "Server",
)  # fmt: skip


class Connections:
    """A search for the connections of tasks. Methods never raise."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects = frames.objects
        self._functions = Functions(frames)

    def of(self, frames: Sequence[Frame]) -> Tuple[int, ...]:
        """Return the descriptors that a task's variables lead to by the shortest way; none if they are too many to be its own."""
        level: List[int] = []
        for frame in itertools.islice(frames, _MOST_FRAMES):
            level += [value for _name, value in itertools.islice(self._frames.locals(frame), _MOST_LOCALS)]
        seen: Set[int] = set()
        for _step in range(_DEPTH):
            found: Set[int] = set()
            further: List[int] = []
            for value in level:
                if value in seen or len(seen) > _MOST_OBJECTS:
                    continue
                seen.add(value)
                try:
                    found.update(self._descriptors(value))
                    further += self._next(value)
                except (Fault, NotThat):
                    continue
            if found:
                return tuple(sorted(found)) if len(found) <= _MOST_FOUND else ()
            level = further
        return ()

    def _descriptors(self, value: int) -> Iterator[int]:
        """Yield the descriptor of a socket or of a transport. Raises Fault or NotThat."""
        number = descriptor_of_socket(self._objects, value)
        if number is not None:
            yield number
            return
        own = attributes(self._objects, value)
        for name in _TRANSPORT:
            if name in own:
                number = self._objects.integer_or_none(own[name])
                if number is not None and number >= 0:
                    yield number

    def _next(self, value: int) -> List[int]:
        """Return what an object leads to. Raises Fault or NotThat."""
        kind = self._objects.type_name(value) or ""
        if kind in ("function", "method", "functools.partial"):
            return self._functions.carried(value)
        if kind in ("module", "type") or kind.endswith(_SHARED):
            return []
        return list(attributes(self._objects, value).values())
