"""The observation window: counters of threads, and py-spy's samples.

- ``raw/proc/PID/window.json``: written by ``capture``
- ``raw/pyspy/PID.chrometrace.json``: written by py-spy: B and E events with microseconds, one track per thread, frames
  named by their qualified name
"""

from __future__ import annotations

import re
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Tuple

from ...evidence import Counters, LeftOut, PythonFrame, Sample
from ...foreign.held import Folder
from . import documents
from .shapes import MOST_SAMPLES, integer, number, read_json

#: Distinct stacks kept per thread, most frequent first; the rest is noise.
MAX_STACKS = 40
#: Innermost and outermost frames kept of a deeper stack.
_INNER, _OUTER = 60, 200
#: Share of a thread's samples that must agree on the outermost function.
_MOSTLY = 0.6
#: A thread by its tid; by its pthread_t if the interpreter's thread state has none (up to 3.10).
_TRACK = re.compile(r"thread \((?:([0-9]{1,10})|0x([0-9A-Fa-f]{1,16}))\)(?:: (.*))?$", re.S)
_KINDS = ["B", "E"]  # a list: the compared value may be unhashable
#: PID_MAX_LIMIT of Linux. A pthread_t is an address, far above it.
_LARGEST_TID = 1 << 22
#: Frames processed per trace, a limit on traces of ever deeper stacks.
_MOST_FRAMES = 10_000_000


class Window(NamedTuple):
    """The window of one process; empty if there was none."""

    seconds: Optional[float]
    threads: Dict[int, Dict[str, Any]]  # tid → raw record
    io: Optional[Dict[str, int]]
    rss_growth: Optional[int]
    probes: Dict[str, Any]
    cpu_s: Optional[float] = None
    minor_faults: Optional[int] = None
    major_faults: Optional[int] = None
    began: Optional[float] = None  # time.monotonic() of the captured machine


NO_WINDOW = Window(None, {}, None, None, {})


def read_window(folder: Folder, pid: int) -> Window:
    """Return a process's ``window.json``; an empty window if missing or damaged."""
    data = documents.read(folder, f"raw/proc/{pid}/window.json", documents.WINDOW)
    if "threads" not in data:
        return NO_WINDOW
    return Window(
        number(data.get("seconds")),
        {int(tid): thread for tid, thread in data["threads"].items()},
        data.get("io"),
        data.get("rss_growth"),
        data.get("probes", {}),
        number(data.get("cpu_s")),
        data.get("minor_faults"),
        data.get("major_faults"),
        number(data.get("began")),
    )


def counters(window: Window, tid: int) -> Optional[Counters]:
    """Return a thread's counters; None if unknown."""
    raw = window.threads.get(tid)
    if raw is None or window.seconds is None:
        return None
    return Counters(
        seconds=window.seconds,
        cpu_s=number(raw.get("cpu_s")),
        voluntary_switches=integer(raw.get("voluntary_switches")),
        involuntary_switches=integer(raw.get("involuntary_switches")),
        run_delay_s=number(raw.get("run_delay_s")),
        minor_faults=integer(raw.get("minor_faults")),
        major_faults=integer(raw.get("major_faults")),
        io_delay_s=number(raw.get("io_delay_s")),
        read_calls=integer(raw.get("read_calls")),
        write_calls=integer(raw.get("write_calls")),
        states=_counts(raw.get("states")),
        syscalls=_counts(raw.get("syscalls")),
        wchan=_counts(raw.get("wchan")),
    )


def whole(window: Window) -> Optional[Counters]:
    """Return the process's counters, including threads that have ended; None without a window."""
    if window.seconds is None:
        return None
    calls = window.io or {}
    return Counters(
        seconds=window.seconds,
        cpu_s=window.cpu_s,
        minor_faults=window.minor_faults,
        major_faults=window.major_faults,
        read_calls=calls.get("syscr"),
        write_calls=calls.get("syscw"),
    )


def _counts(value: Any) -> Dict[str, int]:
    if not isinstance(value, dict):
        return {}
    known = {name: integer(count) for name, count in sorted(value.items())}
    return {name: count for name, count in known.items() if count is not None}


# ---------------------------------------------------------------------- py-spy


