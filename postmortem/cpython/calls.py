"""Functions that are called: their names, and the arguments of C functions that a frame is calling right now, which lie
on its value stack.

Around a call the stack holds the callable, and its arguments behind it with at most one slot for *self* or NULL
between them (Python/bytecodes.c of 3.11-3.15, CALL). Slots further up may be stale, so this is only asked when
something else (a system call) says that the call is going on.
"""

from __future__ import annotations

import itertools
from typing import Optional

from ..memory import Fault
from .frames import Frame, Frames
from .objects import NotThat, Objects


def first_number(frames: Frames, frame: Frame, builtin: str) -> Optional[float]:
    """The first argument of a builtin such as ``sleep``, when it is a number."""
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
    """Was it called as ``handler(number, frame)``? Only the interpreter passes a frame object to a function that it
    enters from C (Modules/signalmodule.c, _PyErr_CheckSignalsTstate); bound methods have ``self`` before the pair."""
    kinds = [frames.objects.type_name(value) for _name, value in itertools.islice(frames.locals(frame), 3)]
    return ("int", "frame") in zip(kinds, kinds[1:])


#: PyCFunctionObject.m_ml, whose first word is the name; im_func of methods; fn of functools.partial; all at one place.
_INNER = 16
#: A partial of a method of a …
_MOST_WRAPPED = 5


def callable_name(objects: Objects, address: int) -> Optional[str]:
    """What people call something that can be called: ``Sizer.measure``; None when it cannot be told."""
    try:
        for _ in range(_MOST_WRAPPED):
            info = objects.type_of(address)
            if info.name == "function":
                return objects.optional_text(objects.memory.u64(address + objects.layout.func_qualname))
            if info.name == "builtin_function_or_method":
                return objects.memory.cstring(objects.memory.u64(objects.field(address, _INNER)), 64).decode(
                    "utf-8", "backslashreplace"
                )
            if info.name not in ("method", "functools.partial"):
                return info.name
            address = objects.field(address, _INNER)
    except (Fault, NotThat):
        pass
    return None
