"""What each interpreter says of itself, with what the window counted of the main one."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Optional, Tuple

from ...cpython.state.interpreter import InterpreterState
from ...evidence import Collections, Gil, Interpreter, StopTheWorld
from ..recorded.shapes import integer, number
from ..recorded.window import Window
from .threadtable import ThreadTable


def told(
    interpreters: Iterable[InterpreterState],
    window: Window,
    threads: ThreadTable,
    world: Callable[[InterpreterState], Optional[StopTheWorld]],
) -> Tuple[Interpreter, ...]:
    """``world``: whether an interpreter has stopped its threads."""
    return tuple(_told(i, window, threads, world(i)) for i in interpreters)


def _told(
    interpreter: InterpreterState, window: Window, threads: ThreadTable, world: Optional[StopTheWorld]
) -> Interpreter:
    main = interpreter.id == 0
    gil = None
    if interpreter.gil is not None:
        handoffs, rate = _handoffs(window) if main else (None, None)
        holder = threads.tid_of_state(interpreter.gil.holder)
        gil = Gil(interpreter.gil.locked, holder, interpreter.gil.interval_s, handoffs, rate)
    return Interpreter(interpreter.id, gil, interpreter.collecting, world, _collections(window) if main else None)


def _handoffs(window: Window) -> Tuple[Optional[int], Optional[float]]:
    """The interpreter's own count of changes of the GIL's holder over the window."""
    probe = _probe(window, "gil")
    count, seconds = integer(probe.get("switches")), number(probe.get("seconds"))
    return (None, None) if count is None or not seconds else (count, number(round(count / seconds, 1)))


def _collections(window: Window) -> Optional[Collections]:
    probe = _probe(window, "collector")
    seconds, counts = number(probe.get("seconds")), probe.get("counts")
    if not seconds:
        return None
    known = tuple(counts) if isinstance(counts, list) and all(isinstance(n, int) for n in counts) else None
    return Collections(seconds, integer(probe.get("looks")) or 0, integer(probe.get("busy")) or 0, known)


def _probe(window: Window, name: str) -> Dict[str, object]:
    found = window.probes.get(name)
    return found if isinstance(found, dict) else {}
