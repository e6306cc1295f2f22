"""Loops that never end, told from batches that move on."""

from __future__ import annotations

from typing import List, Optional, Tuple

import pytest

from postmortem.evidence import Gil, NativeFrame, Process, PythonFrame, Resource, Rounds, Wait
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import GilState

from .....support.make import (
    counters,
    evidence,
    found,
    frame,
    held,
    lines,
    lock,
    locked,
    process,
    samples,
    stack,
    thread,
)


def spinning(*stacks: Tuple[int, List[PythonFrame]]) -> Process:
    return process([thread(1, stacks[0][1], counters=counters(0.99), gil="holds", samples=samples(*stacks))])


def test_a_busy_loop_names_the_function_it_never_leaves() -> None:
    """What is on every sample is named; with nobody waiting it is possible, behind a lock that it holds likely."""
    base = [frame("main", 1)]
    known = spinning((30, [frame("next_day", 9), frame("search", 21), *base]), (20, [frame("search", 22), *base]))
    assert found(evidence(known)) == {"python-busy-loop": "possible"}
    assert set(lines(evidence(known))) == {21, 22}
    waiter = thread(2, [frame("runner")], wait=locked("lock-1"), counters=counters())
    holder = changed(known.threads[0], holds=(held("lock-1", 2),))
    both = changed(known, threads=(holder, waiter), resources=(lock("lock-1", 1, (2,)),))
    assert found(evidence(both)) == {"python-busy-loop": "likely"}
    gets_it = changed(waiter, counters=counters(switches=5))
    turns = changed(both, threads=(holder, gets_it))
    assert found(evidence(turns)) == {"python-busy-loop": "possible"}


@pytest.mark.parametrize(
    ("header", "expected"), [("for depot in depots:", "possible"), ("while heap:", "likely"), (None, "likely")]
)
def test_a_loop_over_items_behind_a_lock(header: Optional[str], expected: str) -> None:
    """Others wait for its lock, but such a loop ends with its items."""
    base = [frame("main", 1)]
    known = spinning((50, [frame("search", 21), *base]))
    waiter = thread(2, [frame("runner")], wait=locked("lock-1"), counters=counters())
    holder = changed(known.threads[0], holds=(held("lock-1", 2),))
    both = changed(known, threads=(holder, waiter), resources=(lock("lock-1", 1, (2,)),))
    file = base[0].file
    whole = changed(evidence(both), loops={file: {21: (20,)}}, sources={file: {20: header}} if header else {})
    assert found(whole) == {"python-busy-loop": expected}


def test_a_loop_whose_variables_return_to_their_values_is_likely() -> None:
    """It was seen to go around; variables that change, or are not all known, leave it possible."""
    base = [frame("main", 1)]
    known = spinning((30, [frame("next_day", 9), frame("search", 21), *base]), (20, [frame("search", 22), *base]))
    expected = {True: "likely", False: "possible", None: "possible"}
    for same, confidence in expected.items():
        rounds = Rounds("search", "/app/program.py", 20, 20, 6, same, ("at",) if same is False else ())
        looked = changed(known, threads=(changed(known.threads[0], rounds=rounds),))
        assert found(evidence(looked)) == {"python-busy-loop": confidence}


def test_who_computes_without_the_gil_runs_no_python() -> None:
    """A query runs in native code, while another thread has the GIL: at one line, and not in want of the GIL."""
    query = [frame("reconcile", 17), frame("main", 1)]
    gil = Gil(True, 1, 0.005, handoffs_per_s=0.0)
    keeps = thread(1, [frame("add_function", 31)], wait=Wait("mutex", "futex", "m", endless=True), gil="holds")
    computes = thread(2, query, counters=counters(0.99), samples=samples((50, query)))
    assert "python-busy-loop" not in found(evidence(process([keeps, computes], gil=gil)))
    waits = changed(computes, gil="waits")
    assert "python-busy-loop" in found(evidence(process([keeps, waits], gil=gil)))


@pytest.mark.parametrize(("gil", "expected"), [("unknown", "possible"), ("holds", "likely")])
def test_one_long_query_behind_a_lock(gil: GilState, expected: str) -> None:
    """A single call of an extension without the GIL may be long work, whoever waits for the lock around it."""
    query = [frame("report", 17), frame("main", 1)]
    scans = (NativeFrame("engine::Join::scan()", "/venv/site-packages/engine.cpython-312-x86_64-linux-gnu.so", 0x100),)
    computes = thread(
        1,
        [*scans, *query],
        counters=counters(0.99),
        samples=samples((50, query)),
        gil=gil,
        holds=(held("lock-1", 2),),
    )
    waiter = thread(2, [frame("runner")], wait=locked("lock-1"), counters=counters())
    known = process([computes, waiter], resources=(lock("lock-1", 1, (2,)),))
    assert found(evidence(known))["python-busy-loop"] == expected


def test_who_joins_a_busy_thread_is_not_held_up_by_its_lock() -> None:
    """The main thread joins it: whether that takes too long nobody knows, however the join is written down."""
    busy = thread(2, stack("work"), counters=counters(1.0), samples=samples((50, stack("work"))))
    main = thread(1, stack("threading.join", "main"), joins=2, wait=Wait("lock", "futex", "thread-1", endless=True))
    ends = Resource("thread-1", "thread", "thread T-2", 2, "recorded", (1,))
    assert found(evidence(process([main, busy], resources=(ends,))))["python-busy-loop"] == "possible"


def test_a_batch_that_moves_on_is_no_busy_loop() -> None:
    """Nothing of the program but its outermost frames stays: that is progress as far as one can see."""
    known = spinning(
        (20, [frame("load"), frame("main")]), (20, [frame("clean"), frame("main")]), (10, [frame("fit"), frame("main")])
    )
    assert set(found(evidence(known)).values()) <= {"possible"}


def test_of_a_librarys_loop_the_programs_call_comes_first() -> None:
    """The line to change is the program's own; where the library spends the time is told after it."""
    cells = frame("_cells", 173, "/venv/lib/python3.12/site-packages/docx/table.py")
    assert lines(evidence(spinning((50, [cells, frame("field", 49), frame("main", 1)])))) == [49, 173]


@pytest.mark.parametrize(
    ("listening", "inner", "accepts", "expected"),
    [
        ((8000,), "/venv/lib/python3.12/site-packages/server/util.py", False, "likely"),
        ((), "/venv/lib/python3.12/site-packages/server/util.py", False, "possible"),
        ((8000,), "/app/program.py", False, "possible"),
        ((8000,), "/venv/lib/python3.12/site-packages/server/util.py", True, "possible"),
    ],
)
def test_the_loop_of_a_server_that_only_turns(
    listening: Tuple[int, ...], inner: str, accepts: bool, expected: str
) -> None:
    """A request that it handles, or a computation beside another server, is work."""
    run = frame("run", 231, "/venv/lib/python3.12/site-packages/server/worker.py")
    known = spinning((30, [run, frame("main", 5)]), (20, [frame("tick", 3, inner), run, frame("main", 5)]))
    looked = changed(known.threads[0], rounds=Rounds("run", run.file, 193, 30, 14, None, ()))
    other = thread(2, [frame("serve", 9)], wait=Wait("socket", "accept4", "s", endless=True), counters=counters())
    socket = Resource("s", "socket", "socket 127.0.0.1:8000", listening=True)
    both = changed(known, threads=(looked, *((other,) if accepts else ())), resources=(socket,), listening=listening)
    assert found(evidence(both))["python-busy-loop"] == expected
