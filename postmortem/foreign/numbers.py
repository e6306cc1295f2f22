"""Whole numbers in texts that somebody else wrote.

``str.isdigit`` holds of ``²`` and of the digits of every script, of which ``int`` refuses some and takes others; and a text of
a million digits is a number that nothing here can be.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import, and the fast path of `capture` needs this module
if TYPE_CHECKING:
    from typing import Optional, Union

#: The largest number that any field of the kernel's has, and how many digits that is.
MOST = (1 << 64) - 1
_MOST_DIGITS = 20


def is_decimal(text: Union[str, bytes]) -> bool:
    """Whether a text is nothing but ASCII digits, and no more of them than a number of 64 bits has."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def decimal(text: str, most: int = MOST) -> Optional[int]:
    """Return the number that a text of ASCII digits says; None for any other text, and for more than ``most``."""
    if not is_decimal(text):
        return None
    number = int(text)
    return number if number <= most else None
