"""The interpreter has finished, but joins a thread or executor that never ends.

**What it looks like.** The main thread is in `threading._shutdown` (or an executor's `_python_exit` below it): the program
is over, and the interpreter waits for a thread that is not a daemon.

**Easily mistaken for** `child-wait`; a program that is still at work, such as a thread that works off its queue.

**Why it hangs.** Python joins every non-daemon thread before it exits, and every worker of an executor. One of these waits for
something that will never come, because the code that would have sent it has ended.

**Remedy.** Tell the thread to end (a sentinel, an Event) before the program does, or make it a daemon.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from .... import sourcepaths
from ....evidence import Process, PythonFrame, Thread
from ....evidence.vocabulary import WaitKind
from ....findings import Template
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses, knowledge
from ...facts.knowledge import own_frame
from ...facts.peers import goes_on_soon
from ...facts.view import View, is_python
from ...pattern import Answer, Match, Pattern
from ...roots.walk import follow
from ...roots.works import works

PATTERN = Pattern(
    id="shutdown-join",
    tier="exit",
    title="the interpreter is shutting down, but joins a thread that never ends",
    explanation=(
        "The program's own code has finished. Before the interpreter exits it waits for every thread that is not a daemon "
        "and for the workers of executors; one of these does not end."
    ),
    remedy=(
        "Ask the thread to stop before the program ends: put a sentinel into its queue, set an Event that it checks, shut "
        "the executor down; make it a daemon only if it may be cut off at any point."
    ),
    needs=("python",),
    references=("https://docs.python.org/3/library/threading.html#thread-objects",),
)


#: Patterns that explain why the joined thread does not end.
_CAUSES = (
    "lock-order-deadlock", "self-deadlock", "finalizer-deadlock", "python-busy-loop", "sleeping", "network-wait", "missed-wakeup",
    "orphaned-lock", "executor-self-deadlock", "pipe-deadlock", "pipe-never-closed", "native-lock-gil-inversion",
)  # fmt: skip

#: Triggers of a capture because a program had not ended in time.
_OVERDUE = ("timeout", "stall")

_SUMMARY = Template("the program has ended, but {thread} has not: it {doing}{at}")
_IS_OVER = Template(
    "{main} is in {function} of {file}, called by the interpreter itself: the program's own code has ended"
)
_WAITS_FOR = Template("it waits for {thread}, which {why}; that thread {doing}{at}")
_NO_DAEMON = Template("is not a daemon")
_NEEDED = Template("has to end first")
_KEEP_ALIVE = Template("{count:n thread} {count:v keep} the process alive: {threads}")
_RUNS = Template("runs")
_IS_IN = Template("is in {call}")
_IS_WAITING = Template("waits{what:+ (@)}")
#: What a thread does, by the kind of its wait, if nothing more precise is known.
_WAITS: Dict[WaitKind, Template] = {
    "lock": Template("waits for a lock"),
    "rlock": Template("waits for a lock"),
    "condition": Template("waits to be notified"),
    "sleep": Template("sleeps"),
    "socket": Template("waits for the network"),
    "event-loop": Template("runs an idle event loop"),
    "pipe": Template("waits for a pipe"),
    "gil": Template("wants the GIL"),
}


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each process whose main thread joins another thread at interpreter shutdown."""
    for process in view.pythons:
        main = view.main(process)
        if main is None or not _at_exit(main):
            continue
        joined = _joined(view, process, main)
        if joined:
            yield _match(view, process, main, joined)


def _at_exit(main: Thread) -> bool:
    """Return whether the main thread is in interpreter shutdown, or joins a thread in an atexit callback.

    The outermost frame of an atexit callback is not a module.
    """
    if any(knowledge.in_table(f, knowledge.EXIT) for f in main.python):
        return True
    if main.joins is None or not main.python:
        return False
    return main.python[-1].function not in ("<module>", "_run_module_as_main", "_bootstrap")


def _joined(view: View, process: Process, main: Thread) -> List[Thread]:
    """Return the joined thread; if unknown, every non-daemon thread.

    The feeder thread of a multiprocessing queue is left out: the reader of its pipe is to blame.
    """
    known = view.thread(process, main.joins)
    if known is not None:
        return [] if any(knowledge.in_table(f, knowledge.FEEDS) for f in known.python) else [known]
    return [t for t in process.threads if t.python and not t.is_main and t.daemon is not True]


