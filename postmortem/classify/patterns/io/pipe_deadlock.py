"""Two sides of a pipe wait for each other: one writes to a full pipe whose only reader waits for it, or all read first.

**What it looks like.** The child is in `write` on its stdout or stderr, a pipe that is full; the parent, which has the only
read end, is in `wait4` (`Popen.wait`), reads another pipe of the same child, or writes to the child's stdin. Or peers are all
in `recv`, each waiting for a message that another one would send. No CPU is used.

**Easily mistaken for** `child-wait`, where the child has work of its own to do; a slow reader, which reads again later.

**Why it hangs.** A pipe holds 64 KiB. When it is full, a writer waits until the other side reads, and here the reader waits for
the writer.

**Remedy.** Read while waiting: `communicate()`, `subprocess.run(capture_output=True)`, a thread for each pipe, a file, or
DEVNULL.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Optional, Tuple

from ....evidence import Process, Resource, Thread
from ....findings import Template
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import FEEDS, in_table, own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from ...roots.rest import in_request
from .pipes import Waiter, drained, holders, inherited, waiters, waiters_of_unknown, writes
from .silentpeers import all_by_network, circles, told

PATTERN = Pattern(
    id="pipe-deadlock",
    tier="resource",
    passing=True,
    title="two sides of a pipe or socket wait for each other",
    explanation=(
        "A pipe holds a limited number of bytes: a writer waits while it is full, and a reader while it is empty. Here the "
        "process on the other side waits, too: for the writer to end, for other output of it, or itself for a message."
    ),
    remedy=(
        "Read the output while waiting: Popen.communicate() or subprocess.run(capture_output=True); otherwise a thread for each "
        "pipe, a file, or subprocess.DEVNULL. With both stdin and stdout as pipes, never write everything before reading."
    ),
    references=("https://docs.python.org/3/library/subprocess.html#subprocess.Popen.wait",),
)

_UNKNOWN = Resource("unknown", "pipe", "a descriptor without recorded details")  # the target of a write in a lone core

_SUMMARY = Template("{waiter} waits{at} for {writer}, which cannot continue until the waiting process reads {written}")
_FULL_PIPE = Template("the full pipe between them")
_OUTPUT = Template("the output written to the terminal")
_ONLY_READER = Template("{writer} writes to a full pipe that only its own process could read")
_OUTSIDE = Template(
    "{writer} cannot go on writing{at}: its pipe is full, and what could read it was not captured: {readers: and }"
)
_READERS_UNKNOWN = Template(
    "which process reads what a thread writes: only a capture of the running process shows that"
)
_FEEDER = Template("{writer} is the feeder of a multiprocessing queue: see mp-join-before-drain")
_BETWEEN = Template(
    "{writer} waits{at} until {reader} of the same process reads the full pipe, and that thread waits for {what}, which the "
    "writer does not give back before"
)
_READER_WAITS = Template("{reader}, which reads it, waits{at} for {what}")
_FREE_READER = Template("{writer} waits for a reader that does not wait for it: {readers}")
_SOMEBODY = Template("an unknown process")
_WAITS_FOR = Template("{writer} waits for {pipe}")
_WRITES = Template("{writer} is in {call} on {pipe}{full}")
_HOLDS = Template(", which holds {bytes} of {limit} bytes")
_WAITS_BACK = Template("{waiter}{at} waits for {what}, without a time limit")
_LOOP_IGNORES = Template(
    "its event loop does not watch that pipe: it stops reading when the program does not take what it has read"
)
_NO_OTHER_READS = Template("{program} has {count:n other thread}, which {count:v does|do} not read it now")


def match(view: View) -> Iterator[Answer]:
    """Yield answers for cycles of readers, and for writers to full pipes."""
    if any(writes(w) for p in view.processes for w in waiters_of_unknown(view, p, _UNKNOWN)):
        yield CannotTell((_READERS_UNKNOWN(),))
    yield from (told(view, circle) for circle in circles(view) if not all_by_network(circle))
    waiting: Dict[int, List[Waiter]] = {p.pid: list(waiters(view, p)) for p in view.processes}
    pairs: List[FrozenSet[int]] = []
    found = [
        (w, back) for p in view.processes for w in waiting[p.pid] if writes(w) for back in [_back(view, waiting, w)]
    ]
    for writer, back in sorted(found, key=lambda pair: _rank(*pair)):
        pids, inside = _readers(writer), _readers_inside(view, writer)
        waits = view.waits_on(writer.process, writer.thread.tid) if inside else []
        stuck = next((t for t in inside if t in waits and t is not writer.thread and not view.moves(t)), None)
        if _feeds(writer):
            yield No(_FEEDER(writer=writer.who))
        elif stuck is not None:
            yield _between_threads(view, writer, stuck)
        elif inside:
            yield No(_FREE_READER(writer=writer.who, readers=(clauses.named(inside[0]),)))
        elif back is None and pids and not set(pids) & view.by_pid.keys():
            yield _outside(view, writer)
        elif back is None:
            readers = tuple(clauses.process(view.by_pid[pid]) for pid in pids if pid in view.by_pid)
            yield No(_FREE_READER(writer=writer.who, readers=readers or _SOMEBODY()))
        elif frozenset((writer.process.pid, back.process.pid)) not in pairs:
            pairs.append(frozenset((writer.process.pid, back.process.pid)))
            yield _match(view, writer, back)


def _readers(writer: Waiter) -> Tuple[int, ...]:
    """Return the processes that could read; the writer's own only if there is no other."""
    pids = tuple(dict.fromkeys(waker.pid for waker in writer.resource.wakers if waker.pid is not None))
    return tuple(pid for pid in pids if pid != writer.process.pid) or pids


