"""A reader waits for the end of a pipe, but the write end is still open in a process that will not write.

**What it looks like.** A thread is in `read` (`recv`, `communicate`, `for line in pipe`) without a timeout. The intended writer
has ended or closed its end; a copy of the write end is still open in the reader itself, in a daemon that its child left
behind, or in a process that was forked meanwhile. So it is with a connection that its server has closed, of which worker
processes, forked while it was open, have kept copies.

**Easily mistaken for** an idle worker, whose parent can still send something; `network-wait`; `child-wait`, where the child
that should write is still alive.

**Why it hangs.** A reader sees the end of a pipe only when the last write descriptor is closed, in whichever process it is.

**Remedy.** Close the write end in the process that reads, start daemons with their output elsewhere, and let children inherit
nothing (`close_fds=True`, which is the default of subprocess; `spawn` rather than `fork`).
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ....evidence import Process, Resource
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.ended import ended_children
from ...facts.ended import told as told_ends
from ...facts.forked import forked_at
from ...facts.knowledge import gets_item, in_table, own_frame
from ...facts.peers import answers_later, port_of
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from . import pipes
from .pipes import Holder, Waiter, behind, holders, only_reads, read_ends, waiters, waits_too
from .silentpeers import caught

PATTERN = Pattern(
    id="pipe-never-closed",
    tier="wait",
    title="waits for the end of a pipe whose write end is still open",
    explanation=(
        "A reader sees the end of a pipe only when the last write descriptor is closed, in whichever process it is. Here a copy "
        "is still open in a process that will not write to it."
    ),
    remedy=(
        "Close the write end in the reading process right after the fork, give daemons their own stdout and stderr "
        "(subprocess.DEVNULL, a file), and keep children from inheriting descriptors; or send a length or a sentinel."
    ),
    references=(
        "https://docs.python.org/3/library/multiprocessing.html#multiprocessing.Pipe",
        "https://man7.org/linux/man-pages/man7/pipe.7.html",
    ),
)

_REMEDY_FOR_OTHERS = Template(
    "Start daemons with stdout and stderr of their own (subprocess.DEVNULL, a file), and keep other children from inheriting "
    "the write end (close_fds=True, the spawn method); or read up to a length or a sentinel rather than to the end."
)
_SUMMARY = Template("{reader} waits{at} for the end of a pipe, which is still open for writing in {holders:; }")
_CONNECTION = Template(
    "{reader} waits{at} for the end of a connection that its server has closed; {heirs: and } inherited it when "
    "{count:v it was|they were} forked, and {count:v keeps|keep} it open"
)
_HEIRS = Template(
    "the process that listens at that port, and forked them, has it no more; none of them waits at a connection"
)
_REMEDY_FOR_CONNECTIONS = Template(
    "Start worker processes before the server accepts connections, or with the spawn or forkserver method; or close what they "
    "inherit at their start."
)
_HOLDER = Template("{name}, as {how: and }")
_ITSELF = Template("that process itself")
#: Collects all output of a program, until the end of file (Lib/subprocess.py).
_COMMUNICATES = (("/subprocess.py", "communicate"),)

_READS = Template("{reader} waits to read{at}: {pipe}")
_ORPHAN = Template("{program} is an orphan: the process that started it has ended")
_HANDLER_MAY_WRITE = Template("a signal handler of the program may write to it: a wake-up pipe looks like this")
_THREAD_MAY_WRITE = Template(
    "another thread of the process may write to it ({threads}): a wake-up pipe looks like this"
)
_LIBRARYS = Template(
    "{reader}, a thread of a library, reads a pipe that only its own process writes to: a wake-up pipe"
)
_GETS = Template("{reader} waits for an item of a multiprocessing.Queue, not for an end of file")
_FIFO = Template("{reader} reads a FIFO, which any process may open and write to")
_MAY_WRITE = Template("{reader} reads a pipe that {holder} may still write to")
_HOLDER_WORKS = Template("{reader} reads a pipe, and another process that holds its write end is at work")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each reader of a pipe."""
    talking = caught(view)
    for process in view.processes:
        yield from (_match(view, waiter, read_ends(waiter)) for waiter in _still_read(view, process))
        yield from _kept_connections(view, process)
        for waiter in (w for w in waiters(view, process) if w.agent not in talking):
            ends = read_ends(waiter)
            if any((pipe.key or "").startswith("fifo:") for pipe in ends):
                yield No(_FIFO(reader=waiter.who))
            elif gets_item(waiter.frames):
                yield No(_GETS(reader=waiter.who))
            elif _wakes_a_library(view, waiter, ends):
                yield No(_LIBRARYS(reader=waiter.who))
            elif ends and not view.idle(waiter.thread) and all(pipe.wakers for pipe in ends):
                yield next(filter(None, (_healthy(view, waiter, p) for p in ends)), None) or _match(view, waiter, ends)


