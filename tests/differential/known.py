"""Where the peers differ from the target's own account; each entry is proven by the test on every run.

An entry: (peer, live or core or both, interpreters, mode of the program or both) → what is wrong. ``*`` matches all.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import List, NamedTuple


class Difference(NamedTuple):
    peer: str
    how: str
    interpreter: str
    mode: str
    what: str  # "threads" | "frames" | "holder" | "fails"
    why: str


KNOWN: List[Difference] = [
    *(
        Difference("py-spy", "core", version, mode, what, "tells no kernel ids: those versions do not record them")
        for version in ("3.8", "3.9", "3.10")
        for mode, what in (("*", "threads"), ("gil", "holder"))
    ),
    Difference("py-spy", "*", "3.13t", "*", "fails", "finds no interpreter in a free-threaded build"),
]


def expected(peer: str, how: str, interpreter: str, mode: str) -> List[Difference]:
    place = (peer, how, interpreter, mode)
    return [d for d in KNOWN if all(fnmatchcase(value, pattern) for value, pattern in zip(place, d))]
