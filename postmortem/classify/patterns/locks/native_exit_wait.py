"""The interpreter has ended, but the process has not: a library waits in an exit handler or destructor.

**What it looks like.** The program has printed its last line, and the process stays, at 0 % CPU. The main thread has no Python
frame: it is below `exit`, `__run_exit_handlers` or `_dl_fini` (or below `Py_FinalizeEx`), in a library that joins a thread, takes
a mutex, or destroys a condition that another thread still waits on.

**Easily mistaken for** `shutdown-join`, where Python itself joins a thread, with `threading._shutdown` on the stack;
`missed-wakeup` and `fork-lost-thread`, where a library waits while the program runs; an interpreter that could not be read.

**Why it hangs.** Exit handlers run when no Python code can run any more. A thread that they wait for wants the GIL, which nobody
gives it now; or it was to be told to stop by an object that no longer exists; or it was not forked with the process.

**Remedy.** Close what the library started before the program ends: its `close()`, `shutdown()`, or a `with` block; else leave by
`os._exit` after all files have been flushed.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from ....evidence import NativeFrame, Process, Thread
from ....findings import Confidence, Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent, Edge
from ...facts import clauses, native
from ...facts.knowledge import own_frame
from ...facts.leaving import Leaving, hung, leaving
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="native-exit-wait",
    tier="exit",
    title="the interpreter has ended, and a library waits in an exit handler",
    explanation=(
        "The program's own code has finished and Python has ended, too. What still runs are exit handlers and destructors of "
        "native libraries, and one of these waits for something that nobody does any more."
    ),
    remedy=(
        "End what the library named here has started before the program ends: call its close(), stop() or shutdown(), or use it "
        "in a `with` block; do not leave it to a destructor or an exit handler. Let no daemon thread be inside of it at the end. "
        "Where nothing else helps, end by os._exit(status) after sys.stdout.flush()."
    ),
    needs=("cores",),
    references=(
        "https://man7.org/linux/man-pages/man3/exit.3.html",
        "https://docs.python.org/3/c-api/init.html#c.Py_FinalizeEx",
        "https://github.com/python/cpython/issues/87135",
    ),
)

#: What glibc's own names for its functions begin with.
_PREFIX = re.compile(r"^(__GI_)?_+")
#: Most waits shown of the chain behind the first one.
_SHOWN = 5

_ENDED = Template("the interpreter has ended, but {thread} waits in {place}, called by exit(){what}")
_ENDING = Template("the interpreter is ending, and {thread} waits in {place}, which that called{what}")
_FOR = Template(": it {verb} {what}")
_HANDLER = Template("an exit handler ({function} of the C library)")
_SOME_HANDLER = Template("an exit handler")
_IS_BELOW = Template("{thread} has no Python frame and is below {functions: < }: {ended}")
_NO_CODE = Template("no Python code of the process can run any more")
_LAST_CODE = Template("no Python code runs on it any more")
_LINK = Template("{waiter} {verb} {what}", link=True)
_INSIDE = Template("{thread} is in {place}")
_STILL = Template("{thread} still waits on that")
_CALLED_PYTHON = Template("{thread}, which {library} started or called, was in Python code, and that can never end now")
_HUNG = Template("{thread} wanted the GIL after the interpreter had ended, and is hung up for good")
_WAITS_AT = Template("{thread} is at {frame}")
_GOES_ON = Template("{thread}, which it waits for, was not waiting itself: it may still end")
_IN_TIME = Template("the wait has a time limit: it may be one turn of a loop")
_RUNS = Template("{thread} runs exit handlers, and does not wait")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process of which a thread runs exit handlers, or ends the interpreter."""
    for process in view.processes:
        for thread in process.threads if process.crash is None else ():
            found = leaving(thread)
            if found is None or not _is_python(process, thread):
                continue
            waits = thread.wait is not None and not thread.wait.over and not view.computes(thread)
            if not waits or view.moves(thread):
                yield No(_RUNS(thread=clauses.named(thread)))
            else:
                yield _match(view, process, thread, found)
            break


def _is_python(process: Process, thread: Thread) -> bool:
    """Return whether a process is an interpreter's, by what was read of it, or by the frames of the interpreter's program."""
    return process.python is not None or any(native.is_interpreter(f) for t in process.threads for f in t.native) or (
        process.exe is not None and native.is_interpreter(NativeFrame(None, process.exe, 0))
    )  # fmt: skip


def _match(view: View, process: Process, thread: Thread, found: Leaving) -> Match:
    agent, edge = Agent(process.pid, thread.tid), _wait(view, process, thread)
    chain = view.graph.chain(agent).edges
    behind = [t for e in (edge, *chain) if e is not None for t in _threads(view, process, e) if t is not thread]
    others = list({t.tid: t for t in behind}.values())
    return Match(
        confidence=_confidence(view, process, thread, others),
        summary=(_ENDED if found.ended else _ENDING)(
            thread=clauses.named(thread),
            place=_place(found),
            what=_FOR(verb=edge.verb, what=edge.what) if edge is not None else None,
        ),
        evidence=tuple(_facts(view, process, thread, found, others)),
        culprits=tuple(_culprits(view, process, thread, found, others)),
        victims=tuple(view.victim(process, t) for t in (thread, *others)),
        pid=process.pid,
    )


