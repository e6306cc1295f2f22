"""The message of a fatal error, recovered from the stack of a stripped interpreter.

``fatal_error`` (Python/pylifecycle.c) receives the function's name and the message as arguments and keeps them across
calls, in callee-saved registers or in its frame. Both point to strings among the constants of a program or library.

Limit: a message composed at run time is not a constant, and is not found.
"""

from __future__ import annotations

import re
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence

from ...memory import Fault, Image

#: Bytes of stack searched: a fatal error's frames are smaller, what follows belongs to their callers.
_MOST = 4096
_LONGEST = 500
_KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_FUNCTION = re.compile(r"[A-Za-z_]\w{3,80}$")
#: A sentence: words separated by spaces.
_MESSAGE = re.compile(r"[\w(<'\"%].* .*[A-Za-z]{2}.*$")
#: Texts that fatal_error itself writes around the message.
_OWN = re.compile(r"Fatal Python error|Python runtime state|Current thread|Extension modules|<.*>$|Stack \(most recent")
#: Largest distance, in words, between name and message.
_BESIDE = 4


class FatalError(NamedTuple):
    """The message of a fatal error, and the C function that raised it, if known."""

    message: str
    function: Optional[str] = None


def inferred(
    image: Image, low: int, high: int, registers: Mapping[str, int], is_constant: Callable[[int], bool]
) -> Optional[FatalError]:
    """Find the message among the words of a stack and the callee-saved registers; None if there is none.

    - ``low``, ``high``: bounds of the stack, [low, high).
    - ``is_constant``: whether an address is in file-backed memory that is neither writable nor executable.
    """
    size = min(high - low, _MOST) // 8
    try:
        words: List[int] = list(image.words(low, size)) if size > 0 else []
    except Fault:
        words = []
    words += [registers[name] for name in _KEPT if name in registers]
    texts = [_text(image, word) if is_constant(word) else None for word in words]
    messages = [index for index, text in enumerate(texts) if text and _MESSAGE.match(text) and not _OWN.match(text)]
    if not messages:
        return None
    functions = [index for index, text in enumerate(texts) if text and _FUNCTION.match(text)]
    at = min(messages, key=lambda index: (_distance(index, functions), index))
    near = [index for index in functions if abs(index - at) <= _BESIDE]
    name = texts[min(near, key=lambda index: abs(index - at))] if near else None
    return split(texts[at] or "", name)


def split(message: str, function: Optional[str]) -> FatalError:
    """Split off the function's name, which begins a message up to 3.8."""
    name, colon, rest = message.partition(": ")
    if function is None and colon and _FUNCTION.match(name) and rest:
        return FatalError(rest, name)
    return FatalError(message, function)


def _distance(index: int, functions: Sequence[int]) -> int:
    """Return the distance to the nearest function name."""
    return min((abs(index - other) for other in functions), default=_MOST)


def _text(image: Image, address: int) -> Optional[str]:
    """Return the printable ASCII string at an address; None if there is none."""
    try:
        raw = image.cstring(address, _LONGEST)
    except Fault:
        return None
    return raw.decode("ascii") if 4 <= len(raw) < _LONGEST and all(32 <= byte < 127 for byte in raw) else None
