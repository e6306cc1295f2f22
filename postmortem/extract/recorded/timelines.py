"""Timelines of threads over the window, from looks at ``/proc`` and at the GIL's holder.

Looks are samples: a thread may have done something else in between. Under heavy contention the GIL's holder changes
thousands of times a second and is sampled a hundred times.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from ...evidence import Stretch
from ...evidence.vocabulary import Doing
from .shapes import integer, number
from .window import Window

#: Stretches per thread; more do not improve the picture.
_MOST = 400
_RUNNING = "running"


#: (seconds since the window began, address of the holder's thread state; 0: no holder).
GilHolders = Tuple[Tuple[float, int], ...]


def holders(window: Window) -> GilHolders:
    """Return the holders of the main interpreter's GIL; empty in free-threaded builds and without a window."""
    probe = window.probes.get("gil")
    found = probe.get("holders") if isinstance(probe, dict) else None
    if not isinstance(found, list) or window.began is None:
        return ()
    rows = [row for row in found if isinstance(row, list) and len(row) == 2]
    known = [(number(at), integer(holder)) for at, holder in rows]
    return tuple((max(0.0, at - window.began), holder) for at, holder in known if at is not None and holder is not None)


def timeline(
    window: Window, tid: int, state: Optional[int], held: GilHolders, is_gil: Callable[[int], Optional[bool]]
) -> Tuple[Stretch, ...]:
    """Return a thread's timeline without gaps; empty without a window.

    - ``state``: address of its thread state
    - ``is_gil(address)``: whether a futex is a GIL's; None if unknown
    """
    raw = window.threads.get(tid, {}).get("course")
    if window.seconds is None or not isinstance(raw, list):
        return ()
    events: List[Tuple[float, int, Optional[Doing]]] = []  # (time, 0: /proc or 1: GIL, state seen)
    for row in raw:
        seen = _seen(row, is_gil)
        if seen is not None:
            events.append((seen[0], 0, seen[1]))
    if not events:
        return ()
    if state:
        events += [(at, 1, "holds" if holder == state else None) for at, holder in held]
    return _stretches(sorted(events, key=lambda event: event[:2]), window.seconds)


def _seen(row: Any, is_gil: Callable[[int], Optional[bool]]) -> Optional[Tuple[float, Doing]]:
    """Return (time, state of the thread) of one look; None if invalid."""
    if not isinstance(row, list) or len(row) != 4:
        return None
    at, state, call, word = number(row[0]), row[1], row[2], integer(row[3])
    if at is None:
        return None
    if state == "R" or (call == _RUNNING and state not in ("S", "D", "T", "t")):
        return at, "runs"
    if call == "futex" and word:
        wanted = is_gil(word)
        return at, "unknown" if wanted is None else "waits" if wanted else "blocked"
    return at, "blocked" if state in ("S", "D", "T", "t") else "unknown"


def _stretches(events: List[Tuple[float, int, Optional[Doing]]], seconds: float) -> Tuple[Stretch, ...]:
    """Return the stretches between events.

    While a thread holds the GIL, that is its state, whatever the last look at ``/proc`` showed: it may be older.
    """
    found: List[Stretch] = []
    base: Doing = "unknown"
    doing: Optional[Doing] = None
    holds, since = False, 0.0
    for at, kind, what in events:
        if kind == 0 and what is not None:
            base = what
        else:
            holds = what == "holds"
        now: Doing = "holds" if holds else base
        if now == doing:
            continue
        if doing and at > since:
            found.append(Stretch(round(since, 4), round(at, 4), doing))
            since = at
        doing = now
    if doing and seconds > since:
        found.append(Stretch(round(since, 4), round(seconds, 4), doing))
    return tuple(found[:_MOST])
