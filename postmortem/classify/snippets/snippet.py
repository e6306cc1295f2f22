"""The type of a snippet."""

from __future__ import annotations

from typing import NamedTuple


class Snippet(NamedTuple):
    """Code that hangs, and its correction."""

    before: str
    after: str


def of(before: str, after: str) -> Snippet:
    """Return a snippet, without blank lines around its code."""
    return Snippet(before.strip("\n"), after.strip("\n"))
