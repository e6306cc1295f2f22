"""What a snippet is."""

from __future__ import annotations

from typing import NamedTuple


class Snippet(NamedTuple):
    before: str
    after: str


def of(before: str, after: str) -> Snippet:
    return Snippet(before.strip("\n"), after.strip("\n"))