def _wakes_a_library(view: View, waiter: Waiter, ends: List[Resource]) -> bool:
    """Return whether a library's own thread, without code of the program, reads a pipe that is its process's alone.

    So threads are woken that wait in poll or select: what nobody writes to such a pipe holds nothing up.
    """
    native = waiter.process.python is not None and waiter.task is None and not waiter.thread.python
    return native and bool(ends) and not any(_others(view, waiter, pipe) for pipe in ends)


def _others(view: View, waiter: Waiter, pipe: Resource) -> Tuple[Holder, ...]:
    """Return the other holders of the write end, except processes that all wait for this very pipe."""
    return tuple(h for h in holders(view, pipe) if h.pid != waiter.process.pid and not waits_too(view, h, pipe))


def _healthy(view: View, waiter: Waiter, pipe: Resource) -> Optional[No]:
    """Return why the pipe may still be written to; None if nothing shows that."""
    others = _others(view, waiter, pipe)
    reads = others and all(only_reads(view, other) for other in others)
    if view.graph.stuck(waiter.agent) == "proven" and (reads or not others):
        return None  # a ring of readers, each of which holds the write end of another's pipe
    if reads and ended_children(view, waiter.process):
        return None  # who should have written has ended, and its siblings inherited its end
    if _is_left_open(view, waiter, others):
        return None
    feeding = next((other for other in others if _may_write(view, waiter.process, pipe, other)), None)
    if feeding is not None:
        return No(_MAY_WRITE(reader=waiter.who, holder=feeding.name))
    if pipe.kind == "socket" and answers_later(view, waiter.process, pipe):
        return No(_MAY_WRITE(reader=waiter.who, holder=others[0].name if others else _ITSELF()))
    held = [
        view.by_pid[other.pid]
        for other in others
        if other.pid in view.by_pid and not pipes.left_behind(view, waiter.process, other)
    ]
    if any(view.moves(thread) for process in held for thread in process.threads):
        return No(_HOLDER_WORKS(reader=waiter.who))
    return None


