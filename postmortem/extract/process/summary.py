"""A process as evidence, once its threads, locks and tasks have been read."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.heap.variablesearch import users_of
from ...cpython.state.interpreter import Python
from ...evidence import (
    Backlog,
    Gap,
    HeldLock,
    Interpreter,
    KeptException,
    Loop,
    NativeFrame,
    Process,
    PythonInfo,
    Resource,
    Task,
    Thread,
    replace,
)
from ...frameworks.asyncio.cancels import cancels
from ...frameworks.children import children_made
from ..cross_process.ended import children_of, recorded, running
from ..cross_process.forks import LockPlace, Trace
from ..cross_process.serving import with_connections, with_servers
from ..cross_process.sharedwork import trace_of
from ..ownership.pools import FutureFacts
from ..ownership.wakers import Books, Reaches
from ..recorded.raw import own_pid
from ..recorded.shapes import digits, integer, number
from ..sourcecode.stops import stops
from ..waits.nativelocks import NativeLocks
from ..waits.unwoken import readied_at
from .collector import collectors
from .context import ProcessContext
from .gil import gil_resources
from .growingqueues import BacklogBook
from .interpreters import told
from .keptexceptions import KeptBook
from .process import Reading
from .signals import caught, signal_handlers
from .threads import complete, with_depth

#: Callbacks in a ready queue from which on their origins are reported.
_CROWDED = 8


class ProcessRead(NamedTuple):
    """A process, and the ``trace`` that completes the evidence of other processes."""

    process: Process
    trace: Trace


def process_of(reading: Reading, native: Mapping[int, Tuple[NativeFrame, ...]]) -> ProcessRead:
    """Return a process as evidence.

    ``native``: native stacks by tid.
    """
    context, side = reading.context, reading.side
    raw, python = context.raw.process, context.python
    native_locks = NativeLocks(context.core, context.threads, reading.threads.calls, native)
    threads = _threads(reading, native, native_locks)
    worlds = side.waits.stop_the_world if side is not None else lambda _interpreter: None
    interpreters = told(python.interpreters, context, worlds) if python else ()
    _note_problems(context, len(threads) - len(context.threads.states))
    resources = _resources(reading, interpreters, threads, native_locks)
    catches = caught(raw.get("signals_caught"))
    children = children_of(context, own_pid(raw) or context.pid)
    process = Process(
        pid=context.pid,
        ppid=integer(raw.get("ppid")) if raw else context.core.ppid,
        argv=_words(raw.get("argv")) or tuple(context.core.argv.split()),
        exe=raw.get("exe") if isinstance(raw.get("exe"), str) else None,
        state=raw.get("state") if isinstance(raw.get("state"), str) else None,
        python=_info(python) if python else None,
        interpreters=interpreters,
        threads=threads,
        resources=resources,
        loops=_loops(reading),
        signal_handlers=signal_handlers(python, context.gaps, catches, threads),
        catches=catches,
        pools=(*side.pools.evidence(), *side.shared.pools) if side is not None else (),
        tasks=_tasks(reading),
        cancels=_cancels(reading, resources),
        stops=stops(context.usages, reading.files, python),
        backlogs=_backlogs(reading),
        kept_exceptions=_kept(reading),
        age_s=number(raw.get("age_s")),
        cpus_allowed=_cpus(raw.get("cpus_allowed")),
        io=context.raw.window.io,
        rss_growth=context.raw.window.rss_growth,
        own_pid=own_pid(raw),
        ended=recorded(children),
        children_made=children_made(python) if python else None,
        listening=context.raw.descriptors.listening if context.raw.descriptors else None,
    )
    trace = _trace(reading, native_locks)._replace(children=running(children), things=_things(reading))
    return ProcessRead(process, trace)


def _tasks(reading: Reading) -> Tuple[Task, ...]:
    side, python = reading.side, reading.context.python
    if side is None or python is None:
        return ()
    return with_connections(side.tasks.tasks, {**side.tasks.states, **side.tasks.others}, python)


def _threads(reading: Reading, native: Mapping[int, Tuple[NativeFrame, ...]], locks: NativeLocks) -> Tuple[Thread, ...]:
    context, side, stacks = reading.context, reading.side, reading.stacks
    running = collectors(context.python, context.threads.states, native) if context.python else {}
    found = []
    for thread in complete(context, reading.threads, stacks, native, locks):
        held: Tuple[HeldLock, ...] = ()
        if side is not None:
            held = (
                *side.locks.held_by(thread.tid),
                *side.shared.semaphores.held_by(thread.tid, side.semaphores),
                *side.gates.held.get(thread.tid, ()),
            )
        holds = (*with_depth(held, stacks, thread.tid), *locks.held_by(thread))
        with_gate = side.gates.thread(thread) if side is not None else thread
        found.append(replace(with_gate, holds=holds, gc=running.get(thread.tid)))
    return tuple(found)


def _note_problems(context: ProcessContext, forgotten: int) -> None:
    """Note gaps of the interpreter.

    ``forgotten``: number of threads without a state.
    """
    python = context.python
    for problem in python.problems if python else []:
        context.gaps.append(Gap("cpython", f"process {context.pid}", problem, code="interpreter-unread"))
    if python and python.finalizing and forgotten:
        context.gaps.append(Gap.of("cpython", f"process {context.pid}", "interpreter-ending", threads=forgotten))


def _resources(
    reading: Reading, interpreters: Tuple[Interpreter, ...], threads: Tuple[Thread, ...], native_locks: NativeLocks
) -> Tuple[Resource, ...]:
    context, side = reading.context, reading.side
    resources: Tuple[Resource, ...] = (
        *(_with_calls(side.locks.resources(), side.locks.addresses(), side.tasks.calls) if side else ()),
        *native_locks.resources(),
        *gil_resources(interpreters, threads),
        *(side.shared.resources(side.semaphores) if side else ()),
        *(side.buffers.resources() if side else ()),
        *(side.tasks.awaits.resources(side.pools.future) if side else ()),
        *reading.descriptors.resources(),
    )
    if side is not None:
        awaits = side.tasks.awaits
        books = Books(
            {**side.locks.addresses(), **awaits.addresses()},
            awaits.tasks,
            awaits.suspended,
            awaits.behind,
            awaits.blind(),
            side.locks.variables(),
        )
        reaches = Reaches(
            side.context, books, reading.stacks.suspended, side.tasks.states, side.tasks.others, side.pools.queued()
        )
        resources = reaches.settle(resources, threads, side.tasks.tasks, side.tasks.loops)
        resources = (*resources, *side.gates.settled(resources, threads, side.tasks.tasks))
    frames = {thread.tid: found for thread, found in reading.threads.drafts}
    return with_servers(context.pid, resources, threads, frames, context.python)


def _with_calls(
    resources: Sequence[Resource], addresses: Mapping[str, int], calls: Mapping[int, FutureFacts]
) -> Iterator[Resource]:
    """Yield the resources of threads; a queue in which one awaits a call into an event loop with who completes it."""
    for resource in resources:
        call = calls.get(addresses.get(resource.id, 0)) if resource.kind == "queue" else None
        yield resource if call is None else replace(call.added_to(resource), kind="future")


def _loops(reading: Reading) -> Tuple[Loop, ...]:
    """Return the event loops; those of a process with a crowded ready queue have the places that spawn."""
    loops = reading.side.tasks.loops if reading.side is not None else ()
    loops = tuple(_readied(reading, loop) for loop in loops)
    if not any(max(loop.ready or 0, loop.turn_callbacks or 0) >= _CROWDED for loop in loops):
        return loops
    spawning = reading.context.usages.spawning(reading.files)
    return tuple(replace(loop, spawned_at=spawning) for loop in loops)


def _readied(reading: Reading, loop: Loop) -> Loop:
    """Return a loop that sleeps in its selector although callbacks are ready with the places that may have readied them."""
    waits = (draft.wait for draft, _frames in reading.threads.drafts if draft.tid == loop.tid)
    wait = next(waits, None)
    if not loop.ready or reading.side is None or wait is None or wait.kind != "event-loop":
        return loop
    return replace(loop, readied_at=readied_at(reading.side.context, reading.side.tasks, loop, reading.files))


def _backlogs(reading: Reading) -> Tuple[Backlog, ...]:
    side = reading.side
    if side is None:
        return ()
    tasks = {**side.tasks.states, **side.tasks.others}
    return BacklogBook(side.context, reading.stacks.suspended, tasks).backlogs()


def _kept(reading: Reading) -> Tuple[KeptException, ...]:
    if reading.side is None:
        return ()
    states = reading.context.threads.states
    book = KeptBook(reading.side.context, reading.stacks.suspended)
    return book.groups(users_of(states.values(), reading.side.tasks.states.values()))


def _cancels(reading: Reading, resources: Sequence[Resource]) -> Optional[Tuple[str, ...]]:
    side = reading.side
    if side is None:
        return None
    if not side.tasks.tasks and not any(resource.kind == "future" for resource in resources):
        return None  # nothing can be cancelled
    own = [frame for _thread, frames in reading.threads.drafts for frame in frames]
    return cancels(side.context.python, [*own, *side.tasks.frames])


def _things(reading: Reading) -> Mapping[str, int]:
    """Return the addresses of the objects that threads wait for, by resource id."""
    return reading.side.locks.addresses() if reading.side is not None else {}


def _trace(reading: Reading, native_locks: NativeLocks) -> Trace:
    side = reading.side
    states = side.locks.states() if side is not None else {}
    places = {ident: LockPlace(state.address, state.owner_ident) for ident, state in states.items()}
    places.update({ident: LockPlace(at, None, tid) for ident, (at, tid) in native_locks.places().items()})
    shared_owners = native_locks.owners_elsewhere()
    if side is None:
        return trace_of(reading.context, places, None, None)._replace(shared_owners=shared_owners)
    places.update(side.buffers.places())
    known = trace_of(reading.context, places, side.shared.semaphores, side.semaphores)
    return known._replace(shared_owners=shared_owners)


def _info(python: Python) -> PythonInfo:
    runtime = python.runtime
    return PythonInfo(runtime.version_text, "CPython", runtime.free_threaded, python.debug, python.finalizing)


def _words(value: Any) -> Tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _cpus(value: Any) -> Optional[int]:
    """Return the number of CPUs from a count or a list such as ``0-3,8``; None if invalid."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    count = 0
    for part in value.split(","):
        first, _dash, last = part.strip().partition("-")
        begin, end = digits(first, 1 << 20), digits(last or first, 1 << 20)
        if begin is None or end is None or end < begin:
            return None
        count += end - begin + 1
    return count
