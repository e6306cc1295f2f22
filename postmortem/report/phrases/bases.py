"""Phrases that tell how a holder was determined: a row a basis, a column a part of the report."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional


class _Words(NamedTuple):
    after_holder: str  # after the holder of what a thread waits for: held by thread 7 (…)
    in_chain: str = ""  # in a link of a wait chain; empty for the usual basis
    of_crash: str = ""  # after the interpreter's last message


_WORDS: Dict[str, _Words] = {
    "recorded": _Words("the lock's own record"),
    "with-slot": _Words("read from the holder's `with` statement", "read from its `with`"),
    "inferred": _Words(
        "inferred from the code, not read", "inferred from the code", "found by the texts that its stack points to"
    ),
}
_NONE = _Words("")


def after_holder(basis: Optional[str]) -> str:
    """`` (the lock's own record)``; "" where it is not known."""
    return _bracketed(_WORDS.get(basis or "", _NONE).after_holder)


def in_chain(basis: Optional[str]) -> str:
    """`` (inferred from the code)``; "" for what a lock records."""
    return _bracketed(_WORDS.get(basis or "", _NONE).in_chain)


def of_crash(basis: Optional[str]) -> str:
    """`` (found by the texts that its stack points to)``; "" for what was recorded."""
    return _bracketed(_WORDS.get(basis or "inferred", _WORDS["inferred"]).of_crash)


def _bracketed(words: str) -> str:
    return f" ({words})" if words else ""