def read_samples(folder: Folder, pid: int, rate: float = 50.0) -> Dict[int, Tuple[Sample, ...]]:
    """Return py-spy's distinct stacks by thread, most frequent first.

    - keys: tid, or pthread_t up to Python 3.10 (``assigned`` distinguishes them)
    - ``rate``: samples per second; converts durations to counts, since the trace contains changes only
    """
    events = read_json(folder, f"raw/pyspy/{pid}.chrometrace.json", MOST_SAMPLES)
    if isinstance(events, dict):
        events = events.get("traceEvents")
    if not isinstance(events, list):
        return {}
    tracks: Dict[Any, List[Dict[str, Any]]] = {}
    for event in events:
        if isinstance(event, dict) and event.get("ph") in _KINDS and number(event.get("ts")) is not None:
            track = event.get("tid")
            tracks.setdefault(track if isinstance(track, (int, str)) else None, []).append(event)
    found: Dict[int, Tuple[Sample, ...]] = {}
    left = _MOST_FRAMES
    for track in tracks.values():
        tid, samples, left = _read_track(track, rate, left)
        if tid is not None:
            found[tid] = samples
    return found


def assigned(samples: Dict[int, Tuple[Sample, ...]], tids: Collection[int]) -> Dict[int, Tuple[Sample, ...]]:
    """Return the samples whose tid is known without an interpreter.

    These are all that have a tid, and those of a process's only thread.
    """
    if len(samples) == 1 and len(tids) == 1:
        return dict(zip(tids, samples.values()))
    return {tid: found for tid, found in samples.items() if tid <= _LARGEST_TID}


def _read_track(events: List[Dict[str, Any]], rate: float, left: int) -> Tuple[Optional[int], Tuple[Sample, ...], int]:
    """Return (tid, samples, frames left to process) of one thread's B and E events.

    A stack lasts from one change to the next.
    """
    tid: Optional[int] = None
    stack: List[Optional[PythonFrame]] = []
    seen: Dict[Tuple[PythonFrame, ...], List[float]] = {}  # frames → [seconds, first, last]
    since = 0.0
    for event in events:
        now = event["ts"] / 1e6
        if now > since:
            left -= len(stack)
            if left < 0:
                break
            _note(seen, stack, since, now)
        since = now
        if event["ph"] == "E":
            if stack:
                stack.pop()
            continue
        match = _TRACK.match(str(event.get("name"))) if not stack else None
        if match:
            tid = int(match[1]) if match[1] else int(match[2], 16)
            stack.append(None)
        else:
            stack.append(_frame(event))
    samples = [
        Sample(max(1, round(total * rate)), round(first, 4), round(last, 4), *_shortened(frames))
        for frames, (total, first, last) in seen.items()
    ]
    samples.sort(key=lambda s: (-s.count, s.first_s))
    return tid, tuple(_whole(samples)[:MAX_STACKS]), left


def _shortened(frames: Tuple[PythonFrame, ...]) -> Tuple[Tuple[PythonFrame, ...], Optional[LeftOut]]:
    """Return a deep stack without its middle: forty stacks of a recursion would be megabytes of equal lines."""
    left = len(frames) - _INNER - _OUTER
    return (frames, None) if left <= 0 else ((*frames[:_INNER], *frames[-_OUTER:]), LeftOut(_INNER, left))


def _whole(samples: List[Sample]) -> List[Sample]:
    """Return the samples without torn stacks.

    py-spy reads a running thread without stopping it and sometimes loses outer frames. A thread has one outermost
    function; stacks that end elsewhere are torn, unless there are many.
    """
    roots: Dict[Tuple[str, str], int] = {}
    for sample in samples:
        root = (sample.frames[-1].file, sample.frames[-1].function)
        roots[root] = roots.get(root, 0) + sample.count
    main = max(roots, key=lambda r: roots[r], default=None)
    if main is None or roots[main] < _MOSTLY * sum(roots.values()):
        return samples
    return [s for s in samples if (s.frames[-1].file, s.frames[-1].function) == main]


def _note(
    seen: Dict[Tuple[PythonFrame, ...], List[float]], stack: List[Optional[PythonFrame]], since: float, now: float
) -> None:
    frames = tuple(f for f in reversed(stack) if f is not None)
    if not frames:
        return
    record = seen.setdefault(frames, [0.0, since, now])
    record[0] += now - since
    record[2] = now


def _frame(event: Dict[str, Any]) -> PythonFrame:
    name = str(event.get("name"))
    args = event.get("args") if isinstance(event.get("args"), dict) else {}
    line = integer(args.get("line")) if args else None
    function = name.rsplit(".", 1)[-1] if not name.startswith("<") else name
    return PythonFrame(str(args.get("filename", "")) if args else "", line or None, function, name)
