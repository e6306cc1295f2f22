"""Integers in texts written by others.

``str.isdigit`` accepts ``²`` and the digits of every script, of which ``int`` refuses some and accepts others; and a
text of a million digits is no plausible number.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import, and the fast path of `capture` needs this module
if TYPE_CHECKING:
    from typing import Optional, Union

#: The largest number in any field of the kernel, and its number of digits.
MOST = (1 << 64) - 1
_MOST_DIGITS = 20


def is_decimal(text: Union[str, bytes]) -> bool:
    """Return whether a text consists of ASCII digits only, at most as many as a 64-bit number has."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def decimal(text: str, most: int = MOST) -> Optional[int]:
    """Return the number in a text of ASCII digits; None for any other text, and above ``most``."""
    if not is_decimal(text):
        return None
    number = int(text)
    return number if number <= most else None
