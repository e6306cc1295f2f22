"""Callables: the code that they run, and what they bring along: what they are bound to, arguments, closures.

PyMethodObject (im_func, im_self) and PyCFunctionObject (m_ml, m_self) have both at the same places
(Include/cpython/classobject.h, methodobject.h); partialobject begins with fn, args, kw (Modules/_functoolsmodule.c).
PyFunctionObject.func_closure lies three words behind func_code since 3.10, which put it behind the globals, and four
before (Include/cpython/funcobject.h, Include/funcobject.h).
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from ..objects.code import Code
from .frame import Frames

_FUNC, _SELF = 16, 24
_FN, _ARGS = 16, 24
_CELL = 16
#: How often methods and partials are looked through, and arguments that are believed.
_MAX_LAYERS, _MAX_ARGUMENTS = 5, 50


class Functions:
    """Callables of one interpreter. Nothing here raises: what cannot be read is None, or left out."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects = frames.objects

    def function(self, called: Optional[int]) -> Optional[int]:
        """The Python function behind a callable: itself, of a method, of a partial; None for what is written in C."""
        for _ in range(_MAX_LAYERS):
            kind = self._objects.type_name(called) if called else None
            if called is None or kind is None or kind == "function":
                return called if kind == "function" else None
            if kind not in ("method", "functools.partial"):
                return None
            try:
                called = self._objects.field(called, _FUNC)  # partial.fn is at the same place
            except Fault:
                return None
        return None

    def code(self, called: Optional[int]) -> Optional[Code]:
        function = self.function(called)
        try:
            if function is None:
                return None
            return self._frames.codes.get(self._objects.memory.u64(function + self._objects.layout.func_code))
        except (Fault, NotThat):
            return None

    def closure(self, called: Optional[int]) -> Dict[str, int]:
        """Name → value of the free variables of a function. They are the last ones of its code's names."""
        function, objects = self.function(called), self._objects
        code = self.code(function)
        if function is None or code is None:
            return {}
        behind = 24 if objects.layout.func_code - objects.layout.ob_extra >= 48 else 32
        try:
            cells = objects.memory.u64(function + objects.layout.func_code + behind)
            items = objects.items(cells, _MAX_ARGUMENTS) if cells else ()
            values = [objects.field(cell, _CELL) for cell in items]
        except (Fault, NotThat):
            return {}
        names = code.local_names()[-len(values) :] if values else ()
        return {name: value for name, value in zip(names, values) if value}

    def bound(self, called: int) -> Optional[int]:
        """What a method, written in Python or in C, is bound to."""
        if self._objects.type_name(called) not in ("method", "builtin_function_or_method"):
            return None
        try:
            return self._objects.field(called, _SELF) or None
        except Fault:
            return None

    def carried(self, called: int) -> List[int]:
        """What a call has at hand beside its arguments: the object that it is bound to, what a partial was given, what
        the function closes over."""
        found: List[int] = []
        for _ in range(_MAX_LAYERS):
            owner = self.bound(called)
            if owner is not None:
                found.append(owner)
            if self._objects.type_name(called) != "functools.partial":
                break
            called, arguments = self._partial(called)
            found += arguments
        return [*found, *self.closure(called).values()]

    def _partial(self, called: int) -> Tuple[int, Tuple[int, ...]]:
        try:
            arguments = self._objects.items(self._objects.field(called, _ARGS), _MAX_ARGUMENTS)
            return self._objects.field(called, _FN), arguments
        except (Fault, NotThat):
            return 0, ()
