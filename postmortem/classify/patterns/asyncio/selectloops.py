"""Select loops of other libraries than asyncio that turn without pause and only find the same descriptors ready again.

Such a loop (asyncore's, a reactor, a server's own) calls select, poll or epoll_wait from Python. In samples its function
is on the stack all the time; the call of select returns at once, and what the loop calls lies in the loop's own package.
A loop under load runs code of the program, or of other packages, for its clients.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import Process, PythonFrame, Thread
from ....findings import Template
from ...facts import knowledge
from ...facts.clauses import named
from ...facts.view import View
from ...pattern import Match

_SELECTS = re.compile(r"\b(?:select|poll|epoll_wait|kevent|_poll)\s*\(")
#: Least share of the samples with the loop's function, in the call of select, and in the loop's own package. The call takes
#: about a twelfth of a turn: with 58 samples, one window in 25 shows less than this share of it; with 100, one in 100.
_ALWAYS, _IN_SELECT, _OWN = 0.8, 0.03, 0.9
#: Voluntary switches a second from which the loop does sleep in select; and least looks at its system call that tell more: a
#: thread that waits for the GIL gives up the CPU, too.
_SLEEPS, _LOOKS = 20.0, 10

_SUMMARY = Template("the select loop of {thread} turns without pause at {frame}: something is ready at every turn")
_TURNS = Template(
    "{thread} wanted {wanted:.0%} of a core and slept {sleeps:.0f} times a second; the loop was on its stack nearly always"
)
_NOTHING = Template("{own:.0%} of the samples are in the loop's own package, {inside:.0%} in the call of select itself")
_CALLED = Template("the loop calls {frame} ({count} of {total} samples)")
_REMEDY = Template(
    "Find the descriptor that is always ready: one that is always writable although nothing is to be sent, or at end of file, or "
    "failed. Close it, or take it out of the set; if the library's code decides that, upgrade the library."
)


class _Turning(NamedTuple):
    """A select loop: the frame of its function, and shares of the samples."""

    loop: PythonFrame
    inside: float  # in the call of select
    own: float  # in the loop's own package


def turning(view: View, process: Process, min_cpu: float) -> Iterator[Match]:
    """Yield a match for each thread that turns in a select loop; ``min_cpu``: least share of a core that it wants."""
    loops = {loop.tid for loop in process.loops}
    for thread in process.threads:
        wanted, sleeps = view.wanted_share(thread), view.switches(thread)
        if thread.tid in loops or wanted is None or wanted < min_cpu or sleeps is None or _sleeps(thread, sleeps):
            continue
        found = _turning(view, thread)
        if found is not None:
            yield _match(view, process, thread, found)


def _sleeps(thread: Thread, often: float) -> bool:
    """Return whether a thread sleeps in its calls of select; ``often``: its voluntary switches per second."""
    seen = thread.counters.syscalls if thread.counters is not None else {}
    if sum(seen.values()) >= _LOOKS:
        return not knowledge.SELECT_CALLS.isdisjoint(seen)
    return often > _SLEEPS


def _turning(view: View, thread: Thread) -> Optional[_Turning]:
    samples = [(count, frames) for count, frames in view.samples(thread) if frames]
    total = sum(count for count, _frames in samples)
    selecting = [(n, frames[at]) for n, frames in samples for at in [_selects_at(view, frames)] if at is not None]
    if not selecting or sum(n for n, _frame in selecting) < _IN_SELECT * total:
        return None
    loop = max(selecting, key=lambda one: one[0])[1]
    inside = sum(n for n, frame in selecting if _same(frame, loop))
    on_stack = sum(n for n, frames in samples if any(_same(frame, loop) for frame in frames))
    own = sum(n for n, frames in samples if all(_is_own(frame, loop) for frame in _above(frames, loop)))
    if on_stack < _ALWAYS * total or own < _OWN * total:
        return None
    return _Turning(loop, inside / total, own / total)


def _selects_at(view: View, frames: Tuple[PythonFrame, ...]) -> Optional[int]:
    """Return the index of the innermost frame outside the standard library if it is at a call of select; else None."""
    at = next((i for i, frame in enumerate(frames) if not knowledge.is_stdlib(frame)), None)
    if at is None:
        return None
    inner = frames[0].function in ("select", "poll") and knowledge.is_stdlib(frames[0])
    called = _SELECTS.search(view.evidence.source(frames[at].file, frames[at].line) or "")
    return at if inner or (called and at == 0) else None


def _same(one: PythonFrame, other: PythonFrame) -> bool:
    return (one.file, one.function) == (other.file, other.function)


def _above(frames: Tuple[PythonFrame, ...], loop: PythonFrame) -> Tuple[PythonFrame, ...]:
    """Return the frames that the loop's function called; the innermost one where it is called from a loop itself."""
    at = next((i for i, frame in enumerate(frames) if _same(frame, loop)), 1)
    return frames[:at]


def _is_own(frame: PythonFrame, loop: PythonFrame) -> bool:
    """Return whether a frame is in the folder of the loop's file, or in the standard library."""
    return knowledge.is_stdlib(frame) or frame.file.rpartition("/")[0] == loop.file.rpartition("/")[0]


def _match(view: View, process: Process, thread: Thread, found: _Turning) -> Match:
    calls: Counter[PythonFrame] = Counter()
    total = 0
    for count, frames in view.samples(thread):
        total += count
        above = [frame for frame in _above(frames, found.loop) if not knowledge.is_stdlib(frame)]
        calls.update({frame: count for frame in above if frame.file != found.loop.file})
    seen = [frame for frame, _count in calls.most_common(4)]
    caller = knowledge.own_frame(thread.python)
    places: List[Optional[PythonFrame]] = [*seen[:2], caller, found.loop, *seen[2:]]
    return Match(
        confidence="likely",
        summary=_SUMMARY(thread=named(thread), frame=found.loop),
        evidence=(
            _TURNS(thread=named(thread), wanted=view.wanted_share(thread) or 0, sleeps=view.switches(thread) or 0),
            _NOTHING(own=found.own, inside=found.inside),
            *(_CALLED(frame=frame, count=calls[frame], total=total) for frame in seen[:2]),
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, frame, thread) for frame in places if frame is not None)),
        remedy=_REMEDY(),
        pid=process.pid,
    )
