"""Collapsed stacks of the observation window: a line each, ``outer;inner COUNT``, as flamegraph.pl and its kin read them.

The first two frames of a line are the process and the thread. Counts are samples.
"""

from __future__ import annotations

from typing import Iterator, List, Sequence

from ...evidence import Evidence
from ...findings import Diagnosis
from ..phrases import labels
from ..result import Result
from . import sampled


def render(evidence: Evidence, _diagnosis: Diagnosis) -> str:
    """Raises NothingToShow without samples."""
    return _lines(sampled.of_one(evidence))


def render_many(results: Sequence[Result]) -> str:
    """The targets' names stand in front of their processes."""
    return _lines(sampled.of_many(results))


def _lines(profiles: Sequence[sampled.Profile]) -> str:
    return "".join(line for profile in profiles for line in _of(profile))


def _of(profile: sampled.Profile) -> Iterator[str]:
    for seen in profile.seen:
        words: List[str] = [profile.owner, profile.thread, *map(_frame, seen.places)]
        yield f"{';'.join(map(_word, words))} {seen.times}\n"


def _frame(place: sampled.Place) -> str:
    """``load (app/model.py:12)``, as py-spy writes them."""
    if place.file is None:
        return place.function
    number = "" if place.line is None else f":{place.line}"
    return f"{place.function} ({labels.short_path(place.file)}{number})"


def _word(text: str) -> str:
    """Frames end at semicolons."""
    return text.replace(";", "\\x3b")
