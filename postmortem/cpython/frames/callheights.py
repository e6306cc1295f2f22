"""Lower bound of a calling frame's stack height, where the frame does not record it (up to 3.13).

During a call the callable and its arguments lie on top of the value stack. The lowest slot that holds the callee,
together with the instruction's number of arguments, gives a height that the stack has at least.

Sources of opcodes (instructions may be specialised):
- 3.8-3.10: Include/opcode.h.
- 3.11, 3.12: Include/opcode.h and internal/pycore_opcode.h.
- 3.13: internal/pycore_opcode_ids.h.
- Stack effects: Python/ceval.c and bytecodes.c.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from .frame import Frame, Frames

#: PyMethodObject.im_func
_FUNC = 16
_BUILTIN = ("builtin_function_or_method", "builtin_method", "method_descriptor", "classmethod_descriptor")
#: End of the type name of Cython's functions, PyCFunctionObject and more (Cython/Utility/CythonFunction.c of 0.29-3.3).
COMPILED = "cython_function_or_method"


class _Calls(NamedTuple):
    """Call instructions of one release.

    Fields:
    - ``plain``: opcodes whose operand is the number of arguments.
    - ``named``: the same with a tuple of keyword names on top.
    - ``unpacking``: the opcode that takes a tuple and perhaps a dict.
    - ``slots``: slots of the callable for ``unpacking``.
    - ``one_slot``: opcodes of ``plain`` and ``named`` whose callable takes one slot instead of two.
    """

    plain: FrozenSet[int]
    named: FrozenSet[int]
    unpacking: int
    slots: int
    one_slot: FrozenSet[int] = frozenset()


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
    """Return the number of slots, locals included, that a frame has in use at least; None if unknown.

    ``inner``: frame that it has called on the same thread; None if it is calling a C function.
    """
    calls = _CALLS.get(frames.objects.layout.version)
    instruction = _instruction(frames, frame) if calls is not None else b""
    size = _size(calls, instruction[0], instruction[1]) if calls is not None and len(instruction) == 2 else None
    if size is None:
        return None
    values = frames.value_stack(frame)
    for slot in range(frames.kept_depth(frame), len(values) - size + 1):
        # up to 3.12 NULL lies below a callable that is not a method
        called = values[slot] or next(iter(values[slot + 1 : slot + 2]), 0)
        if called and _is_called(frames, called, inner):
            return frame.code.nlocalsplus + slot + size
    return None


def calls_in_one_slot(frames: Frames, frame: Frame) -> bool:
    """Return whether a frame is in a call whose callable takes one slot: a bound method, if it is one, is an object."""
    calls, instruction = _CALLS.get(frames.objects.layout.version), _instruction(frames, frame)
    return calls is not None and bool(instruction) and instruction[0] in calls.one_slot


def _instruction(frames: Frames, frame: Frame) -> bytes:
    """Return the current opcode and operand, two bytes; empty if unknown."""
    if frames.objects.layout.heap_frames:
        return frame.code.bytecode()[frame.lasti : frame.lasti + 2] if frame.lasti >= 0 else b""
    try:
        return frames.objects.memory.read(frame.code.start + frame.lasti, 2)
    except Fault:
        return b""


def _size(calls: _Calls, instruction: int, operand: int) -> Optional[int]:
    """Return the number of slots that a call takes on the stack; None for other instructions."""
    if instruction == calls.unpacking:
        return calls.slots + 1 + (operand & 1)
    slots = 1 if instruction in calls.one_slot else 2
    if instruction in calls.plain:
        return slots + operand
    return slots + operand + 1 if instruction in calls.named else None


def _is_called(frames: Frames, value: int, inner: Optional[Frame]) -> bool:
    """Return whether a value is the running callee: a function with the inner frame's code, or a function in C."""
    objects = frames.objects
    name = objects.type_name(value)
    try:
        if name == "method":
            value = objects.field(value, _FUNC)
            name = objects.type_name(value)
        if inner is None:
            return name is not None and (name in _BUILTIN or name.endswith(COMPILED))
        return name == "function" and objects.memory.u64(value + objects.layout.func_code) == inner.code.address
    except (Fault, NotThat):
        return False
