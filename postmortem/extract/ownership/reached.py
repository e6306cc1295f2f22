"""Objects that agents' frames lead to: their variables, value stacks and context managers, and the parts of these.

Breadth first and bounded; each object keeps the objects that led to it, so that a way around a given object can be
asked for: what a pool lists is not held by all who use the pool.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ...timelimits import TimeLimit

SECONDS = 1.0
#: Steps from a variable to an object; objects per agent, and in all.
MAX_STEPS = 4
_MOST_OBJECTS, _MOST_IN_ALL, _MOST_PARENTS = 300, 12_000, 4
_MAX_FRAMES, _MAX_LOCALS, _MOST_ITEMS, _MOST_INNER = 120, 60, 64, 8
_SELF = 24  # PyMethodObject.im_self
_GENERATORS = ("generator", "coroutine", "async_generator")
#: Packages whose objects lead everywhere, or to nothing that is lent.
_NOT_ENTERED = frozenset((
    "threading", "logging", "asyncio", "concurrent", "queue", "weakref", "re", "enum", "typing", "selectors", "socket",
    "ssl", "datetime", "decimal", "pathlib", "builtins", "_thread", "_asyncio", "multiprocessing", "importlib", "inspect",
    "email", "json", "ast", "unittest", "argparse", "dataclasses", "contextvars", "uuid", "random", "string", "abc",
))  # fmt: skip


class Agent(NamedTuple):
    """A thread or a task."""

    tid: Optional[int] = None
    task: Optional[str] = None


class Root(NamedTuple):
    """A place in an agent's frames that refers to an object."""

    agent: Agent
    depth: int  # index of the frame
    name: Optional[str]  # of the variable
    line: Optional[int]  # of the `with`


class Way(NamedTuple):
    """A way from an agent's frame to an object."""

    steps: int
    root: Root


class Reached:
    """Objects that the frames of each agent lead to."""

    def __init__(self, python: Python, parts: Parts, stacks: Dict[Agent, Sequence[Frame]]) -> None:
        self._python, self._parts = python, parts
        self._parents: Dict[Agent, Dict[int, List[int]]] = {}
        self._roots: Dict[Agent, Dict[int, List[Root]]] = {}
        self._referring: Dict[int, Dict[int, Set[str]]] = {}
        self._holders: Dict[int, List[Agent]] = {}
        self._left = _MOST_IN_ALL
        self.complete = True
        limit = TimeLimit(SECONDS)
        for agent, frames in stacks.items():
            if limit.passed() or self._left <= 0:
                self.complete = False
                break
            self._walk(agent, frames[:_MAX_FRAMES])

    # ------------------------------------------------------------------ answers

    def agents(self, thing: int) -> List[Agent]:
        """Return the agents whose frames lead to an object."""
        return self._holders.get(thing, [])

    def referring(self, thing: int) -> Dict[int, Set[str]]:
        """Return the reached objects with an attribute that is ``thing``, each with the attributes' names."""
        return self._referring.get(thing, {})

    def ways(self, agent: Agent, thing: int, around: int) -> Iterator[Way]:
        """Yield the ways of an agent to an object that do not lead through another one."""
        roots, parents = self._roots.get(agent, {}), self._parents.get(agent, {})
        wave, seen = [thing], {thing, around}
        for steps in range(2 * MAX_STEPS + 2):
            following: List[int] = []
            for one in wave:
                yield from (Way(steps, root) for root in roots.get(one, ()))
                following += [parent for parent in parents.get(one, ()) if parent not in seen]
            seen.update(following)
            wave = list(dict.fromkeys(following))

    # ------------------------------------------------------------------ the walk

    def _walk(self, agent: Agent, frames: Sequence[Frame]) -> None:
        roots: Dict[int, List[Root]] = {}
        for value, root in self._starts(agent, frames):
            known = roots.setdefault(value, [])
            if len(known) < _MOST_PARENTS:
                known.append(root)
        parents: Dict[int, List[int]] = {value: [] for value in roots}
        self._roots[agent], self._parents[agent] = roots, parents
        wave, left = list(roots), min(_MOST_OBJECTS, self._left)
        for steps in range(MAX_STEPS + 1):
            following: List[int] = []
            for value in wave:
                if left <= 0:
                    self.complete = False
                    break
                left -= 1
                self._left -= 1
                self._holders.setdefault(value, []).append(agent)
                for part in self._parts_of(value):
                    if part in parents:
                        if len(parents[part]) < _MOST_PARENTS:
                            parents[part].append(value)
                    elif steps < MAX_STEPS:
                        parents[part] = [value]
                        following.append(part)
            wave = following

    def _starts(self, agent: Agent, frames: Sequence[Frame]) -> Iterator[Tuple[int, Root]]:
        locks, frames_of = self._python.locks, self._python.frames
        for depth, frame in enumerate(frames):
            for manager, line in locks.managers(frame):
                yield manager, Root(agent, depth, None, line)
            for name, value in list(frames_of.locals(frame))[:_MAX_LOCALS]:
                for inner in self._entered(value):
                    yield inner, Root(agent, depth, name, None)
            height = frames_of.height(frame)
            used = height - frame.code.nlocalsplus if height is not None else frames_of.kept_depth(frame)
            for value in frames_of.value_stack(frame)[: max(used, 0)]:
                for inner in self._entered(value) if value else ():
                    yield inner, Root(agent, depth, None, None)

    def _entered(self, value: int) -> Iterable[int]:
        """Return an object, if its parts are worth a look; the items of a container."""
        if self._parts.is_plain(value):
            return (value,) if self._is_entered(value) else ()
        name = self._python.objects.type_name(value)
        if name in _GENERATORS:
            return (value,)
        if name == "method":
            try:
                inner = self._python.objects.field(value, _SELF)
            except Fault:
                return ()
            return (inner,) if self._parts.is_plain(inner) and self._is_entered(inner) else ()
        found: List[int] = []
        for item in self._parts.items(value, _MOST_ITEMS) or ():
            within = (item,) if self._parts.is_plain(item) else self._parts.items(item, _MOST_INNER) or ()
            found += [one for one in within if self._parts.is_plain(one) and self._is_entered(one)]
        return found[:_MOST_ITEMS]

    def _is_entered(self, value: int) -> bool:
        kind = self._parts.type_of(value)
        return kind is not None and self._parts.module(kind).partition(".")[0] not in _NOT_ENTERED

    def _parts_of(self, value: int) -> List[int]:
        """Return what an object leads to next, and note what it refers to."""
        if self._python.objects.type_name(value) in _GENERATORS:
            return self._of_generator(value)
        found: List[int] = []
        for name, part in self._parts.attributes(value).items():
            if self._parts.is_plain(part):
                self._referring.setdefault(part, {}).setdefault(value, set()).add(name)
            found += self._entered(part)
        return found

    def _of_generator(self, value: int) -> List[int]:
        try:
            frame = self._python.frames.generator(value).frame
        except (Fault, NotThat):
            frame = None
        if frame is None:
            return []
        values = [manager for manager, _line in self._python.locks.managers(frame)]
        values += [inner for _name, one in self._python.frames.locals(frame) for inner in self._entered(one)]
        return values[:_MAX_LOCALS]
