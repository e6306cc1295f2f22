"""A process is joined before the queue that it has filled is emptied.

**What it looks like.** The parent waits in `Process.join`; the child has come to its end, where it joins the feeder thread of a
`multiprocessing.Queue`; that thread writes into the queue's full pipe. Or a process is at its own end, and no other one has the
read end of the pipe any more.

**Easily mistaken for** `child-wait`; `shutdown-join`, which is what the child alone shows.

**Why it hangs.** Items put into a Queue stay in the child until its feeder thread has written them to a pipe of 64 KB, and the
child does not end before. The process that would read them waits for the child to end.

**Remedy.** Get all items first, then join.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Optional, Tuple

from ....evidence import Process, Resource, Thread
from ....findings import Template, Text
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import is_library, multiprocessing, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, Pattern

PATTERN = Pattern(
    id="mp-join-before-drain",
    tier="specific",
    passing=True,
    title="a process is joined before its queue is emptied",
    explanation=(
        "The child has put more into the queue than its pipe can hold, and does not end before all of it is written. The "
        "parent, which should read it, waits for the child to end."
    ),
    remedy=(
        "Take everything out of the queue before join(): one item for each job, or until a sentinel arrives. If the items are "
        "not wanted, call cancel_join_thread() on the queue in the child."
    ),
    needs=("python", "cores"),
    references=(
        "https://docs.python.org/3/library/multiprocessing.html#pipes-and-queues",
        "https://docs.python.org/3/library/multiprocessing.html#programming-guidelines",
    ),
)

#: End of the name of the queues that have a feeder thread.
_QUEUE = "queues.Queue"
_QUEUES, _PROCESS = multiprocessing("queues"), multiprocessing("process")

_SUMMARY = Template(
    "{thread} of process {pid} joins its child {child}{at}, but the child cannot end: what it has put into a queue does not "
    "fit into the pipe, and no process reads it"
)
_ITSELF = Template(
    "{thread} of process {pid} joins the feeder thread of a multiprocessing queue before the process ends, but what was put into "
    "the queue does not fit into the pipe, and no process reads it"
)
_BACKLOG = Template("{items:,} items are still in {name}")
_ITS_REMEDY = Template(
    "Before the process ends, empty the queue, or give up what is in it: Queue.cancel_join_thread(). Bound the queue, so that "
    "put() waits while nobody takes from it."
)
_WAITS = Template("{thread} waits{at} for process {child} to end")
_CHILD_ENDS = Template(
    "process {child} waits for the feeder thread of a multiprocessing queue, as it does when it ends"
)
_TURN = Template("{feeder} of process {child} waits for the queue's lock for writing, which process {writer} holds")
_IS_FULL = Template("{writer} of process {pid} is blocked writing to {pipe}: it is full")
_THE_PIPE = Template("the {pipe}")
_A_PIPE = Template("a pipe")
_READERS = Template("its read end is held by process {pids: and process }{filled}")
_FILLED = Template("; {value} of {limit} bytes are in it")


class _Feeder(NamedTuple):
    """The feeder thread of a queue, and the thread that writes to its pipe now, perhaps in another process."""

    thread: Thread
    process: Process  # the writer's process
    writer: Thread


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each thread that joins a child whose feeder thread cannot write."""
    for process in view.pythons:
        for thread in process.threads:
            child = _joined(view, thread)
            feeder = _feeder(view, child) if child is not None and _ends(child) else None
            if child is not None and feeder is not None and not view.moves(feeder.writer):
                yield _match(view, process, thread, child, feeder)
        yield from _at_its_own_end(view, process)


def _at_its_own_end(view: View, process: Process) -> Iterator[Match]:
    """Yield the match of a process that ends, and whose feeder thread cannot write to a pipe that only itself could read.

    None if a process that joins it is told.
    """
    main, feeder = view.main(process), _feeder(view, process) if _ends(process) else None
    joined = any(_joined(view, thread) is process for one in view.pythons for thread in one.threads)
    if main is None or feeder is None or joined or view.moves(feeder.writer) or feeder.process is not process:
        return
    pipe = _pipe(feeder)
    if pipe is None or {end.pid for end in pipe.ends if "r" in end.mode} != {process.pid}:
        return  # another process may read
    backlog = next((b for b in process.backlogs if b.kind.endswith(_QUEUE)), None)
    places = [f for f in (*backlog.filled_at, *backlog.made_at) if not is_library(f)] if backlog is not None else []
    full = _THE_PIPE(pipe=pipe.description)
    yield Match(
        confidence="likely",
        summary=_ITSELF(thread=clauses.named(main), pid=process.pid),
        evidence=(
            _IS_FULL(writer=clauses.named(feeder.writer), pid=process.pid, pipe=full),
            *_readers(pipe),
            *((_BACKLOG(name=backlog.name, items=backlog.items),) if backlog is not None else ()),
        ),
        culprits=tuple(view.culprit(process, frame) for frame in dict.fromkeys(places)),
        victims=(view.victim(process, main),),
        pid=process.pid,
        remedy=_ITS_REMEDY(),
    )