def _readers_inside(view: View, writer: Waiter) -> List[Thread]:
    """Return the threads of the writer's own process that read the pipe, if the others only inherited the read end.

    An inherited end has the same number as in the writer's process; [] if no thread is known to read it.
    """
    process, pipe = writer.process, writer.resource
    tids = [w.tid for w in pipe.wakers if w.pid in (None, process.pid) and w.tid is not None]
    others = [w.pid for w in pipe.wakers if w.pid not in (None, process.pid)]
    if not tids or not all(inherited(view, pipe, -1, pid) for pid in others if pid is not None):
        return []
    found = (view.thread(process, tid) for tid in tids)
    return [thread for thread in found if thread is not None and thread is not writer.thread]


def _between_threads(view: View, writer: Waiter, reader: Thread) -> Match:
    """Return the match of a writer whose only reader, a thread of the same process, waits for it."""
    agent, at = Agent(writer.process.pid, reader.tid), clauses.at(own_frame(writer.frames))
    edge = next(iter(view.edges(writer.process, reader)), None)
    basis = next((w.basis for w in writer.resource.wakers if w.tid == reader.tid), "inferred")
    sure = basis != "inferred" and view.graph.stuck(writer.agent) == "proven"
    told = edge.what if edge is not None else None
    return Match(
        confidence="proven" if sure else "likely",
        summary=_BETWEEN(writer=writer.who, at=at, reader=clauses.named(reader), what=told),
        evidence=(
            _WRITES(writer=writer.who, call=writer.call, pipe=writer.resource.description, full=None),
            _READER_WAITS(reader=agent, at=clauses.at(next(iter(reader.python), None)), what=told),
            *writer.resource.because,
        ),
        culprits=writer.culprits(view),
        victims=(view.victim(writer.process, reader),),
        pid=writer.process.pid,
    )


def _feeds(writer: Waiter) -> bool:
    return any(in_table(f, FEEDS) for f in writer.frames)


def _rank(writer: Waiter, back: Optional[Waiter]) -> Tuple[bool, bool]:
    """Return the sort key: of two processes that write to each other, the child's side is reported."""
    return back is None, back is not None and writer.process.ppid != back.process.pid


