"""One thread holds a lock of native code and wants the GIL; another one holds the GIL and wants that lock.

**What it looks like.** Every Python thread waits for the GIL, at 0 % CPU, and the thread that holds the GIL sleeps in
native code: in `pthread_mutex_lock`, in `__cxa_guard_acquire` (a C++ static that is being initialised), in
`pthread_join`. The holder of that lock is one of the threads that wait for the GIL.

**Easily mistaken for** `gil-held-by-native`, where native code computes, or waits for something outside; a crowd in
`take_gil`, which is `gil-contention`.

**Why it hangs.** Two locks are acquired in two orders, and one of them is the GIL. Native code that calls back into Python
may release the GIL and acquire it again, all the while holding its own lock.

**Remedy.** Never wait for a native lock while holding the GIL: release the GIL first, and acquire it again once the native
lock is held.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional, Tuple

from ....evidence import NativeFrame, Process, PythonFrame, Thread
from ....evidence.vocabulary import ResourceKind
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Cycle
from ...facts import clauses, native
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="native-lock-gil-inversion",
    tier="specific",
    title="a native lock and the GIL are acquired in two orders",
    explanation=(
        "One thread holds a lock inside native code (a mutex, the guard of a C++ static, a thread that is joined) and needs "
        "the GIL to go on; another thread holds the GIL and sleeps until it gets that native lock. Neither can ever "
        "release what it holds, and without the GIL no other Python thread can run either."
    ),
    remedy=(
        "Release the GIL before waiting for the native lock (Py_BEGIN_ALLOW_THREADS, py::gil_scoped_release, `with nogil`) "
        "and do not call into Python while holding it; for C++ statics use pybind11's gil_safe_call_once_and_store, or "
        "initialise them when the module is imported."
    ),
    needs=("python", "cores"),
    references=(
        "https://docs.python.org/3/c-api/init.html#thread-state-and-the-global-interpreter-lock",
        "https://github.com/pybind/pybind11/pull/4877",
    ),
)  # fmt: skip

#: Kinds that make a cycle one of Python locks.
_PYTHON_LOCKS: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "condition", "semaphore", "shared-semaphore", "file-lock", "import-lock")
)

_SUMMARY = Template("{holder} holds the GIL and {waits} {what}; that wait cannot end before {waiter} gets the GIL")
_WAITS_FOR_END = Template("waits for the end of")
_WANTS = Template("wants")
_NO_INVERSION = Template("the holder of the GIL of process {pid} waits for no thread that wants it")
_JOINS = Template("{waiter}{place} waits in native code for {owner} to end")
_HELD = Template("{waiter}{place} wants {what}, held by {owner} ({basis:known})")
_PLACE = Template("{at}{inside}")
_INSIDE = Template(", inside {code}{called},")
_CALLED = Template(", called at {frame}")
_SLEEPS_INSIDE = Template(
    "{holder} holds the GIL and waits in {library}{at}; {inside} is inside that library, too, which has called Python code, "
    "and cannot leave it before it gets the GIL"
)
_HOLDS_AND_SLEEPS = Template("{holder} holds the GIL and sleeps in {library}, for something that records no owner")
_CALLED_BACK = Template(
    "{inside} wants the GIL for Python code that {library} has called{at}; no other thread that waits for the GIL is inside it"
)
_BEHIND = Template("{count:n other thread} {count:v want} the GIL")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each wait-for cycle of the GIL and native locks."""
    cycles = [cycle for cycle in view.graph.cycles if _is_inversion(cycle)]
    for cycle in cycles:
        process = view.by_pid[cycle.edges[0].waiter.pid]
        yield _match(view, process, cycle)
    for process in view.pythons if not cycles else ():
        inside = _inside_too(view, process)
        if inside is not None:
            yield _without_owner(view, process, *inside)
        elif any(thread.gil == "waits" for thread in process.threads):
            yield No(_NO_INVERSION(pid=process.pid))


def _inside_too(view: View, process: Process) -> Optional[Tuple[Thread, Thread]]:
    """Return the holder of the GIL if it sleeps in a library, and the one thread that the same library has called Python on.

    A lock that records no owner (a once-cell, the guard of a C++ static, a bare futex) is held by who stands inside.
    """
    holder = next((thread for thread in process.threads if thread.gil == "holds"), None)
    frames = native.called(holder) if holder is not None else ()
    wait = holder.wait if holder is not None else None
    if holder is None or wait is None or not frames or wait.syscall != "futex" or not view.rests(holder):
        return None
    if wait.endless is False or any(
        resource.id == wait.resource and resource.owner_tid is not None for resource in process.resources
    ):
        return None
    library = frames[0].module
    within = [thread for thread in process.threads if thread.gil == "waits" and _calls_python(thread, library)]
    return (holder, within[0]) if len(within) == 1 else None


