"""What is said of a process as a whole, when its threads, locks and tasks have been read."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Tuple

from ...cpython.heap.variablesearch import users_of
from ...cpython.state.interpreter import Python
from ...evidence import (
    Backlog,
    Gap,
    Interpreter,
    KeptException,
    Loop,
    NativeFrame,
    Process,
    PythonInfo,
    Resource,
    Thread,
    replace,
)
from ...frameworks.asyncio.cancels import cancels
from ..cross_process.serving import with_servers
from ..ownership.wakers import Books, Reaches
from ..recorded.raw import own_pid
from ..recorded.shapes import digits, integer, number
from ..sourcecode.stops import stops
from .gil import gil_resources
from .growingqueues import BacklogBook
from .interpreters import told
from .keptexceptions import KeptBook
from .process import Reader
from .signals import caught, signal_handlers

#: Callbacks in a ready queue.
_CROWDED = 8


def process_of(reader: Reader, native: Mapping[int, Tuple[NativeFrame, ...]]) -> Process:
    """What was read, with the native stacks by tid."""
    raw, python = reader.raw.process, reader.python
    threads = reader.threads(native)
    worlds = reader.locks.stop_the_world if reader.locks else lambda _interpreter: None
    interpreters = told(python.interpreters, reader.raw.window, reader.table, worlds) if python else ()
    _note_problems(reader, len(threads) - len(reader.table.states))
    resources = _resources(reader, interpreters, threads)
    catches = caught(raw.get("signals_caught"))
    return Process(
        pid=reader.pid,
        ppid=integer(raw.get("ppid")) if raw else reader.core.ppid,
        argv=_words(raw.get("argv")) or tuple(reader.core.argv.split()),
        exe=raw.get("exe") if isinstance(raw.get("exe"), str) else None,
        state=raw.get("state") if isinstance(raw.get("state"), str) else None,
        python=_info(python) if python else None,
        interpreters=interpreters,
        threads=threads,
        resources=resources,
        loops=_loops(reader),
        signal_handlers=signal_handlers(python, reader.gaps, catches, threads),
        catches=catches,
        pools=(*(reader.locks.pools if reader.locks else ()), *reader.shared.pools),
        tasks=reader.tasks.tasks if reader.tasks else (),
        cancels=_cancels(reader, resources),
        stops=stops(reader.usages, reader.files, python),
        backlogs=_backlogs(reader),
        kept_exceptions=_kept(reader),
        age_s=number(raw.get("age_s")),
        cpus_allowed=_cpus(raw.get("cpus_allowed")),
        io=reader.raw.window.io,
        rss_growth=reader.raw.window.rss_growth,
        own_pid=own_pid(raw),
        listening=reader.raw.descriptors.listening if reader.raw.descriptors else None,
    )


def _note_problems(reader: Reader, forgotten: int) -> None:
    """``forgotten``: threads of which the interpreter has no state."""
    python = reader.python
    for problem in python.problems if python else []:
        reader.gaps.append(Gap("cpython", f"process {reader.pid}", problem, code="interpreter-unread"))
    if python and python.finalizing and forgotten:
        reason = f"the interpreter is ending and knows {forgotten} threads no longer: whether they ran Python is lost"
        reader.gaps.append(
            Gap("cpython", f"process {reader.pid}", reason, "capture it before it ends", code="interpreter-ending")
        )


def _resources(
    reader: Reader, interpreters: Tuple[Interpreter, ...], threads: Tuple[Thread, ...]
) -> Tuple[Resource, ...]:
    python = reader.python
    resources: Tuple[Resource, ...] = (
        *(reader.locks.resources() if reader.locks else ()),
        *reader.native_locks.resources(),
        *gil_resources(interpreters, threads),
        *reader.shared.resources(),
        *reader.buffers.resources(),
        *(reader.tasks.resources() if reader.tasks else ()),
        *reader.descriptors.resources(),
    )
    if python and reader.locks is not None and reader.tasks is not None:
        awaits = reader.tasks.awaits
        books = Books({**reader.locks.addresses(), **awaits.addresses()}, awaits.tasks, reader.table)
        reaches = Reaches(python, reader.core, books, reader.frame, reader.gaps)
        resources = reaches.settle(resources, threads, reader.tasks.tasks, reader.tasks.loops)
    frames = {thread.tid: found for thread, found in reader.drafts}
    return with_servers(reader.pid, resources, threads, frames, python)


def _loops(reader: Reader) -> Tuple[Loop, ...]:
    """With what fills the ready queues of those that have much in them."""
    loops = reader.tasks.loops if reader.tasks else ()
    if not any(max(loop.ready or 0, loop.turn_callbacks or 0) >= _CROWDED for loop in loops):
        return loops
    spawning = reader.usages.spawning(reader.files)
    return tuple(replace(loop, spawned_at=spawning) for loop in loops)


def _backlogs(reader: Reader) -> Tuple[Backlog, ...]:
    if reader.python is None or reader.tasks is None:
        return ()
    book = BacklogBook(reader.python, reader.raw.window, reader.usages, reader.frame, reader.table, reader.tasks.states)
    return book.backlogs()


def _kept(reader: Reader) -> Tuple[KeptException, ...]:
    if reader.python is None or reader.tasks is None:
        return ()
    book = KeptBook(reader.python, reader.core, reader.raw.window, reader.usages, reader.frame, reader.table.states)
    return book.groups(users_of(reader.table.states.values(), reader.tasks.states.values()))


def _cancels(reader: Reader, resources: Sequence[Resource]) -> Optional[Tuple[str, ...]]:
    if reader.python is None or reader.tasks is None:
        return None
    if not reader.tasks.tasks and not any(resource.kind == "future" for resource in resources):
        return None  # there is nothing to cancel
    own = [frame for _thread, frames in reader.drafts for frame in frames]
    return cancels(reader.python, [*own, *reader.tasks.frames])


def _info(python: Python) -> PythonInfo:
    runtime = python.runtime
    return PythonInfo(runtime.version_text, "CPython", runtime.free_threaded, python.debug, python.finalizing)


def _words(value: Any) -> Tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _cpus(value: Any) -> Optional[int]:
    """A count, or a list such as ``0-3,8``."""
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
