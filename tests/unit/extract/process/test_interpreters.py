"""What interpreters say of themselves, with the window's counts for the main one."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import pytest

from postmortem.cpython.state.interpreter import GilState, InterpreterState, ThreadState
from postmortem.evidence import Interpreter, StopTheWorld
from postmortem.extract.process.interpreters import told
from postmortem.extract.process.threadtable import ThreadRow, ThreadTable
from postmortem.extract.recorded.window import NO_WINDOW, Window

from ....support.contexts import made

HOLDER = 0x5000


def state(ident: int = 0, gil: Optional[GilState] = None) -> InterpreterState:
    return InterpreterState(0x1000 + ident, ident, gil, [], None)


def window(**probes: Any) -> Window:
    return NO_WINDOW._replace(seconds=1.0, probes=probes)


def first(known: InterpreterState, seen: Window = NO_WINDOW, threads: Sequence[ThreadRow] = ()) -> Interpreter:
    (found,) = told([known], made(None, ThreadTable(threads), window=seen), lambda _interpreter: None)
    return found


def gil(holder: Optional[int] = HOLDER) -> GilState:
    return GilState(0x2000, True, holder, 0.005, None)


def test_the_holder_is_a_thread_of_the_kernel() -> None:
    """By the address of its state; one that is not known stays unknown."""
    found = first(state(gil=gil()), threads=[ThreadRow(42, 0, ThreadState(HOLDER, 0, 0, 42, None))]).gil
    assert found is not None
    assert (found.locked, found.holder_tid, found.handoffs, found.handoffs_per_s) == (True, 42, None, None)
    unknown = first(state(gil=gil())).gil
    assert unknown is not None
    assert unknown.holder_tid is None


def test_the_windows_counts_are_the_main_interpreters() -> None:
    """Hand-overs a second, and the collector's share of the looks; nothing of that for a sub-interpreter."""
    seen = window(
        gil={"switches": 500, "seconds": 2.0}, collector={"seconds": 2.0, "looks": 100, "busy": 25, "counts": [9, 1, 0]}
    )
    main = first(state(gil=gil()), seen)
    assert main.gil is not None
    assert (main.gil.handoffs, main.gil.handoffs_per_s) == (500, 250.0)
    assert main.collections is not None
    assert (main.collections.share, main.collections.counts) == (0.25, (9, 1, 0))
    sub = first(state(1, gil()), seen)
    assert sub.gil is not None
    assert (sub.gil.handoffs, sub.collections) == (None, None)


@pytest.mark.parametrize(
    "probe",
    [
        None,
        [],
        "x",
        {},
        {"seconds": None, "looks": 3},
        {"seconds": "1", "switches": "many"},
        {"seconds": 0, "switches": 5},
    ],
)
def test_a_damaged_probe_is_no_probe(probe: Any) -> None:
    """A bundle of another version, or cut short: unknown, never zero."""
    found = first(state(gil=gil()), window(gil=probe, collector=probe))
    assert found.gil is not None
    assert found.gil.handoffs is None
    assert found.collections is None


def test_counts_that_are_none_are_unknown() -> None:
    """The looks count without them."""
    found = first(state(), window(collector={"seconds": 1.0, "looks": 10, "busy": 0, "counts": [1, None]})).collections
    assert found is not None
    assert (found.share, found.counts) == (0.0, None)


def test_a_stopped_world_is_told_of_its_interpreter() -> None:
    """A free-threaded build has no GIL; its stopped world is read instead."""
    stopped = StopTheWorld(True, False)
    (found,) = told([state()], made(None, ThreadTable([])), lambda _interpreter: stopped)
    assert (found.gil, found.stop_the_world) == (None, stopped)
