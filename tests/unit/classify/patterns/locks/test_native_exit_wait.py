"""native-exit-wait: a library waits in an exit handler, and no Python code is left."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from postmortem.evidence import Evidence, NativeFrame, Process, Thread, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, lock, locked, stack, thread

LIBC, GRID, PYTHON = "/lib/x86_64-linux-gnu/libc.so.6", "/app/libgrid.so", "/usr/bin/python3.12"


def c(function: Optional[str], module: str = GRID, line: Optional[int] = None) -> NativeFrame:
    return NativeFrame(function, module, 3, "/src/grid.cpp" if line else None, line)


EXIT = (c("__run_exit_handlers", LIBC), c("exit", LIBC), c("_start", PYTHON))
JOINS = Wait("lock", "futex", endless=True)


def ended(*threads: Thread, resources: Any = (), **known: Any) -> Evidence:
    """A process whose interpreter could not be read any more."""
    return evidence(Process(1, exe=PYTHON, threads=threads, resources=resources, **known))


def leaving(wait: Optional[Wait] = JOINS, line: Optional[int] = None, **known: Any) -> Thread:
    return thread(1, (c("pthread_join", LIBC), c("Pool::~Pool()", line=line), *EXIT), wait=wait, **known)


def test_a_destructor_that_joins() -> None:
    """The library's function and what it waits for are named; the C++ line, where there is debug information."""
    pool = thread(2, (c("read", LIBC), c("Pool::work()")), wait=Wait("futex", "futex", endless=True))
    told = classify(ended(leaving(line=88, joins=2), pool)).findings[0]
    assert (told.pattern, told.confidence) == ("native-exit-wait", "likely")
    assert "Pool::~Pool() of libgrid.so" in told.summary and "the interpreter has ended" in told.summary
    assert [culprit.line for culprit in told.culprits] == [88]
    without = classify(ended(leaving(joins=2), pool)).findings[0].culprits
    assert [(culprit.file, culprit.line) for culprit in without] == [(GRID, None)]


def test_a_thread_that_is_still_at_work() -> None:
    """A wait that may end by itself is possible."""
    busy = thread(2, (c("Pool::work()"),), counters=counters(cpu=0.9))
    told = classify(ended(leaving(joins=2), busy)).findings[0]
    assert (told.pattern, told.confidence) == ("native-exit-wait", "possible")


def test_a_wait_with_a_time_limit() -> None:
    """It may be one turn of a loop that ends in time."""
    timed = changed(JOINS, endless=False, timeout_s=0.5)
    assert found(ended(leaving(timed))).get("native-exit-wait") in (None, "possible")


def test_a_lock_that_a_thread_holds() -> None:
    """Its holder is cited, with the line of Python where one is left."""
    holder = thread(2, (c("open", LIBC), c("grid_load"), *stack("load")), wait=Wait("other", "openat", endless=True))
    wanted = lock("native-mutex-1", 2, (1,), "recorded", "mutex")
    told = classify(ended(leaving(changed(locked("native-mutex-1"), kind="mutex")), holder, resources=(wanted,)))
    assert told.verdict == "native-exit-wait"
    assert any(culprit.function == "load" for culprit in told.findings[0].culprits)


def test_a_thread_of_the_library_inside_python() -> None:
    """Called back by the library: it cannot end any more."""
    inside = thread(2, (c("lock_acquire", PYTHON), c("Reader::next()")), wait=Wait("semaphore", "futex", endless=True))
    told = classify(ended(leaving(), inside)).findings[0]
    assert any("was in Python code" in fact for fact in told.evidence)


@pytest.mark.parametrize(
    "frames",
    [
        (c("pthread_join", LIBC), c("grid_close"), *stack("main")),
        (c("sem_wait", LIBC), *stack("threading._shutdown"), c("Py_FinalizeEx", PYTHON)),
        (c("pthread_join", LIBC), c("grid_close")),
    ],
)
def test_before_the_end_it_is_something_else(frames: Any) -> None:
    """A join while Python code runs, at Python's own shutdown, or on a thread that does not leave."""
    assert "native-exit-wait" not in found(ended(thread(1, frames, wait=JOINS)))


def test_exit_handlers_that_work() -> None:
    """Flushing takes time, and is no wait."""
    told = classify(ended(leaving(None, counters=counters(cpu=0.5))))
    assert all(f.pattern != "native-exit-wait" for f in told.findings)
    assert any(one.pattern == "native-exit-wait" for one in told.ruled_out)


def test_other_programs_are_left_alone() -> None:
    """A program without an interpreter may wait at its end as it likes."""
    shell = Process(1, exe="/usr/bin/grid", threads=(thread(1, (c("pthread_join", LIBC), *EXIT[:2]), wait=JOINS),))
    assert "native-exit-wait" not in found(evidence(shell))
