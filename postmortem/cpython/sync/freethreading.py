"""Per-object locks and the stopped world of free-threaded builds.

- Each object has a small lock, which a thread holds through a *critical section* while it works on the object without
  waiting.
- The garbage collector *stops the world*: every thread pauses, and a thread that returns from native code meanwhile is
  suspended until the world resumes.

Sources, all of 3.13-3.15:
- Include/internal/pycore_critical_section.h and cpython/critical_section.h: _cs_prev, _cs_mutex, _cs_mutex2, tags in
  the lowest bits.
- object.h: ob_mutex.
- pycore_interp_structs.h: struct _stoptheworld_state.
- pycore_pystate.h: _Py_THREAD_SUSPENDED; Python/pystate.c.
"""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional

from ...memory import Fault
from ..objects.builtins import NotThat
from ..state.interpreter import InterpreterState, Python, ThreadState
from .locks import LockState
from .parking import parked_on

#: PyObject.ob_mutex (Include/object.h, Py_GIL_DISABLED)
_OB_MUTEX = 10
_INACTIVE, _TWO_MUTEXES, _TAGS = 1, 2, 3
#: Most nested critical sections of one thread.
_MAX_SECTIONS = 10_000
#: struct _stoptheworld_state: PyMutex mutex, bool requested, bool world_stopped, bool is_global, PyEvent stop_event,
#: Py_ssize_t thread_countdown, PyThreadState *requester
_REQUESTED, _STOPPED, _REQUESTER, _SIZE = 1, 2, 16, 24


class StopTheWorld(NamedTuple):
    """State of the stopped world of one interpreter."""

    requested: bool
    stopped: bool  # all other threads have paused
    requester: Optional[int]  # address of a thread state; None if there is none, or unknown


class FreeThreading:
    """Per-object locks and the stopped world of one process; empty in builds with a GIL."""

    def __init__(self, python: Python) -> None:
        self._python = python
        self._holders: Optional[Dict[int, ThreadState]] = None

    def stop_the_world(self, interpreter: InterpreterState) -> Optional[StopTheWorld]:
        """Return the stop-the-world state of an interpreter; None in builds with a GIL, or if unreadable."""
        layout = self._python.layout
        if layout.is_stoptheworld < 0:
            return None
        try:
            raw = self._python.memory.read(interpreter.address + layout.is_stoptheworld, _SIZE)
        except Fault:
            return None
        requester = int.from_bytes(raw[_REQUESTER:_SIZE], "little")
        known = {thread.address for i in self._python.interpreters for thread in i.threads}
        if max(raw[_REQUESTED : _STOPPED + 2]) > 1 or (requester and requester not in known):
            return None
        return StopTheWorld(bool(raw[_REQUESTED]), bool(raw[_STOPPED]), requester or None)

    def world_wait(self, word: int, thread: ThreadState) -> Optional[str]:
        """Return how a thread's futex wait relates to a stopped world; None if it does not.

        - "stopped": it waits for the world to resume.
        - "stopping": it waits for the other threads to pause.
        """
        layout = self._python.layout
        address = parked_on(self._python.memory, word) if layout.is_stoptheworld >= 0 else None
        if address is None:
            return None
        if address == thread.address + layout.ts_state:
            return "stopped"
        worlds = [interpreter.address + layout.is_stoptheworld for interpreter in self._python.interpreters]
        return "stopping" if any(world <= address < world + _SIZE for world in worlds) else None

    def awaited(self, word: int) -> Optional[LockState]:
        """Return the per-object lock that a thread awaits on a futex word, with its owner; None if it is none.

        The lock has kind "mutex"; its owner is the thread in the critical section.
        """
        python = self._python
        mutex = parked_on(python.memory, word) if python.layout.ob_extra else None
        if mutex is None or mutex % 8 != _OB_MUTEX % 8:
            return None
        try:
            kind = python.objects.type_of(mutex - _OB_MUTEX).name
            locked = bool(python.memory.u8(mutex) & 1)
        except (Fault, NotThat):
            return None
        owner = self._holders_of_mutexes().get(mutex)
        what = f"critical section of {kind}"
        return LockState(mutex - _OB_MUTEX, "mutex", mutex, locked, owner.ident if owner else None, what=what)

    def _holders_of_mutexes(self) -> Dict[int, ThreadState]:
        """Map each held mutex to its thread, cached."""
        if self._holders is None:
            threads = [thread for i in self._python.interpreters for thread in i.threads]
            self._holders = {mutex: thread for thread in threads for mutex in self.held(thread)}
        return self._holders

    def held(self, thread: ThreadState) -> Iterator[int]:
        """Yield the mutexes that a thread's active critical sections hold, innermost first.

        A thread that waits for something else has released them all: its sections are marked inactive.
        """
        memory, layout = self._python.memory, self._python.layout
        if layout.ts_critical_section < 0:
            return
        try:
            section = memory.u64(thread.address + layout.ts_critical_section)
            for _ in range(_MAX_SECTIONS):
                if not section:
                    return
                section_at = section & ~_TAGS
                previous, first, second = memory.words(section_at, 3)
                if not section & _INACTIVE:
                    yield from filter(None, (first, second if section & _TWO_MUTEXES else 0))
                section = previous
        except Fault:
            return
