"""What a stripped interpreter said before it aborted: its message is still pointed to from the frame that wrote it.

``fatal_error`` (Python/pylifecycle.c) gets the function's name and the message as arguments, which it keeps over calls,
in registers that its callees save or in its own frame: words on the stack, or in registers, that point to texts in the
constants of a program or library. A message that a program composed itself lies in no file, and is not found.
"""

from __future__ import annotations

import re
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence

from ...memory import Fault, Image

#: Frames of fatal errors are smaller; what comes later belongs to whoever called.
_MOST = 4096
_LONGEST = 500
_KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_FUNCTION = re.compile(r"[A-Za-z_]\w{3,80}$")
#: Words with spaces between them, as people read them.
_MESSAGE = re.compile(r"[\w(<'\"%].* .*[A-Za-z]{2}.*$")
#: What fatal_error itself writes around the message.
_OWN = re.compile(r"Fatal Python error|Python runtime state|Current thread|Extension modules|<.*>$|Stack \(most recent")
#: Name and message are kept side by side.
_BESIDE = 4


class FatalError(NamedTuple):
    message: str
    function: Optional[str] = None


def inferred(
    image: Image, low: int, high: int, registers: Mapping[str, int], is_constant: Callable[[int], bool]
) -> Optional[FatalError]:
    """Among the words of a stack in [low, high) and the registers that calls preserve. ``is_constant``: does an address
    lie in what a file holds and nobody may write or execute?"""
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
    """Up to 3.8 a message begins with the function's name."""
    name, colon, rest = message.partition(": ")
    if function is None and colon and _FUNCTION.match(name) and rest:
        return FatalError(rest, name)
    return FatalError(message, function)


def _distance(index: int, functions: Sequence[int]) -> int:
    return min((abs(index - other) for other in functions), default=_MOST)


def _text(image: Image, address: int) -> Optional[str]:
    try:
        raw = image.cstring(address, _LONGEST)
    except Fault:
        return None
    return raw.decode("ascii") if 4 <= len(raw) < _LONGEST and all(32 <= byte < 127 for byte in raw) else None
