"""The C function that the innermost Python frame of a thread called last, from its value stack.

- During a call the callable and its arguments lie on top of the stack (``callheights``); since 3.14 the frame records
  its height.
- Up to 3.13 only a lower bound is known. Where it is missing, all slots are searched and the candidate must be unique,
  because unused slots keep stale values.
- Other evidence must show that the call is in progress (unchanged samples, a system call, the collector's flag).

Sources, the same in 3.8-3.15:
- Include/cpython/descrobject.h: PyMethodDescrObject (d_type, d_name).
- Include/cpython/methodobject.h: PyCFunctionObject (m_ml, m_self).
- Modules/_sre/sre.h (Modules/sre.h up to 3.10): PatternObject (pattern follows groups, groupindex, indexgroup).
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat, Objects
from .callheights import iterates, least_height
from .frame import Frame, Frames

_METHOD, _SELF = 16, 24  # PyCFunctionObject
_OWNER, _NAME = 16, 24  # PyDescrObject
_FUNCTIONS = ("builtin_function_or_method", "builtin_method")
_DESCRIPTORS = ("method_descriptor", "classmethod_descriptor")
_CALLS_AGAIN, _CALLED = "callable_iterator", 16  # calliterobject (Objects/iterobject.c)
_SCANNED = 16  # ScannerObject.pattern
_SCANS = 56  # ScannerObject.state.string, after four pointers
_PATTERN = 48  # PatternObject.pattern
_MOST_TEXT = 160
_EXIT = ".__exit__"
_MOST_GIVEN, _MOST_ARGUMENTS = 5, 6
_TEXTS = ("str", "bytes", "bytearray")  # their length is at the same offset as a list's


class NativeCall(NamedTuple):
    """A call of a C function.

    - ``key``: frame, instruction and arguments; equal at two moments if it is still the same call
    - ``arguments``: slots behind the function: perhaps ``self`` or an empty one, arguments, then perhaps stale ones
    """

    function: str  # "re.Pattern.match", "gc.collect"
    detail: Optional[str]
    text: Optional[int]  # characters or bytes of the longest text argument
    key: Tuple[int, ...]
    arguments: Tuple[int, ...] = ()


def native_call(frames: Frames, frame: Frame) -> Optional[NativeCall]:
    """Return the C call of a frame that runs no other Python frame; None if unknown."""
    slots = frames.value_stack(frame)
    used = _used(frames, frame)
    found = _candidates(frames.objects, slots if used is None else slots[:used])
    if used is None and iterates(frames, frame):
        found = [each for each in found if frames.objects.type_name(slots[each[0]]) == _CALLS_AGAIN]
    if not found or (used is None and len({name for _index, name, _self in found}) > 1):
        return None
    index, name, self = found[-1]
    if name.endswith(_EXIT) and not _is_leaving(frames.objects, slots[index + 1 : used]):
        return None
    given = slots[index : index + _MOST_GIVEN]
    key = (frame.address, frame.code.address, frame.lasti, *given)
    texts = (*given, *_scanned(frames.objects, name, self))
    behind = slots[index + 1 : index + 1 + _MOST_ARGUMENTS]
    return NativeCall(name, _detail(frames.objects, name, self), _longest(frames.objects, texts), key, behind)


def _is_leaving(objects: Objects, behind: Sequence[int]) -> bool:
    """Return whether the ``__exit__`` before these slots is being called, rather than kept for the end of its `with`.

    Behind one that is called lie its arguments: None three times, or after an exception a number and the exception (in 3.8
    one NULL; Python/compile.c, compiler_call_exit_with_nones and WITH_EXCEPT_START). Behind one that is kept lies what the
    block works on, such as the next lock.
    """
    return bool(behind) and (not behind[0] or objects.type_name(behind[0]) in ("NoneType", "int"))


def _scanned(objects: Objects, name: str, self: int) -> Tuple[int, ...]:
    """Return the text that a scanner, such as re's finditer, searches."""
    try:
        return (objects.field(self, _SCANS),) if self and name.startswith("_sre.SRE_Scanner.") else ()
    except (Fault, NotThat):
        return ()


def _longest(objects: Objects, values: Sequence[int]) -> Optional[int]:
    """Return the length of the longest text among values; None if there is none."""
    lengths = [objects.length_or_none(value) for value in values if value and objects.type_name(value) in _TEXTS]
    return max((length for length in lengths if length is not None), default=None)


def _used(frames: Frames, frame: Frame) -> Optional[int]:
    """Return the number of value-stack slots in use, at least; None if unknown."""
    height = frames.height(frame)
    if height is None:
        height = least_height(frames, frame, None)
    return None if height is None else height - frame.code.nlocalsplus


def _candidates(objects: Objects, slots: Sequence[int]) -> List[Tuple[int, str, int]]:
    """Return (slot, name, self or 0) of each C function in the slots."""
    found = []
    for index, value in enumerate(slots):
        kind = objects.type_name(value) if value else None
        try:
            if kind in _FUNCTIONS:
                found.append((index, *_of_function(objects, value)))
            elif kind in _DESCRIPTORS:
                owner = objects.type_at(objects.field(value, _OWNER)).name
                name = objects.optional_text(objects.field(value, _NAME))
                if name:
                    found.append((index, f"{owner}.{name}", next(iter(slots[index + 1 : index + 2]), 0)))
            elif kind == _CALLS_AGAIN:  # re's finditer in a `for`
                found.append((index, *_of_function(objects, objects.field(value, _CALLED))))
        except (Fault, NotThat):
            continue
    return found


def _of_function(objects: Objects, function: int) -> Tuple[str, int]:
    """Return (qualified name, self or 0) of a C function. Raises Fault or NotThat."""
    memory = objects.memory
    name = memory.cstring(memory.u64(objects.field(function, _METHOD)), 64).decode("utf-8", "backslashreplace")
    self = objects.field(function, _SELF)
    if not self:
        return name, 0
    if objects.is_instance(self, "module"):
        namespace = objects.field(self, 16)
        module = objects.lookup(namespace, "__name__")
        text = objects.optional_text(module) if module else None
        return (name if text in (None, "builtins") else f"{text}.{name}"), 0
    return f"{objects.type_name(self) or '?'}.{name}", self


def _detail(objects: Objects, name: str, self: int) -> Optional[str]:
    """Return the pattern of a regular-expression call; None for other calls."""
    if not name.startswith(("re.Pattern.", "_sre.SRE_Pattern.", "_sre.SRE_Scanner.")) or not self:
        return None
    try:
        pattern = objects.field(self, _SCANNED) if "Scanner" in name else self
        value = objects.field(pattern, _PATTERN)
        is_bytes = objects.type_name(value) == "bytes"
        text = objects.bytes_(value).decode("latin-1") if is_bytes else objects.optional_text(value)
    except (Fault, NotThat):
        return None
    return None if text is None else f"pattern {text[:_MOST_TEXT]!r}{' …' if len(text) > _MOST_TEXT else ''}"
