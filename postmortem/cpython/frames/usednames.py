"""The names that a thread's code uses: of the program's functions on its stack, and of those that they call.

A name need not be a call, nor be about the object that one looks for: a thread whose code does not use the name of an
operation will not do it.
"""

from __future__ import annotations

from collections import deque
from typing import Deque, Iterator, List, Optional, Sequence, Set, Tuple

from ...memory import Fault
from ...sourcepaths import is_program
from ..objects.attributes import attribute, attributes, class_value
from ..objects.builtins import NotThat
from ..objects.code import Code
from .frame import Frame, Frames
from .functions import Functions

#: Most frames of a stack, and most functions and values, that are searched; most calls from a frame on.
_MOST_FRAMES, _MOST_CODES, _MOST_VALUES, _DEPTH = 12, 80, 120, 4
#: Most steps from a variable of the standard library's to the function that it will call.
_STEPS = 3
_IN_C = ("builtin_function_or_method", "builtin_method")
_CONTAINERS = frozenset(("list", "tuple", "collections.deque"))
#: (code, its globals, objects whose methods it may call, calls that may still be followed)
_Place = Tuple[Code, int, Tuple[int, ...], int]


class UsedNames:
    """The names that code of one interpreter uses; nothing raises: what cannot be read is left out."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self._objects = frames, frames.objects
        self._functions = Functions(frames)

    def of(self, frames: Sequence[Frame]) -> Set[str]:
        """Return the names that a thread's code uses.

        ``frames``: its stack, most recent call first
        """
        names: Set[str] = set()
        seen: Set[int] = set()
        places: Deque[_Place] = deque(self._begun(frames[:_MOST_FRAMES], names))
        while places and len(seen) < _MOST_CODES:
            code, namespace, objects, depth = places.popleft()
            if code.address in seen:
                continue
            seen.add(code.address)
            used = code.used_names()
            names.update(used)
            places.extend((inner, namespace, objects, depth) for inner in self._inside(code))
            if depth > 1:
                places.extend(self._called(used, namespace, objects, depth - 1))
        return names

    def _begun(self, frames: Sequence[Frame], names: Set[str]) -> Iterator[_Place]:
        """Yield the program's functions on a stack, and those that the library's functions on it are to call.

        The names of methods in C that a library's function is to call are added to ``names``.
        """
        for frame in frames:
            values = tuple(value for _name, value in self._frames.locals(frame))[:_MOST_VALUES]
            if is_program(frame.code.filename):
                yield frame.code, self._frames.globals(frame) or 0, self._with_attributes(values), _DEPTH
            else:
                names.update(filter(None, map(self._in_c, values)))
                for called in self._callables(values):
                    yield from self._place(called, _DEPTH)

    def _called(self, names: Sequence[str], namespace: int, objects: Sequence[int], depth: int) -> Iterator[_Place]:
        """Yield the functions that names may mean: globals, and methods of the objects."""
        try:
            known = self._objects.text_dict(namespace) if namespace else {}
        except (Fault, NotThat):
            known = {}
        for name in names:
            values = [known.get(name), *(class_value(self._objects, one, name) for one in objects)]
            for value in values:
                if value is not None:
                    yield from self._place(value, depth, tuple(objects))

    def _place(self, called: int, depth: int, objects: Tuple[int, ...] = ()) -> Iterator[_Place]:
        """Yield the function of the program behind a callable, with what it is bound to."""
        code = self._functions.code(called)
        if code is None or not is_program(code.filename):
            return
        function = self._functions.function(called)
        bound = self._functions.bound(called)
        owners = self._with_attributes((bound,)) if bound is not None else objects
        yield code, self._functions.globals(function or 0), owners, depth

    def _inside(self, code: Code) -> Iterator[Code]:
        """Yield the lambdas, comprehensions and inner functions that are written inside a function: constants of its code.

        Source: Include/cpython/code.h of 3.8-3.15: co_consts precedes co_names.
        """
        objects = self._objects
        try:
            constants = objects.items(objects.memory.u64(code.address + objects.layout.co_names - 8), _MOST_VALUES)
            for constant in constants:
                if objects.type_name(constant) == "code":
                    yield self._frames.codes.get(constant)
        except (Fault, NotThat):
            return

    def _in_c(self, value: int) -> Optional[str]:
        """Return the name of a method in C that is bound to an object, or that an object has as an attribute to be called."""
        if self._objects.type_name(value) in _IN_C:
            return self._functions.c_name(value)
        function = attribute(self._objects, value, "function")  # of a Timer
        bound = function is not None and self._objects.type_name(function) in _IN_C
        return self._functions.c_name(function) if bound and function is not None else None

    def _with_attributes(self, values: Sequence[int]) -> Tuple[int, ...]:
        """Return values and, behind them, those of their attributes."""
        found = list(values)
        for value in values:
            try:
                found += attributes(self._objects, value).values()
            except (Fault, NotThat):
                continue
        return tuple(dict.fromkeys(found))[:_MOST_VALUES]

    def _callables(self, values: Sequence[int]) -> List[int]:
        """Return the functions among some values, their attributes and items, a few steps away."""
        found: List[int] = []
        wave, seen = list(values), set(values)
        for _ in range(_STEPS):
            found += [value for value in wave if self._functions.code(value) is not None]
            wave = [each for value in wave for each in self._held(value) if each not in seen][:_MOST_VALUES]
            seen.update(wave)
        return found

    def _held(self, value: int) -> List[int]:
        """Return the items of a container, or the attributes of an object; empty if unreadable."""
        try:
            kind = self._objects.type_name(value)
            if kind == "collections.deque":
                return list(self._objects.deque_items(value, _MOST_VALUES))
            if kind in _CONTAINERS:
                return list(self._objects.items(value, _MOST_VALUES))
            items = list(self._objects.items(value, _MOST_VALUES)) if self._is_record(value) else []
            return [*items, *attributes(self._objects, value).values()]
        except (Fault, NotThat):
            return []

    def _is_record(self, value: int) -> bool:
        """Return whether an object is a named tuple."""
        return class_value(self._objects, value, "_fields") is not None
