"""Structures of the interpreter, read at both ends of the window without stopping it.

- how often the GIL changed hands, and which thread held it
- the share of the time during which the garbage collector ran
- how fast queues grow
- what threads, tasks and event loops did at the beginning: compared with the core, it shows whether they still do it
- whether the variables of a loop that a thread computes in change from round to round

The collector's share is the share of looks that found it running; all else is counted.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ...cpython.frames.nativecalls import native_call
from ...cpython.heap.gclists import collecting_flag, collections
from ...cpython.heap.keptexceptions import find
from ...cpython.heap.queues import length
from ...cpython.heap.variablesearch import users_of
from ...cpython.objects.builtins import NotThat
from ...cpython.runtime.discovery import NoInterpreter, Runtime, find_runtime
from ...cpython.state.interpreter import InterpreterState, Python, holder_of, switch_counter
from ...cpython.state.rounds import Looks
from ...errors import PostmortemError
from ...frameworks.asyncio.loopturns import turn_of
from ...frameworks.asyncio.tasks import Asyncio, TaskState
from ...frameworks.greenlet.switching import read_greenlets
from ...frameworks.queues import Queues
from ...frameworks.tornado.coroutines import Tornado
from ...frameworks.trio.runners import Trio
from ...frameworks.twisted.deferreds import Deferreds
from ...memory.base import Fault
from ...memory.procmem import ProcMem
from ...timelimits import TimeLimit
from ..freeze.image import Source

_WORD = 1 << 64
#: Bytes compared of a frame's instruction: an index up to 3.10, later the lower half of a pointer, which is enough.
_INSTRUCTION = 4
#: Seconds for finding the interpreters of all processes (a millisecond or two each), and for the search for queues,
#: which reads the stacks.
_MOST_S, _MOST_QUEUES_S = 0.25, 0.2
#: Seconds for searching memory for exceptions, at a gigabyte a second.
_MOST_MEMORY_S = 1.0
#: Seconds between two looks at the collectors' flags; each costs 2 µs.
_STEP_S = 0.01
#: Every so many steps the variables of the thread that has the GIL are looked at, which takes some milliseconds; and the most
#: threads, of all processes together, of which they are.
_EVERY, _MOST_COMPUTING = 2, 2
_MOST_COLLECTORS = 64
#: Number of processes that are searched; the root is among the first.
_MOST_SEARCHED = 8
#: Number of calls into C, over all threads of a process, that are checked at each look for being still the same.
_MOST_CALLS = 32
_MOST_TASKS = 5000
#: Number of times that the collector's lists of a running process are searched for greenlets.
_MOST_LISTED = 5
#: Number of changes of the GIL's holder that are kept; a window of seconds sees some hundreds.
_MOST_HOLDERS = 1000
_FAILED = (NoInterpreter, Fault, NotThat, OSError, ValueError)


class Probes:
    """Probes of those processes in which there is something to measure, as far as the time allows.

    Why a process has none is recorded when its core is read. ``watch``: whether a window follows.
    """

    def __init__(self, pids: Iterable[int], watch: bool) -> None:
        began = time.monotonic()
        computing: List[Looks] = []
        self._interpreters: Dict[int, _Interpreter] = {}
        for pid in pids:
            if time.monotonic() > began + _MOST_S:
                break
            with contextlib.suppress(*_FAILED):
                self._interpreters[pid] = _Interpreter(pid, computing)
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, name="collectors", daemon=True)
        if watch:
            searched = list(self._interpreters.values())[:_MOST_SEARCHED]
            until = time.monotonic() + _MOST_QUEUES_S
            for known in searched:
                known.look_around(until)
            until = time.monotonic() + _MOST_MEMORY_S
            for known in searched:
                known.find_exceptions(until)
            try:
                self._looking.start()
            except RuntimeError:  # no thread can be started: nothing is known of the time between the two ends
                for known in searched:
                    known.calls.clear()

    def _look(self) -> None:
        watched = list(self._interpreters.values())[:_MOST_COLLECTORS]
        step = _STEP_S * max(1.0, len(watched) / _MOST_SEARCHED)
        while not self._over.wait(step):
            for known in watched:
                known.look()

    def finish(self) -> Dict[int, Dict[str, Any]]:
        """Return each process's measurements by the name of the probe; None if it is gone, or has no such thing."""
        self._over.set()
        if self._looking.is_alive():
            self._looking.join()
        return {pid: known.finish() for pid, known in self._interpreters.items()}


def _others(python: Python, interpreter: InterpreterState) -> List[TaskState]:
    """Return the greenlets and the tasks of Twisted and of Tornado."""
    futures = Asyncio(python, interpreter).futures
    return [
        *_greenlets(python, interpreter),
        *Deferreds(python, interpreter).read(()).tasks,
        *Tornado(python, interpreter, futures).read().tasks,
    ]


