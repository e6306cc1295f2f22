"""Bugs to be put in the place of a function, to see that the harness finds them."""

from __future__ import annotations

from typing import Any


def raises(*_words: Any, **_more: Any) -> None:
    raise KeyError("planted")


def spins(*_words: Any, **_more: Any) -> None:
    while True:
        pass


def eats(*_words: Any, **_more: Any) -> None:
    bytearray(700 << 20)
