"""An unbounded queue grows faster than its consumer empties it.

**What it looks like.** A queue without a maximum size holds hundreds or thousands of items, and more at the end of the window
than at its beginning. Its producer never has to wait.

**Easily mistaken for** a healthy backlog, which shrinks; a bounded queue that is full, whose producer waits as it should.

**Why it hangs.** What is put in last comes out after everything before it, so the delay grows with the queue, and so does
memory. `put` of an unbounded `asyncio.Queue` never yields, so that a producer may not even let the consumer run; a
`sleep(0)` there only hides that, and no longer helps once the consumer yields twice for each item.

**Remedy.** Give the queue a size: then `put` waits, and the producer goes at the consumer's pace.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Backlog, Process, PythonFrame
from ....findings import Slot, Template
from ....waitgraph import Agent
from ...facts.knowledge import in_table, is_library, own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="unbounded-queue",
    tier="resource",
    title="an unbounded queue grows faster than its consumer empties it",
    explanation=(
        "Items are put into this queue faster than they are taken out, and nothing stops that, because the queue has no "
        "maximum size. Every item waits for all those before it, so everything comes later and later, and memory fills up."
    ),
    remedy=(
        "Create the queue with a maximum size (Queue(maxsize=100), deque with a check of its length): put() then waits until "
        "there is room, and the producer goes no faster than the consumer. More consumers help only if they keep up."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/queue.html#queue.Queue",
        "https://docs.python.org/3/library/asyncio-queue.html#asyncio.Queue",
    ),
)  # fmt: skip

#: Least number of items, and that of a queue whose growth is unknown; then least growth in items per second, and as a share
#: of the items: a queue of thousands that gains a few is steady.
MANY, HUGE = 200, 5000
MIN_GROWTH, GROWTH_SHARE = 20, 0.01
_BARE = ("collections.deque", "list")

_SUMMARY = Template(
    "the {kind} {name} is unbounded and grows faster than it is emptied: {items:,} items, {rate:,.0f} more each second{put}"
)
_LONG = Template("the {kind} {name} is unbounded and holds {items:,} items{put}")
_NOT_SEEN = Template("one moment only: an observation window would show whether it grows")
_PUT = Template(", added at {frames}")
_HOLDS = Template("{name} ({kind}) holds {items:,} items and has no maximum size")
_GREW = Template("it grew by {growth:,} in {seconds:.1f} s, {rate:,.0f} a second{fewest}")
_FEWEST = Template("; fewest seen meanwhile: {least:,}")
_PUT_INTO = Template("items are added at {frames}")
_TAKEN_FROM = Template("items are taken out at {frames}")
_NOT_TAKEN_FROM = Template("no consumer of it was found")
_USED_BY = Template("used by {users}")
_FRAMES = Template("{count:n frame}")
_OTHER_GROWS = Template("{name} grows as well: {items:,} items")
_MAPS = Template("map() of its executor, called at {frame}, puts all that it is given into the queue at once")
_CONSUMER_AT = Template("a thread that takes from it is at {frame}")
_ALONE = Template("one thread, or one function, both fills and empties it: it may be a private work list")
_NO_WINDOW = Template("an observation window: does {name} ({items} items) grow?")
_STEADY = Template("{name} of process {pid} holds {items} items, and does not grow")
#: Takes all of its arguments before the first result is asked for (Lib/concurrent/futures/_base.py of 3.8 to 3.15).
_MAP = (("/concurrent/futures/_base.py", "map"),)


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each long queue: a match for the one that grows most, if any."""
    for process in view.pythons:
        found = []
        for backlog in process.backlogs:
            if backlog.limit or backlog.items < MANY or not _is_queue(backlog):
                continue
            if backlog.growth is None or not backlog.seconds:
                if backlog.items >= HUGE and backlog.filled_at and backlog.emptied_at and not _alone(backlog):
                    found.append(backlog)
                elif backlog.items >= HUGE:
                    yield CannotTell((_NO_WINDOW(name=backlog.name, items=backlog.items),))
                continue
            if backlog.growth < max(MIN_GROWTH * backlog.seconds, GROWTH_SHARE * backlog.items):
                yield No(_STEADY(name=backlog.name, pid=process.pid, items=backlog.items))
                continue
            found.append(backlog)
        if found:
            yield _match(view, process, max(found, key=lambda one: (one.growth or 0, one.items)), found)


def _is_queue(backlog: Backlog) -> bool:
    """Return whether items are taken out again; a container that is only added to is a history."""
    return bool(backlog.emptied_at) if backlog.kind in _BARE else True


