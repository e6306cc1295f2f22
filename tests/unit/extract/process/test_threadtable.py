"""A thread is found by whatever names it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from postmortem.cpython.state.interpreter import ThreadState
from postmortem.extract.process.threadtable import ThreadRow, ThreadTable
from postmortem.memory import CoreThread

STATE = ThreadState(
    address=0x1000, interpreter=0, ident=0x7000, native_id=7, attached=None, name="worker", object=0x5000
)
THREADS = [CoreThread(7, 0, {"fs_base": 0x7000}), CoreThread(8, 0, {"fs_base": 0x8000}), CoreThread(9, 0, {})]


def test_threads_without_a_state_have_an_ident_too() -> None:
    """A thread of C's is between two calls into Python: what it has locked records its thread pointer."""
    core: Any = SimpleNamespace(threads=THREADS, writable=[])
    python: Any = SimpleNamespace(interpreters=[SimpleNamespace(threads=[STATE])])
    table = ThreadTable.of_core(core, python)
    assert list(table.by_tid) == [7, 8, 9]
    assert {ident: row.tid for ident, row in table.by_ident.items()} == {0x7000: 7, 0x8000: 8}
    assert (table.tid_of_ident(0x8000), table.tid_of_ident(0x9000), table.tid_of_ident(None)) == (8, None, None)
    assert (table.tid_of_state(0x1000), table.tid_of_state(0)) == (7, None)
    assert (table.tid_of_object(0x5000), table.tid_of_object(None)) == (7, None)
    assert table.states == {7: STATE}


def test_without_an_interpreter_there_are_threads() -> None:
    """They have their numbers, and idents that nobody asks for."""
    core: Any = SimpleNamespace(threads=THREADS)
    table = ThreadTable.of_core(core, None)
    assert (list(table.by_tid), table.states, table.by_object) == ([7, 8, 9], {}, {})


def test_a_states_own_ident_goes_before_a_thread_pointer() -> None:
    """A child of a fork keeps the ident of the thread that forked it, wherever its threads lie now."""
    moved = replace(STATE, ident=0x8000)
    table = ThreadTable([ThreadRow(7, 0x7000, moved), ThreadRow(8, 0x8000)])
    assert (table.tid_of_ident(0x7000), table.tid_of_ident(0x8000)) == (7, 7)


def test_labels() -> None:
    """By name, where an interpreter knows one."""
    table = ThreadTable([ThreadRow(7, 0, STATE), ThreadRow(8)])
    assert [table.label(tid) for tid in (7, 8, 9)] == ["worker", "thread 8", "thread 9"]
