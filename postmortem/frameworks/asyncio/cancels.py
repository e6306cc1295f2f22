"""Search of the program's code for names that cancel tasks.

A task without a waker may still be cancelled through ``asyncio.all_tasks()``, whose weak references no search for
referrers finds. Code that does so has the name in co_names. Searched are the functions of the program's modules, from
those on the stacks through their imports; library code is left out.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Set, Tuple

from ...cpython.frames.frame import Frame, Frames
from ...cpython.objects.builtins import NotThat
from ...cpython.objects.code import Code, until_damaged
from ...cpython.runtime import layouts as L
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ...sourcepaths import is_program

#: Names whose use may end the waits of other tasks.
_NAMES = frozenset(("cancel", "all_tasks", "TaskGroup", "create_task_group", "CancelScope", "cancel_scope"))
_MOST_MODULES, _MOST_CODES, _MOST_VALUES, _DEPTH = 200, 10_000, 5_000, 4
#: co_consts relative to co_names in PyCodeObject, in bytes (Include/cpython/code.h of 3.8-3.15).
_CONSTS = -8


def cancels(python: Python, frames: Iterable[Frame]) -> Optional[Tuple[str, ...]]:
    """Return the cancelling names that the program's code uses, sorted.

    None if the code exceeds the limits of the search or cannot be read.
    """
    search = _Search(python.frames)
    try:
        for namespace in dict.fromkeys(search.namespace(f) for f in frames if is_program(f.code.filename)):
            if namespace:
                search.module(namespace)
    except (Fault, NotThat):
        return None
    return None if search.cut else tuple(sorted(search.found))


class _Search:
    """A bounded search through modules and their code; ``cut`` is True if a limit was reached."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self._objects = frames, frames.objects
        self._modules: Set[int] = set()
        self._codes: Set[int] = set()
        self.cut = False
        self.found: Set[str] = set()

    def namespace(self, frame: Frame) -> int:
        """Return the address of a frame's globals; 0 if unknown."""
        return self._frames.globals(frame) or 0

    def module(self, namespace: int) -> None:
        """Search a module and those that it imports of the program. Raises Fault or NotThat."""
        waiting = [namespace]
        while waiting:
            current = waiting.pop()
            if current in self._modules:
                continue
            if len(self._modules) >= _MOST_MODULES:
                self.cut = True
                return
            self._modules.add(current)
            for value in list(self._objects.text_dict(current).values())[:_MOST_VALUES]:
                waiting.extend(self._value(value))

    def _value(self, value: int) -> Iterator[int]:
        """Search a function or class; for a module of the program, yield its namespace."""
        objects = self._objects
        try:
            info = objects.type_of(value)
        except (Fault, NotThat):
            return
        if info.name == "module":
            namespace = objects.field(value, L.MODULE_DICT)
            file = objects.optional_text(objects.lookup(namespace, "__file__") or 0)
            if file is not None and is_program(file):
                yield namespace
        elif info.flags & L.FLAG_TYPE:
            for code in self._methods(value):
                self._code(code, 0)
        elif info.name == "function":
            self._code(objects.memory.u64(value + objects.layout.func_code), 0)

    def _methods(self, type_: int) -> Iterator[int]:
        """Yield the code objects of a class's methods."""
        objects = self._objects
        namespace = objects.memory.u64(type_ + objects.layout.tp_dict)
        for value in list(objects.text_dict(namespace).values())[:_MOST_VALUES] if namespace else ():
            wrapped = objects.type_name(value) in ("staticmethod", "classmethod", "property")
            function = objects.field(value, 16) if wrapped else value
            if objects.type_name(function) == "function":
                yield objects.memory.u64(function + objects.layout.func_code)

    def _code(self, address: int, depth: int) -> None:
        """Search a code object and those nested in it."""
        if address in self._codes or depth > _DEPTH:
            return
        if len(self._codes) >= _MOST_CODES:
            self.cut = True
            return
        self._codes.add(address)
        code: Code = self._frames.codes.get(address)
        if not is_program(code.filename):
            return
        self.found.update(_NAMES.intersection(code.used_names()))
        consts = self._objects.items(self._objects.memory.u64(address + self._objects.layout.co_names + _CONSTS))
        kinds = until_damaged(map(self._objects.type_name, consts))
        for const, kind in zip(consts, kinds):
            if kind == "code":
                self._code(const, depth + 1)
