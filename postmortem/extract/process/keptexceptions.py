"""Exceptions kept with their tracebacks, by type and place, and the variables that keep them."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ...cpython.frames.exceptions import exceptions
from ...cpython.frames.frame import Frame
from ...cpython.heap.keptexceptions import Kept, Reader, find
from ...cpython.heap.variablesearch import CONTAINERS, Named, User, VariableSearch
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python, ThreadState
from ...evidence import KeptException, PythonFrame
from ...memory import Fault
from ...sourcepaths import is_program
from ...timelimits import TimeLimit
from ..recorded.shapes import integer
from ..sourcecode.usages import last_name
from .context import PythonContext

_SECONDS = 1.0  # for the search of a core without a probe: about 1 GB/s, a third of that on a busy machine
_SEARCH_S = 0.2
#: Smaller groups are normal in any program.
_LEAST_COUNT, _LEAST_BYTES = 20, 1 << 20
_MOST_TOLD, _MOST_KEEPERS = 5, 4


class _Group(NamedTuple):
    kept: List[Kept]
    place: Tuple[Frame, int]
    caught: Tuple[Frame, int]


class KeptBook:
    """The kept exceptions of one process.

    ``shown`` converts a frame to evidence.
    """

    def __init__(self, context: PythonContext, shown: Callable[[Frame], PythonFrame]) -> None:
        self._python = context.python
        self._core = context.core
        self._usages = context.usages
        self._shown = shown
        self._threads = context.threads.states
        self._told = context.probe("exceptions")

    def groups(self, users: Iterable[User]) -> Tuple[KeptException, ...]:
        """Return groups of exceptions, those that keep the most memory first."""
        found, total = self._found()
        busy = {raised.address for state in self._threads.values() for raised in self._raised(state)}
        wanted = [address for address in found if address not in busy]
        reader = Reader(self._python)
        keepers = _Keepers(self._python, reader, set(wanted))
        if wanted:
            keepers.look(users)
            reader.leave_out(
                keepers.reached(VariableSearch.steps)
            )  # memory reachable from variables anyway is not kept by exceptions
        kept = [one for one in map(reader.kept, wanted) if one is not None]
        if not kept:
            return ()
        share = max(1.0, total / len(found))
        grouped: Dict[Tuple[str, int, int], _Group] = {}
        for one in kept:
            key = (one.type, one.frames[-1][0].code.address, one.frames[0][0].code.address)
            grouped.setdefault(key, _Group([], one.frames[-1], _caught(one))).kept.append(one)
        several = sorted(grouped.values(), key=lambda group: -sum(one.bytes for one in group.kept))
        worth = [
            g for g in several if len(g.kept) * share >= _LEAST_COUNT or sum(k.bytes for k in g.kept) >= _LEAST_BYTES
        ]
        return tuple(self._evidence(group, share, keepers) for group in worth[:_MOST_TOLD])

    def _raised(self, state: ThreadState) -> List[Any]:
        try:
            return exceptions(self._python.frames, state.address)
        except (Fault, NotThat):
            return []

    def _found(self) -> Tuple[List[int], int]:
        told = self._told.get("addresses")
        if isinstance(told, list):
            return [at for at in told if isinstance(at, int)], integer(self._told.get("tracebacks")) or len(told)
        found = find(self._python, self._core, self._core.written, TimeLimit(_SECONDS))
        return found.exceptions, found.tracebacks

    def _evidence(self, group: _Group, share: float, keepers: _Keepers) -> KeptException:
        names = keepers.names([kept.address for kept in group.kept])
        largest = max(group.kept, key=lambda kept: kept.bytes)
        (frame, line), (caught, caught_line) = group.place, group.caught
        files = [made.code.filename for kept in group.kept[:5] for made, _line in kept.frames]
        files += [state_frame.code.filename for state in self._threads.values() for state_frame in state.frames[:60]]
        stored = list(self._usages.handlers(caught.code.filename, caught_line))
        for name in names:
            stored += self._usages.of(last_name(name), dict.fromkeys(files)).filled
        return KeptException(
            type=largest.type,
            count=round(len(group.kept) * share),
            frames=round(sum(len(kept.frames) for kept in group.kept) * share),
            place=self._shown(frame).at(line),
            caught=self._shown(caught).at(caught_line),
            bytes=round(sum(kept.bytes for kept in group.kept) * share),
            variable=largest.variable,
            keepers=names,
            cyclic=round(sum(kept.cyclic for kept in group.kept) * share),
            stored_at=tuple(dict.fromkeys(stored)),
        )


def _caught(kept: Kept) -> Tuple[Frame, int]:
    """Return the outermost frame of the program's own code."""
    own = (one for one in kept.frames if is_program(one[0].code.filename))
    return next(own, kept.frames[0])


class _Keepers(VariableSearch):
    """A search for variables that lead to exceptions, directly or through containers."""

    steps = 6  # for example a list of records with Futures with exceptions

    def __init__(self, python: Python, reader: Reader, wanted: Set[int]) -> None:
        super().__init__(python, TimeLimit(_SEARCH_S))
        self._reader = reader
        self._wanted = wanted
        self._keeping: Dict[str, Set[int]] = {}

    def found_at(self, name: str, value: int, kind: str, user: User) -> Optional[Named]:
        """Note exceptions found at a value or inside it; stop below those found directly."""
        if value in self._wanted:
            self._keeping.setdefault(self._container(value) or name, set()).add(value)
            return ()
        if kind in CONTAINERS or kind == "collections.deque":
            inside = set(self._reader.inside(value))
            nested = {part for item in list(inside)[:50] for part in self._parts(item)}
            held = (inside | nested) & self._wanted
            if held:
                self._keeping.setdefault(name, set()).update(held)
        return None

    def _container(self, value: int) -> Optional[str]:
        """Return the innermost list, dict, set or deque on the way to an object; None if there is none."""
        for address, name in self.way_to(value)[1:]:
            kind = self.objects.type_name(address)
            if (kind in CONTAINERS and kind != "tuple") or kind == "collections.deque":
                return name
        return None

    def _parts(self, item: int) -> Iterable[int]:
        """Return the objects inside an item: a tuple, a Future, a record."""
        try:
            return self._reader.inside(item)
        except (Fault, NotThat):
            return ()

    def names(self, addresses: Iterable[int]) -> Tuple[str, ...]:
        """Return names of the variables that lead to these exceptions, those leading to most first."""
        wanted = set(addresses)
        counts = sorted(
            ((len(held & wanted), name) for name, held in self._keeping.items()), key=lambda one: (-one[0], one[1])
        )
        return tuple(name for count, name in counts if count)[:_MOST_KEEPERS]