def _kept_connections(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for each thread that reads from a connection which its server has closed, and forked processes have kept."""
    for waiter in waiters(view, process):
        wait = waiter.thread.wait
        reads = waiter.task is None and wait is not None and wait.endless is True and wait.syscall in pipes.READS
        heirs = _heirs(view, waiter.resource) if reads and waiter.resource.kind == "socket" else []
        if heirs:
            yield _connection(view, waiter, heirs)


def _connection(view: View, waiter: Waiter, heirs: List[Process]) -> Match:
    """Return the match of a connection that only forked processes keep open."""
    process, at = waiter.process, clauses.at(own_frame(waiter.frames))
    names = tuple(clauses.process(heir) for heir in heirs)
    mains = [(heir, main) for heir in heirs for main in [view.main(heir)] if main is not None]
    forks = [(heir, main, line) for heir, main in mains for line in [forked_at(main)] if line is not None]
    return Match(
        confidence="likely" if view.window is not None and view.matters(process, waiter.thread) else "possible",
        summary=_CONNECTION(reader=waiter.who, at=at, heirs=names[:3], count=len(names)),
        evidence=(
            _READS(reader=waiter.who, at=at, pipe=waiter.resource.description),
            *waiter.resource.because,
            _HEIRS(),
        ),
        culprits=(
            *(view.culprit(heir, line, main) for heir, main, line in forks[:1]),
            *pipes.culprits_of(view, waiter),
        ),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, waiter.thread.tid)),
        remedy=_REMEDY_FOR_CONNECTIONS(),
        pid=process.pid,
    )


def _heirs(view: View, socket: Resource) -> List[Process]:
    """Return the processes that have the other end of a connection, if they only inherited it; none if one may use it.

    Several have it, each forked by the process that listens at its port, and that one has it no more. What a server's own
    worker has accepted, that worker has alone.
    """
    pids = {waker.pid for waker in socket.wakers if waker.role == "end"}
    heirs = [view.by_pid[pid] for pid in sorted(pid or 0 for pid in pids) if pid in view.by_pid]
    server = view.by_pid.get(heirs[0].ppid or 0) if heirs else None
    if server is None or socket.accepted or not socket.closed or server.pid in pids:
        return []
    if not 1 < len(heirs) == len(pids):
        return []
    listens = port_of(socket.remote) in {str(port) for port in server.listening or ()}
    inherited = all(heir.ppid == server.pid and heir.forked for heir in heirs)
    threads = [thread for heir in heirs for thread in heir.threads]
    idle = all(view.rests(t) and t.wait is not None and t.wait.kind not in ("socket", "event-loop") for t in threads)
    return heirs if listens and inherited and idle else []


def _is_left_open(view: View, waiter: Waiter, others: Sequence[Holder]) -> bool:
    """Return whether a thread collects all output of a program that has ended, and what that had started keeps it open."""
    collects = any(in_table(frame, _COMMUNICATES) for frame in waiter.frames[:6])
    if not others or not collects or not ended_children(view, waiter.process):
        return False
    return not any(_is_child(view, waiter.process, other) for other in others)


def _still_read(view: View, process: Process) -> Iterator[Waiter]:
    """Yield the threads that get output now and then, and collect all of it until the end of file, which does not come."""
    resources = {resource.id: resource for resource in process.resources}
    for thread in process.threads if ended_children(view, process) else ():
        wanted = resources.get(thread.wait.resource or "") if thread.wait is not None else None
        if wanted is not None and thread.wait is not None and thread.wait.endless is True and view.moves(thread):
            waiter = Waiter(process, thread, None, wanted)
            others = tuple(other for pipe in read_ends(waiter) for other in _others(view, waiter, pipe))
            if _is_left_open(view, waiter, others):
                yield waiter


def _is_child(view: View, reader: Process, other: Holder) -> bool:
    """Return whether a holder is a process that the reader itself started, or one that was not captured."""
    process = view.by_pid.get(other.pid)
    return process is None or process.ppid == reader.pid


def _may_write(view: View, reader: Process, pipe: Resource, other: Holder) -> bool:
    """Return whether a holder has the write end on purpose.

    It is an ancestor or descendant of the reader, or its neighbour in a pipeline. An orphaned daemon, or a sibling that
    runs another program, inherited the descriptor by accident.
    """
    if other.pid in view.ancestors(reader):
        return True
    process = view.by_pid.get(other.pid)
    if process is None:  # a process that was not captured has inherited it, unless it gave the pipe to the reader
        return any(end.pid == reader.pid and end.fd == 0 for end in pipe.ends)
    if process.ppid == reader.ppid and process.ppid in view.by_pid:
        if _awaits_both(view, process, reader) or _is_fed_after(view, process, reader):
            return False
        return other.standard or process.argv == view.by_pid[process.ppid].argv
    return reader.pid in view.ancestors(process)


def _is_fed_after(view: View, holder: Process, reader: Process) -> bool:
    """Return whether a holder at rest reads what their common parent writes, and that waits until the reader has ended.

    It was forked while the parent had the other pipe's end open, and nobody has it on purpose.
    """
    parent, main = view.by_pid.get(reader.ppid or 0), view.main(holder)
    if parent is None or main is None or not all(map(view.rests, holder.threads)) or view.moves(main):
        return False
    wanted = main.wait.resource if main.wait is not None and main.wait.kind == "pipe" else None
    pipe = view.graph.places.resource(holder.pid, wanted)
    fed = pipe is not None and any(end.pid == parent.pid and "w" in end.mode for end in pipe.ends)
    return fed and _waits_for(view, parent, reader)


def _waits_for(view: View, parent: Process, child: Process) -> bool:
    """Return whether a thread of a process waits for the end of a child."""
    several = [view.graph.edges.get(Agent(parent.pid, thread.tid), ()) for thread in parent.threads]
    return any(edge.kind == "process" and Agent(child.pid) in edge.wakers for edges in several for edge in edges)


def _awaits_both(view: View, holder: Process, reader: Process) -> bool:
    """Return whether a holder is a worker at rest of a parent that waits for the reader to end."""
    parent = view.by_pid.get(reader.ppid) if reader.ppid is not None else None
    if parent is None or not any(holder.pid in pool.processes for pool in parent.pools):
        return False
    return _waits_for(view, parent, reader) and all(map(view.rests, holder.threads))


def _match(view: View, waiter: Waiter, ends: List[Resource]) -> Match:
    process, stuck = waiter.process, view.graph.stuck(waiter.agent)
    told = (
        waiter if own_frame(waiter.frames) else behind(view, process) or waiter
    )  # other programs than Python have no lines
    frame = own_frame(told.frames)
    at = clauses.at(frame) if told is waiter else None
    others = tuple(other for pipe in ends for other in _others(view, waiter, pipe))
    blamed: Dict[Text, List[Said]] = {}
    for other in others or [h for pipe in ends for h in holders(view, pipe)]:
        name = _ITSELF() if other.pid == process.pid else other.name
        blamed.setdefault(name, []).append(other.how)
    named = tuple(_HOLDER(name=name, how=tuple(how[:3])) for name, how in blamed.items())
    facts: List[Said] = []
    for pipe in ends:
        facts += [_READS(reader=waiter.who, at=at, pipe=pipe.description), *pipe.because]
    facts += [_ORPHAN(program=clauses.process(orphan)) for orphan in _orphans(view, others)]
    doubt = _doubt(process, others, stuck == "proven")
    if stuck == "proven" and doubt is None:
        facts += view.graph.reasons(waiter.agent)
    elif doubt is not None:
        facts.append(doubt)
    matters = frame is not None and view.matters(told.process, told.thread)
    died = ended_children(view, process) if others else ()
    facts += told_ends(view, died)
    sure = stuck == "proven" and doubt is None and all(only_reads(view, other) for other in others)
    sure = sure and not _circular(view, waiter, others)
    unknown = process.signal_handlers is None and not others and process.python is not None
    return Match(
        confidence="proven" if sure and not unknown else "likely" if matters and doubt is None else "possible",
        summary=_SUMMARY(reader=waiter.who, at=at, holders=named[:3]),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=pipes.culprits_of(view, told),
        remedy=_REMEDY_FOR_OTHERS() if others else None,
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, waiter.thread.tid)),
        pid=process.pid,
    )


def _circular(view: View, waiter: Waiter, others: Sequence[Holder]) -> bool:
    """Return whether holders of the write end wait for the reader's process in turn.

    Then it is not certain that they wait for an end of file rather than for a message.
    """
    behind = {agent.pid for agent in view.graph.behind(frozenset((waiter.agent, Agent(waiter.process.pid))))}
    return any(other.pid in behind and other.pid != waiter.process.pid for other in others)


def _orphans(view: View, others: Sequence[Holder]) -> List[Process]:
    """Return the holders whose parents are not among the captured processes."""
    found = [view.by_pid[pid] for pid in dict.fromkeys(other.pid for other in others) if pid in view.by_pid]
    return [process for process in found if process.ppid not in view.by_pid]


def _doubt(process: Process, others: Sequence[Holder], stuck: bool) -> Optional[Text]:
    """Return the innocent explanation of a write end held only by the reader's own process: a wake-up pipe; else None."""
    if others:
        return None
    if process.signal_handlers:
        return _HANDLER_MAY_WRITE()
    writers = tuple(thread.name or thread.tid for thread in process.threads if not thread.is_main)
    if writers and not stuck:
        return _THREAD_MAY_WRITE(threads=writers[:3])
    return None
