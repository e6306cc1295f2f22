"""Exceptions of a thread: the one propagating, and those being handled.

A thread state points to the topmost _PyErr_StackItem; each running generator that handles an exception links an item of
its own into the chain.

Sources:
- Include/cpython/pystate.h; Objects/genobject.c, gen_send_ex: the chain.
- Include/cpython/pyerrors.h: PyBaseExceptionObject.
- Include/cpython/traceback.h: PyTracebackObject.
"""

from __future__ import annotations

import contextlib
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.attributes import class_value
from ..objects.builtins import NotThat, Objects
from ..objects.code import Code
from ..objects.links import linked
from ..runtime import layouts as L
from .frame import Frames

#: Most nested handlers, and most entries of a traceback.
MAX_ITEMS, MAX_TRACEBACK = 1_000, 1_000_000
#: Modules that tracebacks omit before the names of exceptions.
_PLAIN_MODULES = ("builtins", "__main__")


class Raised(NamedTuple):
    """An exception and the place where it was raised: the innermost entry of its traceback."""

    address: int  # 0 if only its class is known
    type: str
    handled: bool
    code: Optional[Code] = None
    line: Optional[int] = None


def exceptions(frames: Frames, tstate: int) -> List[Raised]:
    """Return the exceptions of a thread: the propagating one, then those handled, most recent first.

    ``tstate``: address of the PyThreadState. What cannot be read is left out.
    """
    found = [raised for raised in (_on_its_way(frames, tstate),) if raised is not None]
    for value in _handled(frames.objects, tstate):
        if all(value != other.address for other in found):
            found.append(_described(frames, value, True))
    return found


def is_exception(objects: Objects, address: int) -> bool:
    """Return whether an object is an instance of BaseException."""
    try:
        return bool(objects.type_of(address).flags & L.FLAG_EXCEPTION)
    except (Fault, NotThat):
        return False


def qualified(objects: Objects, address: int) -> str:
    """Return an object's class name as tracebacks print it: ``json.decoder.JSONDecodeError``, ``ValueError``."""
    name = objects.type_name(address) or "?"
    if "." in name:
        return name
    found = class_value(objects, address, "__module__")
    module = objects.optional_text(found) if found is not None else None
    return name if module is None or module in _PLAIN_MODULES else f"{module}.{name}"


def _on_its_way(frames: Frames, tstate: int) -> Optional[Raised]:
    """Return the propagating exception; None if there is none, or it is unreadable."""
    objects, layout = frames.objects, frames.objects.layout
    if layout.ts_raised < 0:
        return None
    try:
        value = objects.memory.u64(tstate + layout.ts_raised)
        if value and is_exception(objects, value):
            return _described(frames, value, False, _word(objects, tstate, layout.ts_raised_traceback))
        # Up to 3.11 an exception may be a bare class until it is caught.
        kind = _word(objects, tstate, layout.ts_raised_type)
        return Raised(0, objects.type_at(kind).name, False) if kind else None
    except (Fault, NotThat):
        return None


def _word(objects: Objects, address: int, offset: int) -> int:
    """Read a word; 0 if the layout has no such field. Raises Fault."""
    return objects.memory.u64(address + offset) if offset >= 0 else 0


def _handled(objects: Objects, tstate: int) -> Iterator[int]:
    """Yield the exceptions being handled, most recent first."""
    memory, layout = objects.memory, objects.layout
    if layout.ts_exc_info < 0:
        return
    try:
        item = memory.u64(tstate + layout.ts_exc_info)
        for _ in range(MAX_ITEMS):
            if not item:
                return
            value = memory.u64(item + layout.exc_value)
            if value and is_exception(objects, value):
                yield value
            item = memory.u64(item + layout.exc_previous)
    except Fault:
        return


def _described(frames: Frames, value: int, handled: bool, traceback: int = 0) -> Raised:
    """Describe an exception with its place, if readable."""
    objects = frames.objects
    code, line = None, None
    with contextlib.suppress(Fault, NotThat):
        code, line = _raised_at(frames, traceback or objects.memory.u64(value + objects.layout.be_traceback))
    return Raised(value, qualified(objects, value), handled, code, line)


def _raised_at(frames: Frames, traceback: int) -> Tuple[Optional[Code], Optional[int]]:
    """Return code and line of a traceback's innermost entry.

    Since 3.12 its line is computed lazily, and -1 before.
    """
    objects, layout = frames.objects, frames.objects.layout
    memory = objects.memory
    if not traceback or objects.type_of(traceback).name != "traceback":
        return None, None
    for entry in linked(traceback, lambda entry: memory.u64(entry + layout.tb_next), MAX_TRACEBACK):
        traceback = entry
    frame = memory.u64(traceback + layout.tb_frame)
    made = frames.frame(memory.u64(frame + layout.fo_frame) if layout.fo_frame >= 0 else frame)
    if made is None:
        return None, None
    line = memory.i32(traceback + layout.tb_lineno)
    return made.code, line if line > 0 else made.code.line(memory.i32(traceback + layout.tb_lasti))