def _wait(view: View, process: Process, thread: Thread) -> Optional[Edge]:
    return next(iter(view.edges(process, thread)), None)


def _threads(view: View, process: Process, edge: Edge) -> List[Thread]:
    """Return the threads that an edge leads to: holders, joined threads, and who waits for the same object."""
    resource = view.graph.places.resource(process.pid, edge.resource)
    inside = resource.waiters if resource is not None else ()
    return view.threads(process, [w.tid for w in (*edge.named, edge.waiter) if w.tid is not None] + list(inside))


def _confidence(view: View, process: Process, thread: Thread, others: List[Thread]) -> Confidence:
    """Return *possible* if the wait or what it is for may end by itself, *proven* if nothing can end it."""
    agent = Agent(process.pid, thread.tid)
    if thread.wait is None or thread.wait.endless is False or (others and _goes_on(view, others) is not None):
        return "possible"
    return "proven" if view.graph.stuck(agent) == "proven" and _wait(view, process, thread) is not None else "likely"


def _goes_on(view: View, others: List[Thread]) -> Optional[Thread]:
    """Return a thread among those that are waited for that computes, moves, or waits for a limited time."""
    return next((t for t in others if not hung(t) and _may_end(view, t)), None)


def _may_end(view: View, thread: Thread) -> bool:
    return thread.wait is None or thread.wait.endless is False or view.moves(thread) or bool(view.computes(thread))


def _place(found: Leaving) -> Said:
    """Return the handler as a slot: its function and library."""
    handler = found.handler
    if handler is not None:
        return native.located(handler)
    outer = next((f for f in reversed(found.called) if f.function is not None), None)
    return _HANDLER(function=_PREFIX.sub("", outer.function or "")) if outer is not None else _SOME_HANDLER()


def _facts(view: View, process: Process, thread: Thread, found: Leaving, others: List[Thread]) -> Iterator[Said]:
    below = [f.function for f in thread.native[len(found.called) :] if f.function][:3]
    ended = (_NO_CODE if found.ended else _LAST_CODE)()
    yield _IS_BELOW(thread=clauses.named(thread), functions=tuple(below), ended=ended)
    for edge in view.graph.chain(Agent(process.pid, thread.tid)).edges[:_SHOWN]:
        yield _LINK(waiter=edge.waiter, verb=edge.verb, what=edge.what)
    calls = native.chain(found.called)
    if calls is not None:
        yield _INSIDE(thread=clauses.named(thread), place=calls)
    resource = thread.wait.resource if thread.wait is not None else None
    for other in others[:_SHOWN]:
        if resource is not None and other.wait is not None and other.wait.resource == resource:
            yield _STILL(thread=clauses.named(other))
        yield from _of_other(other)
    yield from _in_library(process, found, (thread, *others))
    moving = _goes_on(view, others)
    if moving is not None:
        yield _GOES_ON(thread=clauses.named(moving))
    if thread.wait is not None and thread.wait.endless is False:
        yield _IN_TIME()


def _in_library(process: Process, found: Leaving, told: Tuple[Thread, ...]) -> Iterator[Text]:
    """Yield a fact for each other thread of the handler's library that has called the interpreter."""
    handler = found.handler
    for one in process.threads if handler is not None else ():
        frames = native.frames_of(one, handler.module if handler is not None else None)
        if frames and one not in told and any(map(native.is_interpreter, one.native)):
            yield _CALLED_PYTHON(thread=clauses.named(one), library=native.library(frames[0]))


def _of_other(thread: Thread) -> Iterator[Text]:
    if hung(thread):
        yield _HUNG(thread=clauses.named(thread))
    frame, calls = own_frame(thread.python), native.chain(thread.native)
    if frame is not None:
        yield _WAITS_AT(thread=clauses.named(thread), frame=frame)
    elif calls is not None:
        yield _INSIDE(thread=clauses.named(thread), place=calls)


def _culprits(view: View, process: Process, thread: Thread, found: Leaving, others: List[Thread]) -> Iterator[Culprit]:
    """Yield lines of Python that are left on any of the threads, and the handler's C or C++ line, else its library."""
    for one in (thread, *others):
        frame = own_frame(one.python)
        if frame is not None:
            yield view.culprit(process, frame, one)
    handler = found.handler
    if handler is not None and handler.module is not None:
        line = native.culprit(process, thread, handler)
        yield line or Culprit(process.pid, thread.tid, None, handler.module, None, handler.function or "?")
