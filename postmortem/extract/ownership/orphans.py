"""Locks that no live thread can hold, and the places where the program may have left them locked.

A plain lock records no owner, so the absence of a holder is only likely. It is concluded when:

- every thread's stack was read completely
- no `with` on a stack holds the lock
- the source of every function on the stacks that acquires anything was analysed
"""

from __future__ import annotations

import ast
from typing import Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ...cpython.frames.frame import Frame
from ...cpython.frames.names import MACHINERY
from ...cpython.state.interpreter import Python, ThreadState
from ...evidence import Fact, PythonFrame, fact
from ..sourcecode.callsites import CallSite, calls_before, dotted
from .acquires import Acquires

_MOST_PLACES = 8
#: Decorators that turn a generator into a context manager: what it keeps locked is found by the `with` that uses it.
_MANAGERS = (("contextmanager",), ("asynccontextmanager",))


class LockUser(NamedTuple):
    """A function of the program that acquires or releases a lock of a given name by hand."""

    file: str
    owner: Optional[str]  # class of the method
    function: Union[ast.FunctionDef, ast.AsyncFunctionDef]
    sites: List[CallSite]  # the calls on the lock

    @property
    def taken(self) -> Optional[int]:
        """Return the line of the acquisition; None if there is none."""
        return next((site.line for site in self.sites if site.name == "acquire"), None)

    @property
    def gives_back(self) -> bool:
        """Return whether the function releases the lock."""
        return any(site.name == "release" for site in self.sites)

    @property
    def keeps(self) -> bool:
        """Return whether the lock stays held after the function returns or while its generator is suspended."""
        managers = any(dotted(d)[-1:] in _MANAGERS for d in self.function.decorator_list)
        yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(self.function))
        return self.taken is not None and (not self.gives_back or (yields and not managers))

    @property
    def loses(self) -> bool:
        """Return whether the function releases what it takes, but not in a `finally`: an exception may skip it."""
        certain = {
            (inner.lineno, inner.col_offset)
            for node in ast.walk(self.function)
            if isinstance(node, ast.Try)
            for statement in node.finalbody
            for inner in ast.walk(statement)
            if isinstance(inner, ast.Call)
        }
        released = [(site.line, site.column) for site in self.sites if site.name == "release"]
        return self.taken is not None and bool(released) and certain.isdisjoint(released)


class Orphans:
    """Places in the program that explain a lock without a holder."""

    def __init__(self, python: Python, threads: Mapping[int, ThreadState], acquires: Acquires) -> None:
        self._python = python
        self._threads = threads
        self._acquires = acquires

    def accounts(self, name: str, users: Sequence[Frame]) -> Tuple[Fact, ...]:
        """Return the reasons why no thread holds a lock of this name; empty if one may."""
        if not self._python.all_threads or self._python.finalizing:
            return ()
        stacks = [self._own(state.frames) for state in self._threads.values()]
        if any(state.cut is not None for state in self._threads.values()):
            return ()
        keeping = {user.function.name for user in self._users(name, users) if user.keeps}
        for frame in (frame for stack in stacks for frame in stack):
            if self._acquires.unread(frame) or not keeping.isdisjoint((frame.function, *frame.code.used_names())):
                return ()
        return (
            fact("stacks-hold-none", threads=len(self._threads)),
            fact("stacks-took-none"),
        )

    def taken_at(self, name: str, users: Sequence[Frame]) -> Tuple[PythonFrame, ...]:
        """Return the places that acquire a lock of this name and may skip its release.

        These are functions whose release is not in a `finally`; if there are none, all functions that acquire it.
        """
        known = list(self._users(name, users))
        found = [user for user in known if user.loses] or [user for user in known if user.taken is not None]
        return tuple(
            PythonFrame(
                u.file, u.taken, u.function.name, f"{u.owner}.{u.function.name}" if u.owner else u.function.name
            )
            for u in found[:_MOST_PLACES]
        )

    def released_at(self, name: str, users: Sequence[Frame]) -> Tuple[PythonFrame, ...]:
        """Return functions that release a lock of this name without acquiring it: it may be a gate that they open."""
        found = [user for user in self._users(name, users) if user.gives_back and user.taken is None]
        lines = [(u, next(site.line for site in u.sites if site.name == "release")) for u in found[:_MOST_PLACES]]
        return tuple(
            PythonFrame(u.file, line, u.function.name, f"{u.owner}.{u.function.name}" if u.owner else u.function.name)
            for u, line in lines
        )

    @staticmethod
    def _own(frames: Sequence[Frame]) -> List[Frame]:
        return [frame for frame in frames if not frame.code.filename.endswith(MACHINERY)]

    def _users(self, name: str, users: Sequence[Frame]) -> Iterator[LockUser]:
        """Yield the functions that use the lock, from the files of its users and of all stacks."""
        owner, _dot, called = name.rpartition(".")
        everyone = [frame for state in self._threads.values() for frame in state.frames]
        sources = {
            file: self._acquires.source(file)
            for file in dict.fromkeys(frame.code.filename for frame in self._own([*users, *everyone]))
        }
        is_class = any(owner in source.owners.values() for source in sources.values())
        for file, source in sources.items():
            for function in source.functions:
                if isinstance(function, ast.Module):
                    continue
                of = source.owners.get(id(function))
                sites = [site for site in calls_before(function) if site.path and site.path[-1] == called]
                if is_class and of != owner:  # the same name in another class is another lock
                    sites = [site for site in sites if site.path != ("self", called)]
                if sites:
                    yield LockUser(file, of, function, sites)
