r"""The C++ exception that nobody caught, from the stack of the thread that it ended.

`std::terminate` leaves the exception alive, and its callers keep a pointer to its header on the stack. The header names
itself by its class, so a word that points to one is no coincidence:

- ``_Unwind_Exception``: exception_class (8 bytes, "GNUCC++\0" or "CLNGC++\0" as a big number), …; 32 bytes, the thrown object
  follows it
- ``__cxa_exception`` ends with it; its exceptionType lies 80 bytes before
- ``std::type_info``: vtable, name; with one base class: the base's type_info next
- ``std::logic_error``, ``std::runtime_error``: vtable, a pointer to the text of what()

Sources: libstdc++-v3/libsupc++/unwind-cxx.h and tinfo.h, libcxxabi/src/cxa_exception.h, the Itanium C++ ABI; 64 bits.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Optional, Sequence

from ..memory import Fault, Memory

_CLASSES = (int.from_bytes(b"GNUCC++\0", "big"), int.from_bytes(b"CLNGC++\0", "big"))
_TYPE, _OBJECT = -80, 32
_NAME, _BASE, _WHAT = 8, 16, 8
_MANGLED = re.compile(r"\*?[A-Za-z0-9_]{1,400}$")
_WITH_TEXT = ("St11logic_error", "St13runtime_error")
_MOST_BASES, _LONGEST = 8, 1000


class Thrown(NamedTuple):
    """A C++ exception.

    - ``type``: its class as in C++, or mangled where the name has templates
    - ``message``: the text of what(); None if the class has none that can be read
    """

    type: str
    message: Optional[str] = None


def thrown(memory: Memory, words: Sequence[int]) -> Optional[Thrown]:
    """Return the first exception that a word of a stack points to; None if there is none."""
    for word in dict.fromkeys(words):
        try:
            if memory.u64(word) not in _CLASSES:
                continue
            names = list(_names(memory, memory.u64(word + _TYPE)))
        except Fault:
            continue
        if names:
            return Thrown(readable(names[0]), _message(memory, word + _OBJECT, names))
    return None


def _names(memory: Memory, info: int) -> Iterator[str]:
    """Yield the mangled names of a class and of its single base classes; nothing for what is no type_info."""
    for _step in range(_MOST_BASES):
        try:
            name = memory.cstring(memory.u64(info + _NAME), _LONGEST).decode("ascii", "replace")
            if not _MANGLED.match(name):
                return
            yield name.lstrip("*")
            info = memory.u64(info + _BASE)
        except Fault:
            return


def _message(memory: Memory, thing: int, names: Sequence[str]) -> Optional[str]:
    if not any(name in _WITH_TEXT for name in names):
        return None
    try:
        return memory.cstring(memory.u64(thing + _WHAT), _LONGEST).decode("utf-8", "backslashreplace").strip() or None
    except Fault:
        return None


def readable(mangled: str) -> str:
    """Return a mangled class name as in C++; unchanged where it is more than a sequence of plain names."""
    nested = mangled[1:-1] if mangled.startswith("N") and mangled.endswith("E") else mangled
    parts = []
    if nested.startswith("St"):
        parts, nested = ["std"], nested[2:]
    while nested:
        length = re.match(r"\d+", nested)
        if length is None:
            return mangled
        end = length.end() + int(length.group())
        part = nested[length.end() : end]
        if len(part) != int(length.group()):
            return mangled
        parts.append("(anonymous namespace)" if part.startswith("_GLOBAL__N_") else part)
        nested = nested[end:]
    return "::".join(parts) or mangled
