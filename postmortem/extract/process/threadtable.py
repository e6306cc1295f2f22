"""The threads of one process as a table with a row per kernel thread."""

from __future__ import annotations

from typing import Dict, Iterable, Mapping, NamedTuple, Optional

from ...cpython.state.interpreter import Python, ThreadState
from ...memory import ElfCore
from .states import match_states, pointers


class ThreadRow(NamedTuple):
    """A thread of the kernel.

    ``state`` is None for a thread of C code that runs Python only at times, while it does not; locks that it took still
    record its thread pointer.
    """

    tid: int
    pointer: int = 0  # pthread_self(), which is threading.get_ident(); 0: unknown
    state: Optional[ThreadState] = None

    @property
    def object(self) -> Optional[int]:
        """Return the address of its threading.Thread."""
        return self.state.object if self.state is not None else None


class ThreadTable:
    """An index of threads, made once per process.

    - ``by_tid``: all threads, in the core's order
    - ``by_ident``: all threads, by threading.get_ident()
    - ``by_state``: by the address of the PyThreadState
    - ``by_object``: by the address of the threading.Thread
    """

    def __init__(self, rows: Iterable[ThreadRow]) -> None:
        self.by_tid: Mapping[int, ThreadRow] = {row.tid: row for row in rows}
        known = [(row.state, row) for row in self.by_tid.values() if row.state is not None]
        idents = {row.pointer: row for row in self.by_tid.values() if row.pointer}
        self.by_ident: Mapping[int, ThreadRow] = {**idents, **{state.ident: row for state, row in known}}
        self.by_state: Mapping[int, ThreadRow] = {state.address: row for state, row in known}
        self.by_object: Mapping[int, ThreadRow] = {state.object: row for state, row in known if state.object}
        #: tid → state, of threads that have one.
        self.states: Dict[int, ThreadState] = {row.tid: state for state, row in known}

    @classmethod
    def of_core(cls, core: ElfCore, python: Optional[Python]) -> ThreadTable:
        """Return the table of a core's threads."""
        states = match_states(python, core) if python is not None else {}
        known = pointers(core)
        return cls(ThreadRow(t.tid, known.get(t.tid, 0), states.get(t.tid)) for t in core.threads)

    @classmethod
    def of_states(cls, states: Mapping[int, ThreadState]) -> ThreadTable:
        """Return the table of a process known only from its interpreter.

        ``states``: by tid.
        """
        return cls(ThreadRow(tid, state=state) for tid, state in states.items())

    def tid_of_ident(self, ident: Optional[int]) -> Optional[int]:
        """Return the thread with this threading.get_ident(); None if there is none."""
        return _tid(self.by_ident, ident)

    def tid_of_state(self, address: Optional[int]) -> Optional[int]:
        """Return the thread with the PyThreadState at this address; None if there is none."""
        return _tid(self.by_state, address)

    def tid_of_object(self, thread: Optional[int]) -> Optional[int]:
        """Return the thread of the threading.Thread at this address; None if there is none."""
        return _tid(self.by_object, thread)

    def label(self, tid: int) -> str:
        """Return a thread's name, else ``thread 101``."""
        row = self.by_tid.get(tid)
        return (row.state.name if row is not None and row.state is not None else None) or f"thread {tid}"


def _tid(rows: Mapping[int, ThreadRow], key: Optional[int]) -> Optional[int]:
    row = rows.get(key) if key is not None else None
    return row.tid if row is not None else None