def _greenlets(python: Python, interpreter: InterpreterState) -> List[TaskState]:
    """Return the greenlets; looks again if none was found: the lists that they are in change while the program runs."""
    for _ in range(_MOST_LISTED):
        read = read_greenlets(python, interpreter)
        if read.tasks or not (read.tracked or read.problems):  # or the library is not in use
            return read.tasks
    return []


class _Interpreter:
    """The main interpreter of a process. Raises NoInterpreter, Fault or OSError when none is found.

    ``computing``: the looks at loops of all processes.
    """

    def __init__(self, pid: int, computing: List[Looks]) -> None:
        self._memory = ProcMem(pid)
        self._queues: Dict[int, Dict[str, int]] = {}
        self._queues_began = 0.0
        self._lengths: List[Any] = []
        self._looks = self._busy = 0
        self._holders: List[List[float]] = []  # [time.monotonic(), address of the thread state, 0 for none]
        self._python: Optional[Python] = None
        self._exceptions: Optional[Dict[str, Any]] = None
        #: Address of a task → what shows that it went on (TaskState.place); of a trio task: its number of steps.
        self._waits: Optional[Dict[str, int]] = None
        self._turns: Dict[str, List[float]] = {}  # address of an event loop → [start of its turn, its callback]
        self._ticks = 0
        self._all_looks = computing
        self._computing: Dict[int, Looks] = {}  # address of a thread state → the looks at its loop
        self.calls: Dict[str, List[int]] = {}  # address of a thread state → the call into C that it is in
        self._instructions: Dict[
            str, Tuple[int, bytes]
        ] = {}  # address of a thread state → (address of its frame's instruction, content)
        try:
            self._runtime = find_runtime(self._memory)
            self._switches = self._first_switches()
            self._flag = self._find_flag(self._runtime)
            self._first = self._collections()
        except BaseException:
            self._memory.close()
            raise
        self._began = time.monotonic()

    def _first_switches(self) -> Optional[Dict[str, Any]]:
        try:
            address, interval = switch_counter(self._memory, self._runtime)
            return {"address": address, "interval": interval, "first": self._memory.u64(address)}
        except Fault:
            return None  # a free-threaded build

    def _find_flag(self, runtime: Runtime) -> Optional[int]:
        interpreter = self._memory.u64(runtime.address + runtime.layout.rt_interpreters_main)
        return collecting_flag(runtime, interpreter)

    def _collections(self) -> Any:
        return collections(self._memory, self._runtime, self._flag) if self._flag is not None else None

    def look_around(self, until: float) -> None:
        """Read the queues that frames lead to, and what threads, tasks and event loops are doing.

        Does nothing after ``until`` (time.monotonic()).
        """
        if time.monotonic() > until:
            return
        self._memory.until = until
        try:
            python = Python(self._memory)
            states = [state for interpreter in python.interpreters for state in interpreter.threads]
            tasks = [task for interpreter in python.interpreters for task in Asyncio(python, interpreter).tasks()]
            found = Queues(python, TimeLimit.on_the_clock(until)).found(users_of(states, tasks))
            steps = [step for interpreter in python.interpreters for step in Trio(python, interpreter).all_steps()]
            self._waits = {str(task.address): task.place for task in tasks[:_MOST_TASKS]}
            self._waits.update((str(task), count) for task, count in steps[:_MOST_TASKS])
            with contextlib.suppress(*_FAILED):  # a large heap takes longer to search than there is time
                others = [task for interpreter in python.interpreters for task in _others(python, interpreter)]
                self._waits.update((str(task.address), task.place) for task in others[:_MOST_TASKS])
                found += Queues(python, TimeLimit.on_the_clock(until)).found(users_of((), others))
        except _FAILED:
            return
        finally:
            self._memory.until = float("inf")
        self._python = python
        for state in states:
            turn = turn_of(python.frames, state.frames)
            if turn is not None:
                self._turns[str(turn.loop)] = [turn.began, turn.handle]
            call = native_call(python.frames, state.frames[0]) if state.frames else None
            if call is not None:
                self.calls[str(state.address)] = list(call.key)
                if len(self._instructions) < _MOST_CALLS:
                    self._watch(str(state.address), state.frames[0].address + python.layout.fr_instr)
        self._lengths = [(python.objects, queue) for queue in found]
        self._queues_began = time.monotonic()
        self._queues = self._measure()

    def find_exceptions(self, until: float) -> None:
        """Search memory for exceptions with a traceback. Does nothing after ``until`` (time.monotonic())."""
        if self._python is None or time.monotonic() > until:
            return
        with contextlib.suppress(*_FAILED, PostmortemError):
            source = Source(self._memory.pid)
            try:
                found = find(self._python, self._memory, source.look().pages.touched, TimeLimit.on_the_clock(until))
            finally:
                source.close()
            # a partial result is used; without one in time, the core is searched instead
            if found.exceptions or time.monotonic() < until:
                self._exceptions = {"addresses": found.exceptions, "tracebacks": found.tracebacks}

    def _measure(self) -> Dict[int, Dict[str, int]]:
        found = {}
        for objects, queue in self._lengths:
            with contextlib.suppress(*_FAILED):
                found[queue.address] = {"items": length(objects, queue)}
        return found

    def _watch(self, state: str, at: int) -> None:
        with contextlib.suppress(Fault, OSError):
            self._instructions[state] = (at, self._memory.read(at, _INSTRUCTION))

    def look(self) -> None:
        """Sample the collector's flag, the GIL's holder and the instructions of calls into C."""
        if self._flag is not None:
            with contextlib.suppress(Fault, OSError):
                self._busy += bool(self._memory.u32(self._flag))
                self._looks += 1
        self._ticks += 1
        holder = self._holder()
        if holder is not None:
            self._note_holder(holder)
            self._look_at_loop(holder, self._ticks % _EVERY == 0)
        for state, (at, first) in list(self._instructions.items()):
            with contextlib.suppress(Fault, OSError):
                if self._memory.read(at, _INSTRUCTION) == first:
                    continue
            # A loop that repeats a call is at the same instruction at most looks, not at every one: a single difference
            # shows that the call has returned.
            del self._instructions[state]
            self.calls.pop(state, None)

    def _look_at_loop(self, holder: int, whole: bool) -> None:
        """Look at the variables of the loop in which the GIL's holder computes, or only where it is."""
        new = whole and holder != 0 and holder not in self._computing and len(self._all_looks) < _MOST_COMPUTING
        if new and self._python is not None:
            self._computing[holder] = Looks(self._python, holder)
            self._all_looks.append(self._computing[holder])
        looks = self._computing.get(holder)
        if looks is not None:
            with contextlib.suppress(*_FAILED):
                looks.look() if whole else looks.glance()

    def _told_rounds(self) -> Dict[str, Any]:
        found = {str(state): looks.rounds() for state, looks in self._computing.items()}
        return {state: rounds._asdict() for state, rounds in found.items() if rounds is not None}

    def _holder(self) -> Optional[int]:
        """Return the thread state that has the GIL, 0 for none; None if it cannot be read."""
        with contextlib.suppress(Fault, OSError):
            return holder_of(self._memory, self._switches["address"]) if self._switches is not None else None
        return None

    def _note_holder(self, holder: int) -> None:
        changed = not self._holders or self._holders[-1][1] != holder
        if changed and len(self._holders) < _MOST_HOLDERS:
            self._holders.append([round(time.monotonic(), 4), holder])

    def finish(self) -> Dict[str, Any]:
        """Return the measurements by the name of the probe, and close the process's memory."""
        try:
            return {
                "gil": self._gil(),
                "collector": self._collector(),
                "queues": self._growth(),
                "exceptions": self._exceptions,
                "calls": self.calls,
                "turns": self._told_turns(),
                "waits": self._waits,
                "rounds": self._told_rounds(),
            }
        finally:
            self._memory.close()

    def _gil(self) -> Optional[Dict[str, Any]]:
        known = self._switches
        if known is None:
            return None
        try:
            last = self._memory.u64(known["address"])
        except (OSError, Fault):
            return None
        return {
            "switches": (last - known["first"]) % _WORD,
            "seconds": round(time.monotonic() - self._began, 6),
            "switch_interval_s": known["interval"],
            "holders": self._holders,
        }

    def _collector(self) -> Optional[Dict[str, Any]]:
        if self._flag is None:
            return None
        counts = None
        with contextlib.suppress(OSError, Fault):
            last = self._collections()
            if self._first is not None and last is not None:
                counts = [max(0, now - then) for now, then in zip(last, self._first)]
        seconds = round(time.monotonic() - self._began, 6)
        return {"seconds": seconds, "looks": self._looks, "busy": self._busy, "counts": counts}

    def _told_turns(self) -> Dict[str, Any]:
        """Return the event loops' turns; ``now`` is time.monotonic(), which all processes of a machine share."""
        looked = self._python is not None
        return {
            "now": time.monotonic(),
            "seconds": time.monotonic() - self._began,
            "loops": self._turns if looked else None,
        }

    def _growth(self) -> Optional[Dict[str, Any]]:
        """Return, for the address of each queue, its length at the beginning and at the end."""
        if not self._queues:
            return None
        seconds = round(time.monotonic() - self._queues_began, 6)
        now = self._measure()
        grown = {str(at): [then["items"], now[at]["items"]] for at, then in self._queues.items() if at in now}
        return {"seconds": seconds, "items": grown}
