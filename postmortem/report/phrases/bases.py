"""Phrases that tell how a holder was determined: a row a basis, a column a part of the report."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

from ...evidence.vocabulary import CrashBasis, OwnerBasis, WakerBasis


class _Words(NamedTuple):
    after_holder: str  # after the holder of what a thread waits for: held by thread 7 (…)
    in_chain: str = ""  # in a link of a wait chain; empty for the usual basis


#: In a sentence of a finding.
_KNOWN: Dict[WakerBasis, str] = {
    "recorded": "as the lock itself records",
    "with-slot": "as its active `with` statement shows",
    "inferred": "inferred from the source code",
    "kernel": "as the kernel records",
    "memory": "found in memory",
}
_WORDS: Dict[WakerBasis, _Words] = {
    "recorded": _Words("the lock's own record"),
    "with-slot": _Words("read from the holder's `with` statement", "read from its `with`"),
    "inferred": _Words("inferred from the code, not read", "inferred from the code"),
}


def after_holder(basis: Optional[OwnerBasis]) -> str:
    """Return `` (the lock's own record)`` or the like; "" for an unknown basis."""
    return _bracketed(_WORDS[basis].after_holder) if basis is not None else ""


def in_chain(basis: WakerBasis) -> str:
    """Return `` (inferred from the code)`` or the like; "" for what a lock or the kernel records."""
    return _bracketed(_WORDS[basis].in_chain) if basis in _WORDS else ""


def known(basis: Optional[WakerBasis]) -> str:
    """Return how a holder or waker is known, as a clause of a sentence."""
    return _KNOWN[basis] if basis is not None else "how this is known was not recorded"


def of_crash(basis: Optional[CrashBasis]) -> str:
    """Return how the interpreter's last message was found; "" if it was recorded."""
    return "" if basis == "recorded" else " (found among the texts that its stack points to)"


def _bracketed(words: str) -> str:
    return f" ({words})" if words else ""