def _match(view: View, process: Process, main: Thread, joined: List[Thread]) -> Match:
    thread = next((t for t in joined if own_frame(t.python)), joined[0])
    frame = _place(thread)
    name, doing, at = clauses.named(thread), _doing(thread), clauses.at(frame)
    woken = view.moves(thread) and not _ends(thread)  # other code gives it work
    working = not view.rests(thread) or woken or (_ends(thread) and not _in_loop(view, thread))
    working = working or _opens(view, Agent(process.pid, thread.tid)) or _serves(process)
    working = working or _works_off(process, thread) or _is_served(view, Agent(process.pid, thread.tid))
    # a library's helper serves the program, which is over and should have ended by now
    helps = _is_librarys(thread) and view.rests(thread) and not works(view, thread)
    working = working and not (helps and view.evidence.trigger.kind in _OVERDUE)
    agents = [Agent(process.pid, t.tid) for t in joined]
    stuck = any(view.graph.stuck(agent) == "proven" for agent in agents)
    outermost, why = main.python[-1], _NO_DAEMON() if thread.daemon is False else _NEEDED()
    file = outermost.file.rsplit("/", 1)[-1]
    facts: List[Said] = [
        _IS_OVER(main=clauses.named(main), function=outermost.function, file=file),
        _WAITS_FOR(thread=name, why=why, doing=doing, at=at),
    ]
    if len(joined) > 1:
        facts.append(_KEEP_ALIVE(count=len(joined), threads=tuple(map(clauses.named, joined[:5]))))
    if stuck:
        facts += view.graph.reasons(*agents)
    return Match(
        confidence="possible" if working else "proven" if stuck else "likely",
        summary=_SUMMARY(thread=name, doing=doing, at=at),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, t) for t in joined[:5] for f in [_place(t)] if f),
        victims=(view.victim(process, main),),
        because_of=_CAUSES,
        pid=process.pid,
    )


def _is_librarys(thread: Thread) -> bool:
    """Return whether an installed package started a thread, in which no code of the program or of its server runs.

    A server that the program itself runs in a thread of its own begins in the standard library, or in the program's function.
    """
    begun = [f for f in thread.python if not f.file.endswith("/threading.py")]
    outermost = begun[-1] if begun else None
    installed = outermost is not None and sourcepaths.package(outermost.file) is not None
    return thread.daemon is False and installed and all(map(knowledge.is_library, thread.python))


def _serves(process: Process) -> bool:
    """Return whether a thread waits for connections: the main function of many servers only starts them."""
    return any(
        t.wait is not None
        and (t.wait.syscall in ("accept", "accept4") or (t.wait.kind == "event-loop" and bool(process.listening)))
        for t in process.threads
    )


def _ends(thread: Thread) -> bool:
    """Return whether a thread's wait has a timeout."""
    return thread.wait is not None and thread.wait.endless is False


def _works_off(process: Process, thread: Thread) -> bool:
    """Return whether a thread uses a queue that becomes shorter: it may end when that is empty."""
    mine = (b for b in process.backlogs if any(user.tid == thread.tid for user in b.users))
    return any((backlog.growth or 0) < 0 for backlog in mine)


def _is_served(view: View, agent: Agent) -> bool:
    """Return whether code that ends an agent's wait, or one further along its chain, is at work, or goes on soon."""
    edge = follow(view, agent).edge
    return edge is not None and any(goes_on_soon(view, waker) for waker in edge.wakers if not waker.is_process)


def _opens(view: View, agent: Agent) -> bool:
    """Return whether a wait further along an agent's chain has a timeout, so that its own may end as well.

    The timers of a server that is no Python program wake it for its own housekeeping.
    """
    edges = (edge for edge in view.graph.chain(agent).edges[1:] if is_python(view.by_pid[edge.waiter.pid]))
    return any(edge.endless is False for edge in edges)


def _in_loop(view: View, thread: Thread) -> bool:
    """Return whether a thread is inside a loop that need not end: a heartbeat that sleeps a second at a time never does.

    A `for` ends with its items, and a library's retries after some time. A loop whose header is not known may be any.
    """
    own = [frame for frame in thread.python if not knowledge.is_library(frame)]
    own = own or [frame for frame in thread.python if not knowledge.is_stdlib(frame)]
    headers = [header for frame in own for header in view.loops_around([frame])[1:]]
    texts = [(view.evidence.source(header.file, header.line) or "").lstrip() for header in headers]
    here = ((view.evidence.source(frame.file, frame.line) or "").lstrip() for frame in own)
    return any(not text.startswith("for ") for text in texts) or any(text.startswith("while ") for text in here)


def _place(thread: Thread) -> Optional[PythonFrame]:
    return own_frame(thread.python)


def _doing(thread: Thread) -> Said:
    wait = thread.wait
    if wait is None:
        return _RUNS()
    if wait.verb == "call":
        return _IS_IN(call=wait.phrase)
    if wait.verb is not None and wait.phrase:
        return wait.phrase
    told = _WAITS.get(wait.kind)
    if told is not None:
        return told()
    return _IS_IN(call=wait.syscall) if wait.syscall and not wait.phrase else _IS_WAITING(what=wait.phrase)
