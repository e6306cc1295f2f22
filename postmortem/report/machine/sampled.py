"""The samples of each thread over the observation window: the input of the two formats for flame graphs."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...evidence import Evidence, Process, PythonFrame, Sample, Thread
from .. import escape
from ..phrases import labels
from ..phrases.gaps import in_words
from ..result import NothingToShow, Result
from ..text import stacks

_LONGEST = 400  # columns of a name
_COMMAND = 60


class Place(NamedTuple):
    """A frame of a sample. ``file`` is None for frames of a deep stack that were left out."""

    function: str
    file: Optional[str]
    line: Optional[int]


class Seen(NamedTuple):
    """A stack, oldest call first, with the number of samples that showed it."""

    times: int
    places: Tuple[Place, ...]


class Profile(NamedTuple):
    """The samples of one thread. ``owner`` names its process, and its target if there are several."""

    owner: str
    thread: str
    seen: Tuple[Seen, ...]  # in the order of their first samples


def of_one(evidence: Evidence) -> List[Profile]:
    """Return the profiles of all sampled threads; raise NothingToShow if there are none."""
    found = list(_profiles(evidence, ""))
    if not found:
        raise NothingToShow(_why_not(evidence))
    return found


def of_many(results: Sequence[Result]) -> List[Profile]:
    """Return the profiles of several targets; raise NothingToShow if none has samples."""
    found = [profile for target, evidence, _ in results for profile in _profiles(evidence, f"{target}: ")]
    if not found:
        raise NothingToShow(_why_not(results[0][1]) if results else "there is nothing to draw")
    return found


def _profiles(evidence: Evidence, target: str) -> Iterator[Profile]:
    for process in evidence.processes:
        for thread in process.threads:
            samples = [sample for sample in thread.samples if sample.count > 0]
            if samples:
                seen = tuple(Seen(s.count, _places(s)) for s in sorted(samples, key=lambda s: s.first_s))
                owner = escape.cut(escape.clean(target + _owner(process)), _LONGEST)
                yield Profile(owner, _thread(thread), seen)


def _owner(process: Process) -> str:
    return f"process {process.pid} ({escape.cut(escape.clean(stacks.command(process)), _COMMAND)})"


def _thread(thread: Thread) -> str:
    return escape.cut(escape.clean(labels.label(thread)), _LONGEST)


def _places(sample: Sample) -> Tuple[Place, ...]:
    inner = [_place(frame) for frame in sample.frames]
    if sample.left_out is not None:
        between = Place(f"… {labels.plural(sample.left_out.frames, 'frame')} left out", None, None)
        inner.insert(sample.left_out.behind, between)
    return tuple(reversed(inner))


def _place(frame: PythonFrame) -> Place:
    function = escape.cut(escape.clean(frame.qualname or frame.function), _LONGEST)
    return Place(function, escape.tail(escape.clean(frame.file), _LONGEST), frame.line)


def _why_not(evidence: Evidence) -> str:
    """Return a sentence on why there are no samples, and how to get some."""
    if evidence.window_s is None:
        return (
            "there are no samples to draw: nothing was watched over time, and a core shows only one moment; "
            "`postmortem capture` watches for a second, and for N with --observe N"
        )
    told = next((gap for gap in evidence.gaps if gap.source == "py-spy"), None)
    if told is None:
        return "there are no samples to draw: no Python stack was seen in the observation window"
    told = in_words(told)
    return f"there are no samples to draw: {told.reason}" + (f"; {told.remedy}" if told.remedy else "")
