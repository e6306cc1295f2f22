"""One thread holds a lock of native code and wants the GIL; another one holds the GIL and wants that lock.

**What it looks like.** Every Python thread waits for the GIL, at 0 % CPU, and the thread that holds the GIL sleeps in
native code: in `pthread_mutex_lock`, in `__cxa_guard_acquire` (a C++ static that is being initialised), in
`pthread_join`. The holder of that lock is one of the threads that wait for the GIL.

**Easily mistaken for** `gil-held-by-native`, where native code computes, or waits for something outside; a crowd in
`take_gil`, which is `gil-contention`.

**Why it hangs.** Two locks are taken in two orders, and one of them is the GIL. Native code that calls back into Python
may release the GIL and acquire it again, all the while holding its own lock.

**Remedy.** Never wait for a native lock while holding the GIL: release the GIL first, and acquire it again once the native
lock is held.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional, Tuple

from ....evidence import NativeFrame, Process, Thread
from ....evidence.vocabulary import ResourceKind
from ....findings import Culprit
from ....waitgraph import Cycle, Edge, known_from
from ...facts import native
from ...facts.knowledge import own_frame, short
from ...facts.view import View, do, plural
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="native-lock-gil-inversion",
    title="a native lock and the GIL are taken in two orders",
    explanation=(
        "One thread holds a lock inside native code (a mutex, the guard of a C++ static, a thread that is joined) and needs "
        "the GIL to go on; another thread holds the GIL and sleeps until it gets that native lock. Neither can ever let go, "
        "and without the GIL no other Python thread can run either."
    ),
    remedy=(
        "Release the GIL before waiting for the native lock (Py_BEGIN_ALLOW_THREADS, py::gil_scoped_release, `with nogil`) "
        "and do not call into Python while holding it; for C++ statics use pybind11's gil_safe_call_once_and_store, or "
        "initialise them when the module is imported."
    ),
    needs=("python", "cores"),
    outranks=(
        "gil-held-by-native", "gil-contention", "gil-thrash", "python-busy-loop", "shutdown-join", "child-wait",
        "network-wait", "sleeping", "missed-wakeup", "pool-exhausted", "executor-self-deadlock", "orphaned-lock",
    ),
    references=(
        "https://docs.python.org/3/c-api/init.html#thread-state-and-the-global-interpreter-lock",
        "https://github.com/pybind/pybind11/pull/4877",
    ),
)  # fmt: skip

#: Kinds that make a cycle one of Python locks.
_PYTHON_LOCKS: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "condition", "semaphore", "shared-semaphore", "file-lock", "import-lock")
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each wait-for cycle of the GIL and native locks."""
    cycles = [cycle for cycle in view.graph.cycles if _is_inversion(cycle)]
    for cycle in cycles:
        process = view.by_pid[cycle.edges[0].waiter.pid]
        yield _match(view, process, cycle)
    for process in view.pythons if not cycles else ():
        if any(thread.gil == "waits" for thread in process.threads):
            yield No(f"who holds the GIL of process {process.pid} waits for nobody who wants it")


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
    facts: List[str] = []
    culprits: List[Culprit] = []
    for edge, after in zip(cycle.edges, [*cycle.edges[1:], cycle.edges[0]]):
        thread = graph.places.thread(edge.waiter)
        at, found = _place(view, process, thread, module) if thread is not None else ("", [])
        how = f" ({known_from(edge.basis)})" if edge.kind != "thread" else ""
        facts.append(f"{graph.label(edge.waiter)}{at} {_wants(edge, graph.label(after.waiter))}{how}")
        # the holder of the GIL first: that is where it can be released
        culprits = [*found, *culprits] if edge.kind != "gil" else [*culprits, *found]
        facts += edge.because
    behind = [t for t in process.threads if t.gil == "waits" and t not in threads]
    if behind:
        facts.append(f"{plural(len(behind), 'other thread')} {do(len(behind), 'want')} the GIL")
    return Match(
        confidence="proven" if view.graph.proves(cycle) else "likely",
        summary=_summary(view, cycle),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim(process, t) for t in behind),
        pid=process.pid,
    )


def _wants(edge: Edge, holder: str) -> str:
    if edge.kind == "thread":
        return f"waits in native code for the end of {holder}"
    return f"wants {edge.what}, held by {holder}"


def _place(view: View, process: Process, thread: Thread, module: Optional[str]) -> Tuple[str, List[Culprit]]:
    """Return where a thread called into the native code with the lock: a phrase, and the lines in Python and C or C++."""
    innermost = own_frame(thread.python)
    entered = native.entered_at(thread, module)
    inside: List[NativeFrame] = list(native.frames_of(thread, module)[:1])
    found = [view.culprit(process, entered, thread)] if entered is not None else []
    found += [c for frame in inside for c in [native.culprit(process, thread, frame)] if c is not None]
    through = f", inside {native.where(inside[0])}" if inside else ""
    entry = f" called at {short(entered)}" if inside and entered is not None and entered != innermost else ""
    return (f" at {short(innermost)}" if innermost is not None else "") + through + entry, found


def _summary(view: View, cycle: Cycle) -> str:
    gil = next(edge for edge in cycle.edges if edge.kind == "gil")
    holder = cycle.edges[(cycle.edges.index(gil) + 1) % len(cycle.edges)]
    what = "waits for the end of" if holder.kind == "thread" else "wants"
    return (
        f"{view.graph.label(holder.waiter)} holds the GIL and {what} {holder.what}; {view.graph.label(gil.waiter)} has to "
        "have the GIL before that can come"
    )
