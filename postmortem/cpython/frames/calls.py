"""Names of callables, and arguments of the C function that a frame is calling, from its value stack.

Around a call the stack holds the callable and behind it the arguments, with at most one slot for *self* or NULL between
them (Python/bytecodes.c of 3.11-3.15, CALL). Slots further up may be stale: use this only if other evidence, such as a
system call, shows that the call is in progress.
"""

from __future__ import annotations

import itertools
from typing import List, Optional, Sequence

from ...memory import Fault
from ..objects.builtins import NotThat, Objects
from .frame import Frame, Frames


def first_number(frames: Frames, frame: Frame, builtin: str) -> Optional[float]:
    """Return the first argument of a builtin such as ``sleep``; None if it is not a number."""
    objects = frames.objects
    slots = frames.value_stack(frame)
    for index, value in enumerate(slots):
        if not value or objects.type_name(value) != "builtin_function_or_method":
            continue
        try:
            name = objects.memory.cstring(objects.memory.u64(objects.field(value, 16)), 64)  # m_ml->ml_name
        except Fault:
            continue
        if name != builtin.encode():
            continue
        for candidate in slots[index + 1 : index + 3]:
            if candidate and objects.type_name(candidate) in ("float", "int"):
                try:
                    return objects.number(candidate)
                except (Fault, NotThat):
                    return None
    return None


def is_signal_handler(frames: Frames, frame: Frame) -> bool:
    """Return whether a frame was called as ``handler(number, frame)``.

    Only the interpreter passes a frame object to a function that it enters from C (Modules/signalmodule.c,
    _PyErr_CheckSignalsTstate). Bound methods have ``self`` before the pair; ``*arguments`` holds the pair, or the frame
    alone, in a tuple.
    """
    values: List[int] = []
    for _name, value in itertools.islice(frames.locals(frame), 3):
        values += _unpacked(frames.objects, value)
    kinds = [frames.objects.type_name(value) for value in values]
    return ("int", "frame") in zip(kinds, kinds[1:])


def _unpacked(objects: Objects, value: int) -> Sequence[int]:
    """Return the first two items of a tuple; any other value as it is."""
    try:
        return objects.items(value, 2) if objects.type_name(value) == "tuple" else (value,)
    except (Fault, NotThat):
        return (value,)


#: PyCFunctionObject.m_ml (its first word is the name) and m_self; im_func of methods; fn and args of functools.partial
#: (Include/cpython/methodobject.h, classobject.h, Modules/_functoolsmodule.c of 3.8-3.15).
_INNER, _BOUND = 16, 24
#: Most nested partials and methods.
_MOST_WRAPPED = 5


def callable_name(objects: Objects, address: int) -> Optional[str]:
    """Return the qualified name of a callable, such as ``Sizer.measure``; None if unknown.

    For ``partial(context.run, function, …)``, as asyncio.to_thread makes it, that of the function.
    """
    try:
        for _ in range(_MOST_WRAPPED):
            info = objects.type_of(address)
            if info.name == "function":
                return objects.optional_text(objects.memory.u64(address + objects.layout.func_qualname))
            if info.name == "builtin_function_or_method":
                return _builtin_name(objects, address)
            if info.name not in ("method", "functools.partial"):
                return objects.type_at(address).name if info.name == "type" else info.name
            inner = objects.field(address, _INNER)
            if info.name == "functools.partial" and _runs_in_context(objects, inner):
                inner = objects.items(objects.field(address, _BOUND))[0]
            address = inner
    except (Fault, NotThat, IndexError):
        pass
    return None


def _builtin_name(objects: Objects, address: int) -> str:
    """Return the name of a C function. Raises Fault or NotThat."""
    name = objects.memory.cstring(objects.memory.u64(objects.field(address, _INNER)), 64)
    return name.decode("utf-8", "backslashreplace")


def _runs_in_context(objects: Objects, called: int) -> bool:
    """Return whether a callable is the method ``run`` of a contextvars.Context."""
    if objects.type_name(called) != "builtin_function_or_method" or _builtin_name(objects, called) != "run":
        return False
    bound = objects.type_name(objects.field(called, _BOUND))
    return bound is not None and bound.rpartition(".")[2] == "Context"
