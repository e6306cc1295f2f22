"""Does the program's own code cancel tasks?

A task that nobody can wake may still be cancelled by whoever gets hold of it: through ``asyncio.all_tasks()``, which keeps
weak references, so that no search for referrers finds them. Code that does so names it (co_names): looked through are the
functions of the program's modules, from those on the stacks over what they import, library code left out.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Set, Tuple

from ...cpython.frames.frame import Frame, Frames
from ...cpython.frames.origins import is_program
from ...cpython.objects.builtins import NotThat
from ...cpython.objects.code import Code, until_damaged
from ...cpython.runtime import layouts as L
from ...cpython.state.interpreter import Python
from ...memory import Fault

#: What ends the waits of other tasks.
_NAMES = frozenset(("cancel", "all_tasks", "TaskGroup", "create_task_group", "CancelScope", "cancel_scope"))
_MOST_MODULES, _MOST_CODES, _MOST_VALUES, _DEPTH = 200, 10_000, 5_000, 4
#: co_consts stands before co_names in PyCodeObject (Include/cpython/code.h of 3.8-3.15).
_CONSTS = -8


def cancels(python: Python, frames: Iterable[Frame]) -> Optional[Tuple[str, ...]]:
    """The names by which it does, () when it does not. None when there is more code than is looked through, or it cannot be
    read."""
    search = _Search(python.frames)
    try:
        for namespace in dict.fromkeys(search.namespace(f) for f in frames if is_program(f.code.filename)):
            if namespace:
                search.module(namespace)
    except (Fault, NotThat):
        return None
    return None if search.cut else tuple(sorted(search.found))


class _Search:
    def __init__(self, frames: Frames) -> None:
        self._frames, self._objects = frames, frames.objects
        self._modules: Set[int] = set()
        self._codes: Set[int] = set()
        self.cut = False
        self.found: Set[str] = set()

    def namespace(self, frame: Frame) -> int:
        return self._frames.globals(frame) or 0

    def module(self, namespace: int) -> None:
        """A module, and those of the program that it imports."""
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
        """Looks through a function or class; of a module of the program its namespace."""
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
        objects = self._objects
        namespace = objects.memory.u64(type_ + objects.layout.tp_dict)
        for value in list(objects.text_dict(namespace).values())[:_MOST_VALUES] if namespace else ():
            wrapped = objects.type_name(value) in ("staticmethod", "classmethod", "property")
            function = objects.field(value, 16) if wrapped else value
            if objects.type_name(function) == "function":
                yield objects.memory.u64(function + objects.layout.func_code)

    def _code(self, address: int, depth: int) -> None:
        """Of a function, and of those inside it."""
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
