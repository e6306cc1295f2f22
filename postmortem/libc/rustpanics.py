"""The panic that ended a Rust library: its message and source line, from the stack of the thread that panicked.

While a panic is reported, the stack refers to ``core::panic::Location`` (a str, line and column: pointer, length, u32, u32) and
to its message: a ``String`` (pointer, length and capacity in an order that the compiler chooses), or a ``&'static str``.
Sources: library/core/src/panic/location.rs, library/std/src/panicking.rs (1.60 to 1.95); 64 bits, little-endian.
"""

from __future__ import annotations

import contextlib
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..memory import Fault, Memory

_SHORTEST, _LONGEST, _LONGEST_PATH = 4, 2000, 300
_MOST_CAPACITY = 1 << 20
_MOST_LINES = 1 << 22
#: Words around the locations among which the message is looked for.
_AROUND = 64


class Panic(NamedTuple):
    """A panic: ``place`` is "src/lib.rs:88:5"; ``message`` is None where it could not be found."""

    place: str
    message: Optional[str] = None


def panic(memory: Memory, words: Sequence[int]) -> Optional[Panic]:
    """Return the panic that the words of a stack tell of; None if they refer to no line of Rust code.

    ``words``: from the innermost frame on.
    """
    located = [(at, place) for at, word in enumerate(words) for place in [_location(memory, word)] if place is not None]
    if not located:
        return None
    first, last = max(located[0][0] - _AROUND, 0), located[-1][0] + _AROUND
    texts = sorted(_texts(memory, words[first:last]), key=lambda found: not found[1])
    return Panic(located[-1][1], next((text for text, _owned in texts if not text.endswith(".rs")), None))


def _location(memory: Memory, word: int) -> Optional[str]:
    """Return "FILE:LINE:COLUMN" if an address is that of a Location, else None."""
    try:
        at, length, place = memory.words(word, 3)
    except Fault:
        return None
    line, column = place & 0xFFFFFFFF, place >> 32
    if not (0 < line < _MOST_LINES and 0 < column < _MOST_LINES and length < _LONGEST_PATH):
        return None
    file = _text(memory, at, length)
    return f"{file}:{line}:{column}" if file is not None and file.endswith(".rs") else None


def _texts(memory: Memory, words: Sequence[int]) -> Iterator[Tuple[str, bool]]:
    """Yield (text, whether it is a String) for each String on the stack or one step away, and each &str of several words."""
    for at in range(len(words)):
        triples: List[Tuple[int, ...]] = [tuple(words[at : at + 3])]
        with contextlib.suppress(Fault):
            triples.append(memory.words(words[at], 3))
        for triple in triples:
            text = _string(memory, triple)
            if text is not None:
                yield text, True
        text = _text(memory, words[at], words[at + 1]) if at + 1 < len(words) else None
        if text is not None and " " in text:
            yield text, False


def _string(memory: Memory, triple: Sequence[int]) -> Optional[str]:
    """Return the text of a String: of its three words one is a pointer, the larger number is the capacity."""
    if len(triple) < 3:
        return None
    for pointer, one, other in (triple, (triple[1], triple[0], triple[2]), (triple[2], triple[0], triple[1])):
        if pointer > _MOST_CAPACITY and max(one, other) < _MOST_CAPACITY:
            return _text(memory, pointer, min(one, other))
    return None


def _text(memory: Memory, at: int, length: int) -> Optional[str]:
    """Return the printable text of a length; None for anything else."""
    if not _SHORTEST <= length <= _LONGEST:
        return None
    try:
        text = memory.read(at, length).decode()
    except (Fault, UnicodeDecodeError):
        return None
    return text if text.replace("\n", " ").replace("\t", " ").isprintable() else None