def _joined(view: View, thread: Thread) -> Optional[Process]:
    """Return the child that a thread joins without a timeout; None if it joins none."""
    wait = thread.wait
    if wait is None or wait.pid is None or wait.endless is False:
        return None
    joins = any(f.function == "join" and f.file.endswith(_PROCESS) for f in thread.python[:8])
    return view.by_pid.get(wait.pid) if joins else None


def _feeder(view: View, child: Process) -> Optional[_Feeder]:
    """Return the child's blocked feeder thread with the thread that blocks the pipe; None if there is none."""
    for thread in child.threads:
        if not _feeds(thread) or thread.wait is None:
            continue
        if _writes(thread):
            return _Feeder(thread, child, thread)
        lock = next((r for r in child.resources if r.id == thread.wait.resource), None)
        if lock is None or lock.kind != "shared-semaphore":
            continue
        other = view.by_pid.get(lock.owner_pid or child.pid)
        writer = view.thread(other, lock.owner_tid) if other is not None else None
        if other is not None and writer is not None and _feeds(writer) and _writes(writer):
            return _Feeder(thread, other, writer)
    return None


def _feeds(thread: Thread) -> bool:
    return any(f.function == "_feed" and f.file.endswith(_QUEUES) for f in thread.python)


def _writes(thread: Thread) -> bool:
    return thread.wait is not None and thread.wait.syscall in ("write", "writev")


def _ends(child: Process) -> bool:
    """Return whether the process waits for its feeder thread, as it does when it ends."""
    main = next((t for t in child.threads if t.is_main), None)
    return main is not None and any(
        f.function in ("_finalize_join", "join_thread") and f.file.endswith(_QUEUES) for f in main.python[:8]
    )


def _match(view: View, process: Process, thread: Thread, child: Process, feeder: _Feeder) -> Match:
    graph, agent = view.graph, Agent(process.pid, thread.tid)
    frame = own_frame(thread.python)
    who, at, pipe = clauses.named(thread), clauses.at(frame), _pipe(feeder)
    proven = graph.stuck(agent) == "proven"
    reading = who_comes_to(view, process, "reads", thread)
    turn = _TURN(feeder=clauses.named(feeder.thread), child=child.pid, writer=feeder.process.pid)
    writer, full = clauses.named(feeder.writer), _THE_PIPE(pipe=pipe.description) if pipe is not None else _A_PIPE()
    return Match(
        confidence="proven" if proven else "possible" if reading else "likely",
        summary=_SUMMARY(thread=who, pid=process.pid, child=child.pid, at=at),
        evidence=(
            _WAITS(thread=who, at=at, child=child.pid),
            _CHILD_ENDS(child=child.pid),
            *((turn,) if feeder.writer is not feeder.thread else ()),
            _IS_FULL(writer=writer, pid=feeder.process.pid, pipe=full),
            *_readers(pipe),
            *(graph.reasons(agent) if proven else later("reads", reading)),
        ),
        culprits=(view.culprit(process, frame, thread),) if frame else (),
        victims=(view.victim(process, thread),),
        pid=process.pid,
    )


def _pipe(feeder: _Feeder) -> Optional[Resource]:
    wanted = feeder.writer.wait.resource if feeder.writer.wait is not None else None
    return next((r for r in feeder.process.resources if r.id == wanted), None)


def _readers(pipe: Optional[Resource]) -> Tuple[Text, ...]:
    if pipe is None or not pipe.ends:
        return ()
    pids = tuple(sorted({end.pid for end in pipe.ends if "r" in end.mode}))
    filled = _FILLED(value=pipe.value, limit=pipe.limit) if pipe.value is not None and pipe.limit else None
    return (_READERS(pids=pids, filled=filled),)