def _alone(backlog: Backlog) -> bool:
    """Return whether one function, or for a bare deque or list one thread, both fills and empties it.

    Such is a search's list of nodes to visit, or a buffer of the newest items: no producer is ahead of a consumer, and with
    a bound the two might block each other.
    """
    filling, emptying = ({(f.file, f.function) for f in frames} for frames in (backlog.filled_at, backlog.emptied_at))
    if filling and filling == emptying:
        return True
    return backlog.kind in _BARE and len({(user.tid, user.task) for user in backlog.users}) == 1


def _match(view: View, process: Process, backlog: Backlog, several: List[Backlog]) -> Match:
    rate, seconds = backlog.growth_per_s or 0.0, backlog.seconds or 0.0
    users = _users(view, process, backlog)
    putting, taking = tuple(_near(backlog.filled_at)[:2]), tuple(_near(backlog.emptied_at)[:2])
    fewest = _FEWEST(least=backlog.least) if backlog.least else None
    facts = [
        _HOLDS(name=backlog.name, kind=backlog.kind, items=backlog.items),
        _GREW(growth=backlog.growth, seconds=seconds, rate=rate, fewest=fewest) if seconds else _NOT_SEEN(),
    ]
    facts += [_PUT_INTO(frames=putting)] if putting else []
    facts += [_TAKEN_FROM(frames=taking)] if taking else [_NOT_TAKEN_FROM()]
    facts += [_USED_BY(users=tuple(users[:6]))] if users else []
    others = [other for other in several if other is not backlog]
    facts += [_OTHER_GROWS(name=other.name, items=other.items) for other in others[:3]]
    consumer = _consumer(process, backlog)
    facts += [_CONSUMER_AT(frame=consumer)] if consumer is not None and not taking else []
    alone = _alone(backlog)
    facts += [_ALONE()] if alone else []
    mapping = _mapping(process, backlog)
    facts += [_MAPS(frame=mapping)] if mapping is not None else []
    places = [*([mapping] if mapping is not None else []), *_near(backlog.filled_at)[:3], *_near(backlog.made_at)[:2]]
    filled_here = mapping is not None or any(not is_library(f) for f in backlog.filled_at)
    places += [consumer] if consumer is not None and not filled_here else []
    return Match(
        confidence="possible" if alone or not seconds else "likely",
        summary=(_SUMMARY if seconds else _LONG)(
            kind=backlog.kind.rsplit(".", 1)[-1],
            name=backlog.name,
            items=backlog.items,
            put=_PUT(frames=putting) if putting else None,
            **({"rate": rate} if seconds else {}),
        ),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, frame) for frame in places or _frames(backlog)),
        pid=process.pid,
    )


def _consumer(process: Process, backlog: Backlog) -> Optional[PythonFrame]:
    """Return the program's line called by a thread of the library that keeps the queue; None if there is none."""
    for user in backlog.users:
        thread = next((t for t in process.threads if t.tid == user.tid and not t.is_main), None)
        frames = thread.python if thread is not None else ()
        own = next((f for f in frames if not is_library(f)), None)
        if own is not None and any(is_library(f) for f in frames[frames.index(own) + 1 :]):
            return own
    return None


def _mapping(process: Process, backlog: Backlog) -> Optional[PythonFrame]:
    """Return the program's line at which a thread is in an executor's ``map``, which submits all it is given; or None."""
    using = {user.tid for user in backlog.users}
    for thread in (t for t in process.threads if t.tid in using):
        at = next((number for number, f in enumerate(thread.python) if in_table(f, _MAP)), None)
        if at is not None:
            return own_frame(thread.python[at + 1 :])
    return None


def _near(frames: Tuple[PythonFrame, ...]) -> List[PythonFrame]:
    """Return the program's own places; a library's if there are none."""
    return [f for f in frames if not is_library(f)] or list(frames)


def _frames(backlog: Backlog) -> List[PythonFrame]:
    """Return the current lines of the queue's users, for a queue whose sources are unknown."""
    found = [own_frame([user.frame]) for user in backlog.users if user.frame is not None]
    return [frame for frame in dict.fromkeys(found) if frame is not None][:3]


def _users(view: View, process: Process, backlog: Backlog) -> List[Slot]:
    agents = [Agent(process.pid, user.tid, user.task) for user in backlog.users if user.tid or user.task]
    return [*dict.fromkeys(agents)] or [_FRAMES(count=len(backlog.users))]