def _calls_python(thread: Thread, module: Optional[str]) -> bool:
    """Return whether a library has called the Python code that a thread runs."""
    at = next((i for i, frame in enumerate(thread.stack) if isinstance(frame, PythonFrame)), len(thread.stack))
    return any(isinstance(frame, NativeFrame) and frame.module == module for frame in thread.stack[at:])


def _without_owner(view: View, process: Process, holder: Thread, inside: Thread) -> Match:
    """Return the match of a lock that records no owner."""
    frames = native.called(holder)
    places = [native.entered_at(thread, frames[0].module) for thread in (holder, inside)]
    behind = [t for t in process.threads if t.gil == "waits" and t is not inside]
    names, what = [clauses.named(thread) for thread in (holder, inside)], native.located(frames[0])
    return Match(
        confidence="likely",
        summary=_SLEEPS_INSIDE(holder=names[0], library=what, at=clauses.at(places[0]), inside=names[1]),
        evidence=(
            _HOLDS_AND_SLEEPS(holder=names[0], library=what),
            _CALLED_BACK(inside=names[1], library=native.library(frames[0]), at=clauses.at(places[1])),
            *((_BEHIND(count=len(behind)),) if behind else ()),
        ),
        culprits=tuple(
            view.culprit(process, frame, thread) for frame, thread in zip(places, (holder, inside)) if frame is not None
        ),
        victims=tuple(view.victim(process, thread) for thread in behind),
        pid=process.pid,
    )


def _is_inversion(cycle: Cycle) -> bool:
    """Return whether a cycle leads through the GIL and, apart from it, native locks or joins alone."""
    kinds = {edge.kind for edge in cycle.edges}
    others = kinds - {"gil"}
    only_native = bool(others) and not others & _PYTHON_LOCKS
    return "gil" in kinds and only_native and all(agent.tid is not None for agent in cycle.agents)


def _match(view: View, process: Process, cycle: Cycle) -> Match:
    graph = view.graph
    threads = [t for t in (graph.places.thread(agent) for agent in cycle.agents) if t is not None]
    module = next(
        (frames[0].module for t in threads if t.gil == "holds" for frames in [native.called(t)] if frames), None
    )
    facts: List[Said] = []
    culprits: List[Culprit] = []
    for edge, after in zip(cycle.edges, [*cycle.edges[1:], cycle.edges[0]]):
        thread = graph.places.thread(edge.waiter)
        place, found = _place(view, process, thread, module) if thread is not None else (None, [])
        if edge.kind == "thread":
            facts.append(_JOINS(waiter=edge.waiter, place=place, owner=after.waiter))
        else:
            facts.append(_HELD(waiter=edge.waiter, place=place, what=edge.what, owner=after.waiter, basis=edge.basis))
        # the holder of the GIL first: that is where it can be released
        culprits = [*found, *culprits] if edge.kind != "gil" else [*culprits, *found]
        facts += edge.because
    behind = [t for t in process.threads if t.gil == "waits" and t not in threads]
    if behind:
        facts.append(_BEHIND(count=len(behind)))
    return Match(
        confidence="proven" if view.graph.proves(cycle) else "likely",
        summary=_summary(cycle),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim(process, t) for t in behind),
        pid=process.pid,
    )


def _place(view: View, process: Process, thread: Thread, module: Optional[str]) -> Tuple[Text, List[Culprit]]:
    """Return where a thread called into the native code with the lock: a clause, and the lines in Python and C or C++."""
    innermost = own_frame(thread.python)
    entered = native.entered_at(thread, module)
    inside: List[NativeFrame] = list(native.frames_of(thread, module)[:1])
    found = [view.culprit(process, entered, thread)] if entered is not None else []
    found += [c for frame in inside for c in [native.culprit(process, thread, frame)] if c is not None]
    called = _CALLED(frame=entered) if entered is not None and entered != innermost else None
    through = _INSIDE(code=native.located(inside[0]), called=called) if inside else None
    return _PLACE(at=clauses.at(innermost), inside=through), found


def _summary(cycle: Cycle) -> Text:
    gil = next(edge for edge in cycle.edges if edge.kind == "gil")
    holder = cycle.edges[(cycle.edges.index(gil) + 1) % len(cycle.edges)]
    waits = _WAITS_FOR_END() if holder.kind == "thread" else _WANTS()
    return _SUMMARY(holder=holder.waiter, waits=waits, what=holder.what, waiter=gil.waiter)
