"""Locks that nobody who is there can have: where the program takes them by hand, and may leave without giving them back.

That nobody holds a plain lock cannot be read, for it records no owner. It can be made likely: every thread's stack was read
to its end, none has it in a `with`, and the source of every function on them that acquires anything was looked at.
"""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ..cpython.frames import Frame
from ..cpython.interpreter import Python, ThreadState
from ..cpython.names import MACHINERY
from ..evidence import PythonFrame
from .acquires import Acquires
from .callsites import Function, calls_before, dotted

_MOST_PLACES = 8


class Orphans:
    def __init__(self, python: Python, threads: Dict[int, ThreadState], acquires: Acquires) -> None:
        self._python = python
        self._threads = threads
        self._acquires = acquires

    def accounts(self, name: Optional[str], users: Sequence[Frame]) -> Tuple[Tuple[PythonFrame, ...], Tuple[str, ...]]:
        """(where a lock of this name is taken and may be kept, why none of the threads holds it); both empty when a
        thread may hold it for all that is known. ``users``: frames that want it."""
        if name is None or not self._python.all_threads or self._python.finalizing:
            return (), ()
        for state in self._threads.values():
            if state.cut is not None or any(self._acquires.unread(f) for f in self._own(state.frames)):
                return (), ()
        because = (
            f"the stacks of all {len(self._threads)} Python threads were read, and no `with` on them holds it",
            "no function on these stacks has acquired it by hand, or is yet to release it, as far as their source says",
        )
        return tuple(self._places(name.split(".")[-1], users)), because

    @staticmethod
    def _own(frames: Sequence[Frame]) -> List[Frame]:
        return [frame for frame in frames if not frame.code.filename.endswith(MACHINERY)]

    def _places(self, name: str, users: Sequence[Frame]) -> Iterator[PythonFrame]:
        """In the files of those who want it, and of everyone else on the stacks: functions that take it and give it back,
        unless an exception comes in between."""
        everyone = [frame for state in self._threads.values() for frame in state.frames]
        files = dict.fromkeys(frame.code.filename for frame in self._own([*users, *everyone]))
        count = 0
        for file in files:
            source = self._acquires.source(file)
            for function in source.functions:
                if isinstance(function, ast.Module):
                    continue
                line = _unguarded(function, name)
                if line is not None and count < _MOST_PLACES:
                    count += 1
                    owner = source.owners.get(id(function))
                    qualname = f"{owner}.{function.name}" if owner else function.name
                    yield PythonFrame(file, line, function.name, qualname)


def _unguarded(function: Function, name: str) -> Optional[int]:
    """The line where a function acquires something that is called so, when it also releases it, but in no `finally`: what
    it does in between may raise."""
    sites = [site for site in calls_before(function) if site.path and site.path[-1] == name]
    taken = next((site for site in sites if site.name == "acquire"), None)
    if taken is None or not any(site.name == "release" and site.path == taken.path for site in sites):
        return None
    return None if _released_finally(function, name) else taken.line


def _released_finally(function: Function, name: str) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Try):
            for inner in (inner for statement in node.finalbody for inner in ast.walk(statement)):
                if isinstance(inner, ast.Attribute) and inner.attr == "release" and dotted(inner.value)[-1:] == (name,):
                    return True
    return False
