"""How much of its value stack a frame surely uses while it calls something, where it keeps no record of that (up to 3.13).

During a call the callable and its arguments lie on top of the stack. The lowest place where what is being called lies
with so many arguments as the instruction says tells a height that the stack has at least; it may be more.

Source: Include/opcode.h of 3.8-3.10, Include/opcode.h and internal/pycore_opcode.h of 3.11 and 3.12,
internal/pycore_opcode_ids.h of 3.13 (the instruction may have been specialised); Python/ceval.c and bytecodes.c.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from .frame import Frame, Frames

#: im_func of PyMethodObject
_FUNC = 16
_BUILTIN = ("builtin_function_or_method", "builtin_method", "method_descriptor", "classmethod_descriptor")


class _Calls(NamedTuple):
    """Instructions of one release: those that call with as many arguments as their operand says, those that have a tuple
    of names besides, the one that takes a tuple and perhaps a dict; and the slots that the callable takes."""

    plain: FrozenSet[int]
    named: FrozenSet[int]
    unpacking: int
    slots: int
    one_slot: FrozenSet[int] = frozenset()  # of `plain` and `named`, where the callable has one


_OLD = _Calls(frozenset({131, 161}), frozenset({141}), 142, 1, frozenset({131, 141}))
_CALLS: Dict[Tuple[int, int], _Calls] = {
    (3, 8): _OLD,
    (3, 9): _OLD,
    (3, 10): _OLD,
    (3, 11): _Calls(frozenset({22, 23, 24, 64, 65, 66, 67, 72, 73, *range(76, 82), 113, 121, 127, 141, 143, 166, 171}),
                    frozenset(), 142, 2),
    (3, 12): _Calls(frozenset({23, 24, 28, 29, 34, *range(38, 49), 56, 171}), frozenset(), 142, 2),
    (3, 13): _Calls(frozenset({53, *range(162, 182)}), frozenset({57}), 54, 2),
}  # fmt: skip


def least_height(frames: Frames, frame: Frame, inner: Optional[Frame]) -> Optional[int]:
    """Slots of a frame, locals among them, that are in use at least; ``inner``: the frame of the same thread that it
    has called, None when it is in a C function. None when nothing tells."""
    calls = _CALLS.get(frames.objects.layout.version)
    instruction = _instruction(frames, frame) if calls is not None else b""
    size = _size(calls, instruction[0], instruction[1]) if calls is not None and len(instruction) == 2 else None
    if size is None:
        return None
    values = frames.value_stack(frame)
    for slot in range(frames.kept_depth(frame), len(values) - size + 1):
        # up to 3.12 what is no method has NULL below it
        called = values[slot] or next(iter(values[slot + 1 : slot + 2]), 0)
        if called and _is_called(frames, called, inner):
            return frame.code.nlocalsplus + slot + size
    return None


def _instruction(frames: Frames, frame: Frame) -> bytes:
    """The current one and its operand."""
    if frames.objects.layout.heap_frames:
        return frame.code.bytecode()[frame.lasti : frame.lasti + 2] if frame.lasti >= 0 else b""
    try:
        return frames.objects.memory.read(frame.code.start + frame.lasti, 2)
    except Fault:
        return b""


def _size(calls: _Calls, instruction: int, operand: int) -> Optional[int]:
    """Slots that a call takes on the stack."""
    if instruction == calls.unpacking:
        return calls.slots + 1 + (operand & 1)
    slots = 1 if instruction in calls.one_slot else 2
    if instruction in calls.plain:
        return slots + operand
    return slots + operand + 1 if instruction in calls.named else None


def _is_called(frames: Frames, value: int, inner: Optional[Frame]) -> bool:
    """Is it what runs now: a function with the code of the inner frame, or, without one, a function in C?"""
    objects = frames.objects
    name = objects.type_name(value)
    try:
        if name == "method":
            value = objects.field(value, _FUNC)
            name = objects.type_name(value)
        if inner is None:
            return name in _BUILTIN
        return name == "function" and objects.memory.u64(value + objects.layout.func_code) == inner.code.address
    except (Fault, NotThat):
        return False
