"""Facts that support a conclusion, for the reader, without words: a code and the values of its slots.

The words stand in ``report/phrases/facts.py``, one template a code.
"""

from __future__ import annotations

from typing import Dict, Tuple, Union

import msgspec

from .vocabulary import FactCode

#: A name, a number, or several of either.
Value = Union[None, bool, int, float, str, Tuple[Union[int, str], ...]]


class Fact(msgspec.Struct, frozen=True):
    """A fact, such as ``held-through`` with ``process`` and ``fd``."""

    code: FactCode
    slots: Dict[str, Value] = {}

    def __hash__(self) -> int:
        return hash((self.code, tuple(sorted(self.slots.items(), key=lambda slot: slot[0]))))


#: A fact; in evidence of the first version, words.
Because = Union[Fact, str]


def fact(code: FactCode, **slots: Value) -> Fact:
    """Return a fact with these slots."""
    return Fact(code, slots)