def _back(view: View, waiting: Dict[int, List[Waiter]], writer: Waiter) -> Optional[Waiter]:
    """Return the waiter in the only reader's process that waits for the writer, directly or through others.

    None if there is none, or another thread or loop of that process drains the pipe.
    """
    readers = _readers(writer)
    reader = view.by_pid.get(readers[0]) if len(readers) == 1 else None
    if reader is None:
        return None
    if reader is writer.process:
        return writer if len(reader.threads) == 1 or view.graph.stuck(writer.agent) else None
    if drained(reader, waiting[reader.pid], writer.resource):
        return None
    wanted, reached = [writer.process.pid], {writer.process.pid}
    while wanted:
        pid = wanted.pop(0)
        for other in (w for several in waiting.values() for w in several):
            if not _waits_for(other, view.by_pid[pid]):
                continue
            if other.process is reader and (other.task or _has_to_go_on(view, other)):
                return other
            if other.process.pid not in reached:
                reached.add(other.process.pid)
                wanted.append(other.process.pid)
    return None


def _has_to_go_on(view: View, waiter: Waiter) -> bool:
    """Return whether the main thread, a thread that it waits for, or a request waits."""
    return view.matters(waiter.process, waiter.thread) or in_request(waiter.thread)


def _waits_for(waiter: Waiter, other: Process) -> bool:
    if waiter.task is not None and waiter.resource.kind == "process":
        return other.ppid == waiter.process.pid
    return waiter.process is not other and any(waker.pid == other.pid for waker in waiter.resource.wakers)


def _outside(view: View, writer: Waiter) -> Match:
    """Return the match for a reader that was not captured, so that it is unknown whether it waits for the writer."""
    pipe, at = writer.resource, clauses.at(own_frame(writer.frames))
    readers = tuple(holder.name for holder in holders(view, pipe)[:3])
    return Match(
        confidence="possible",
        summary=_OUTSIDE(writer=writer.who, at=at, readers=readers),
        evidence=(_WAITS_FOR(writer=writer.who, pipe=pipe.description), *pipe.because),
        culprits=writer.culprits(view),
        pid=writer.process.pid,
    )


def _match(view: View, writer: Waiter, back: Waiter) -> Match:
    pipe, stuck = writer.resource, view.graph.stuck(writer.agent)
    frame, writes_at = own_frame(back.frames), own_frame(writer.frames)
    at = clauses.at(frame)
    full = _HOLDS(bytes=pipe.value, limit=pipe.limit) if pipe.value is not None and pipe.limit else None
    facts: List[Said] = [_WRITES(writer=writer.who, call=writer.call, pipe=pipe.description, full=full), *pipe.because]
    if stuck == "proven":
        facts += view.graph.reasons(writer.agent)
    else:
        facts.append(_WAITS_BACK(waiter=back.who, at=at, what=back.resource.description))
    if back.task is not None:
        facts.append(_LOOP_IGNORES())
    elif stuck != "proven" and len(back.process.threads) > 1:
        facts.append(_NO_OTHER_READS(count=len(back.process.threads) - 1, program=clauses.process(back.process)))
    # another thread that moves may read the pipe later; one that moved while the writer slept all through the window does not
    asleep = bool(view.window) and view.switches(writer.thread) == 0
    others = [t for t in back.process.threads if t is not back.thread and t.python and view.moves(t) and not asleep]
    others += (reading := who_comes_to(view, back.process, "reads", back.thread, writer.thread))
    facts += later("reads", reading)
    own, both = back is writer, back.task is None and writes(back) and back is not writer
    written = _FULL_PIPE() if pipe.kind != "terminal" else _OUTPUT()
    summary = _SUMMARY(waiter=back.who, at=at, writer=clauses.process(writer.process), written=written)
    return Match(
        confidence="proven" if stuck == "proven" else "possible" if others else "likely",
        summary=_ONLY_READER(writer=writer.who) if own else summary,
        evidence=tuple(dict.fromkeys(facts)),
        culprits=back.culprits(view) + (writer.culprits(view) if both or frame is None else ()),
        victims=() if own or writes_at is None else (view.victim(writer.process, writer.thread),),
        pid=back.process.pid,
    )
