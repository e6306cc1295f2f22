"""Lower bound of a calling frame's stack height, where the frame does not record it (up to 3.13).

During a call the callable and its arguments lie on top of the value stack. The lowest slot that holds the callee,
together with the instruction's number of arguments, gives a height that the stack has at least.

Sources of opcodes (instructions may be specialised):
- 3.8-3.10: Include/opcode.h.
- 3.11, 3.12: Include/opcode.h and internal/pycore_opcode.h.
- 3.13, 3.14: internal/pycore_opcode_ids.h.
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

#: Call instructions whose operands include a tuple of keyword names, in releases that copy the arguments for such a call.
_KEYWORDS: Dict[Tuple[int, int], FrozenSet[int]] = {
    (3, 8): frozenset({141}), (3, 9): frozenset({141}), (3, 10): frozenset({141}),
    (3, 13): frozenset({57}), (3, 14): frozenset({55, 151, 152, 153}),
}  # fmt: skip
_WITH_CLEANUP_START = 81
_FOR_ITER, _FOR_ITER_CODE = ((3, 11), (3, 12)), bytes([93])
#: In 3.11 and 3.12 an instruction before the call has the names: KW_NAMES. In 3.11 PRECALL and its cache are in between if the
#: call is one of these; the others are PRECALL itself.
_KW_NAMES, _AFTER_PRECALL = 172, frozenset({22, 23, 24, 171})


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


def may_call_method(frames: Frames, frame: Frame) -> bool:
    """Return whether a frame is in a call that may have been given a bound method as one object, not as its two parts.

    Up to 3.10 these are calls whose callable takes one slot; from 3.11 to 3.13 any call may be, as that of ``__exit__`` is.
    """
    calls, instruction = _CALLS.get(frames.objects.layout.version), _instruction(frames, frame)
    return calls is not None and bool(instruction) and instruction[0] in (calls.one_slot or calls.plain)


def leaves_with(frames: Frames, frame: Frame) -> bool:
    """Return whether a frame is in WITH_CLEANUP_START of 3.8, which takes ``__exit__`` off the value stack to call it."""
    return frames.objects.layout.version == (3, 8) and _instruction(frames, frame)[:1] == bytes((_WITH_CLEANUP_START,))


def copies_arguments(frames: Frames, frame: Frame) -> bool:
    """Return whether a frame is in a call with named arguments, for which C code copies all of them (3.8-3.14).

    Of a call that unpacks a dict, which may be empty, it is not known: False.
    """
    version, instruction = frames.objects.layout.version, _instruction(frames, frame)
    if len(instruction) < 2:
        return False
    if version in ((3, 11), (3, 12)):
        back = 6 if version == (3, 11) and instruction[0] in _AFTER_PRECALL else 2
        if _instruction(frames, frame, back)[:1] == bytes((_KW_NAMES,)):
            return True
    return instruction[0] in _KEYWORDS.get(version, ())


def iterates(frames: Frames, frame: Frame) -> bool:
    """Return whether a frame asks the iterator of its `for` for the next item, in releases that record no height then."""
    return frames.objects.layout.version in _FOR_ITER and _instruction(frames, frame)[:1] == _FOR_ITER_CODE


def _instruction(frames: Frames, frame: Frame, back: int = 0) -> bytes:
    """Return opcode and operand, two bytes, of the current instruction or ``back`` bytes before it; empty if unknown."""
    at = frame.lasti - back
    if at < 0:
        return b""
    if frames.objects.layout.heap_frames:
        return frame.code.bytecode()[at : at + 2]
    try:
        return frames.objects.memory.read(frame.code.start + at, 2)
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
