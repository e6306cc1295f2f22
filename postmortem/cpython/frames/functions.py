"""Callables: the code that they run, and the objects bound to them, as self, arguments or closure.

Sources:
- Include/cpython/classobject.h, methodobject.h: PyMethodObject (im_func, im_self) and PyCFunctionObject (m_ml, m_self)
  have both at the same offsets.
- Modules/_functoolsmodule.c: partialobject begins with fn, args, kw.
- Include/cpython/funcobject.h, Include/funcobject.h: PyFunctionObject.func_closure follows func_code by three words
  since 3.10, by four before.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ...memory import Fault
from ..objects.attributes import class_value
from ..objects.builtins import NotThat
from ..objects.code import Code
from .frame import Frames

_FUNC, _SELF = 16, 24
#: Types with the object at _SELF; builtin_method (PyCMethodObject) since 3.9, for ``Future.set_result`` since 3.12.
_WITH_SELF = ("method", "builtin_function_or_method", "builtin_method")
_FN, _ARGS = 16, 24
_DEFINITION, _MAX_NAME = 16, 100
_CELL = 16
#: Most nested methods and partials; most arguments of one call.
_MAX_LAYERS, _MAX_ARGUMENTS = 5, 50


class Functions:
    """Callables of one interpreter; methods never raise: what cannot be read is None, or left out."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects = frames.objects

    def function(self, called: Optional[int]) -> Optional[int]:
        """Return the Python function behind a callable: a method, a partial, an object with ``__call__``; None for C."""
        for _ in range(_MAX_LAYERS):
            kind = self._objects.type_name(called) if called else None
            if called is None or kind is None or kind == "function":
                return called if kind == "function" else None
            try:
                if kind in ("method", "functools.partial"):
                    called = self._objects.field(called, _FUNC)  # partial.fn is at the same offset
                else:
                    called = class_value(self._objects, called, "__call__")
            except (Fault, NotThat):
                return None
        return None

    def code(self, called: Optional[int]) -> Optional[Code]:
        """Return the code object of a callable; None for a C function."""
        function = self.function(called)
        try:
            if function is None:
                return None
            return self._frames.codes.get(self._objects.memory.u64(function + self._objects.layout.func_code))
        except (Fault, NotThat):
            return None

    def globals(self, function: int) -> int:
        """Return the address of a Python function's globals; 0 if unreadable.

        PyFunctionObject.func_globals is the first field since 3.10; before, it follows func_code (Include/funcobject.h).
        """
        layout = self._objects.layout
        first = layout.func_code - layout.ob_extra >= 48
        try:
            return int(self._objects.field(function, 16 if first else 24) or 0) if function else 0
        except Fault:
            return 0

    def closure(self, called: Optional[int]) -> Dict[str, int]:
        """Return name → value of a function's free variables, the last of its code's names."""
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
        """Return the object that a Python or C method is bound to; None if it is not a method."""
        if self._objects.type_name(called) not in _WITH_SELF:
            return None
        try:
            return self._objects.field(called, _SELF) or None
        except Fault:
            return None

    def c_name(self, called: int) -> str:
        """Return the name of a function or method in C, the first word of its PyMethodDef; empty if unreadable."""
        try:
            name = self._objects.memory.u64(self._objects.field(called, _DEFINITION))
            return self._objects.memory.cstring(name, _MAX_NAME).decode("ascii", "replace")
        except Fault:
            return ""

    def carried(self, called: int) -> List[int]:
        """Return the objects that a call can reach besides its arguments: self, a partial's arguments, the closure."""
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
        """Return (function, arguments) of a partial; (0, ()) if unreadable."""
        try:
            arguments = self._objects.items(self._objects.field(called, _ARGS), _MAX_ARGUMENTS)
            return self._objects.field(called, _FN), arguments
        except (Fault, NotThat):
            return 0, ()
