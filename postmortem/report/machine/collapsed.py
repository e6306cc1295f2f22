"""Collapsed stacks of the observation window, one per line: ``outer;inner COUNT``, as read by flamegraph.pl and others.

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
    """Render the samples; raise NothingToShow without any."""
    return _lines(sampled.of_one(evidence))


def render_many(results: Sequence[Result]) -> str:
    """Render the samples of several targets; target names precede process names."""
    return _lines(sampled.of_many(results))


def _lines(profiles: Sequence[sampled.Profile]) -> str:
    return "".join(line for profile in profiles for line in _of(profile))


def _of(profile: sampled.Profile) -> Iterator[str]:
    for seen in profile.seen:
        words: List[str] = [profile.owner, profile.thread, *map(_frame, seen.places)]
        yield f"{';'.join(map(_word, words))} {seen.times}\n"


def _frame(place: sampled.Place) -> str:
    """Return ``load (app/model.py:12)``, as py-spy writes frames."""
    if place.file is None:
        return place.function
    number = "" if place.line is None else f":{place.line}"
    return f"{place.function} ({labels.short_path(place.file)}{number})"


def _word(text: str) -> str:
    """Escape semicolons, which separate frames."""
    return text.replace(";", "\\x3b")
