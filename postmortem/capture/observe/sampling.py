"""A sampler of Python stacks for interpreters that py-spy cannot read, such as free-threaded builds.

Takes some fifty samples a second. Nothing is stopped; a stack that changes while it is read comes out short, or is left
out. It runs in a process of its own, as py-spy does, to leave the capture's CPU time alone; it writes the same format
(Chrome's trace: B and E events with microseconds), and SIGINT ends it early.
"""

from __future__ import annotations

import json
import signal
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...cpython.objects.builtins import NotThat
from ...cpython.runtime.discovery import NoInterpreter, find_runtime
from ...cpython.state.interpreter import Python
from ...memory import Fault, ProcMem
from ...memory.procmem import root_prefix

#: (file, line, qualified name), outermost call first.
_Stack = List[Tuple[str, Optional[int], str]]
#: Frames kept of a deep stack. The innermost ones are left out: they differ from sample to sample.
_MOST_FRAMES = 500


def wanted_for(pid: int) -> bool:
    """Return whether this sampler can read a process that py-spy cannot: a free-threaded one, or one in a chroot.

    py-spy 0.4 looks for libraries below the process's root directory under names that are relative to ours.
    """
    try:
        with ProcMem(pid) as memory:
            return bool(find_runtime(memory).free_threaded or root_prefix(pid))
    except (NoInterpreter, Fault, OSError, ValueError):
        return False


class Trace:
    """The events of every thread: a stack lasts until the next sample that differs from it."""

    def __init__(self, pid: int) -> None:
        self.events: List[Dict[str, Any]] = []
        self._pid = pid
        self._stacks: Dict[int, _Stack] = {}
        self._names: Dict[int, str] = {}

    def note(self, now_us: int, stacks: Dict[int, _Stack], names: Dict[int, Optional[str]]) -> None:
        """Add one sample: ``stacks`` and thread names by tid, ``now_us`` in microseconds since the beginning."""
        for tid in [tid for tid in self._stacks if tid not in stacks]:
            self._change(tid, now_us, [])
            self._close(tid, now_us)
        for tid, stack in stacks.items():
            if tid not in self._stacks:
                label = f": {names[tid]}" if names.get(tid) else ""
                self._names[tid] = f"thread ({tid}){label}"
                self._add("B", tid, now_us, self._names[tid])
            self._change(tid, now_us, stack)

    def end(self, now_us: int) -> None:
        """Close all stacks."""
        self.note(now_us, {}, {})

    def _change(self, tid: int, now_us: int, stack: _Stack) -> None:
        before = self._stacks.get(tid, [])
        same = next((i for i, (a, b) in enumerate(zip(before, stack)) if a != b), min(len(before), len(stack)))
        for frame in reversed(before[same:]):
            self._add("E", tid, now_us, frame[2], frame)
        for frame in stack[same:]:
            self._add("B", tid, now_us, frame[2], frame)
        self._stacks[tid] = stack

    def _close(self, tid: int, now_us: int) -> None:
        self._add("E", tid, now_us, self._names[tid])
        del self._stacks[tid]

    def _add(
        self, kind: str, tid: int, now_us: int, name: str, frame: Optional[Tuple[str, Optional[int], str]] = None
    ) -> None:
        event: Dict[str, Any] = {"ph": kind, "pid": self._pid, "tid": tid, "ts": now_us, "name": name}
        if frame is not None:
            event["args"] = {"filename": frame[0], "line": frame[1]}
        self.events.append(event)


def _stacks(python: Python) -> Tuple[Dict[int, _Stack], Dict[int, Optional[str]]]:
    """Return (tid → stack, tid → name of the thread or None)."""
    stacks: Dict[int, _Stack] = {}
    names: Dict[int, Optional[str]] = {}
    for interpreter in python.look():
        for thread in interpreter.threads:
            if thread.native_id and thread.frames:
                kept = thread.frames[-_MOST_FRAMES:]
                stacks[thread.native_id] = [
                    (f.code.filename, f.line, f.code.qualname or f.code.name) for f in reversed(kept)
                ]
                names[thread.native_id] = thread.name
    return stacks, names


def _ticks(seconds: float, rate: float, ended: List[int]) -> Iterator[int]:
    """Yield the microseconds since the beginning, ``rate`` times a second, until time is up or ``ended`` is not empty."""
    began = time.monotonic()
    while not ended:
        now = time.monotonic() - began
        if now >= seconds:
            return
        yield round(now * 1e6)
        time.sleep(max(0.0, 1 / rate - (time.monotonic() - began - now)))


def record(pid: int, seconds: float, rate: float, ended: List[int]) -> List[Dict[str, Any]]:
    """Return the events of a trace. Raises NoInterpreter; OSError when the process cannot be read."""
    trace, last = Trace(pid), 0
    with ProcMem(pid) as memory:
        python = Python(memory)
        for last in _ticks(seconds, rate, ended):
            try:
                trace.note(last, *_stacks(python))
            except (Fault, NotThat, UnicodeDecodeError):
                continue  # it changed during the read
            except OSError:
                break  # gone
    trace.end(last + round(1e6 / rate))
    return trace.events


def main(arguments: List[str]) -> int:
    """Run the sampler with ``PID SECONDS RATE OUTPUT``; return the exit status."""
    ended: List[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: ended.append(number))
    pid, seconds, rate, output = int(arguments[0]), float(arguments[1]), float(arguments[2]), arguments[3]
    try:
        events = record(pid, seconds, rate, ended)
    except (NoInterpreter, OSError) as exc:
        print(f"Error: {exc}")
        return 1
    with open(output, "w", encoding="utf-8") as stream:
        json.dump(events, stream)
    return 0
