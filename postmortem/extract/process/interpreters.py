"""Interpreters as evidence; the main one with the hand-offs of its GIL and the collections during the window."""

from __future__ import annotations

from typing import Callable, Iterable, Optional, Tuple

from ...cpython.state.interpreter import InterpreterState
from ...evidence import Collections, Gil, Interpreter, StopTheWorld
from ..recorded.shapes import integer, number
from .context import ProcessContext


def told(
    interpreters: Iterable[InterpreterState],
    context: ProcessContext,
    world: Callable[[InterpreterState], Optional[StopTheWorld]],
) -> Tuple[Interpreter, ...]:
    """Return all interpreters as evidence.

    ``world`` returns an interpreter's stop-the-world.
    """
    return tuple(_told(i, context, world(i)) for i in interpreters)


def _told(interpreter: InterpreterState, context: ProcessContext, world: Optional[StopTheWorld]) -> Interpreter:
    main = interpreter.id == 0
    gil = None
    if interpreter.gil is not None:
        handoffs, rate = _handoffs(context) if main else (None, None)
        holder = context.threads.tid_of_state(interpreter.gil.holder)
        gil = Gil(interpreter.gil.locked, holder, interpreter.gil.interval_s, handoffs, rate)
    return Interpreter(interpreter.id, gil, interpreter.collecting, world, _collections(context) if main else None)


def _handoffs(context: ProcessContext) -> Tuple[Optional[int], Optional[float]]:
    """Return count and rate per second of changes of the GIL's holder during the window; None if unknown."""
    probe = context.probe("gil")
    count, seconds = integer(probe.get("switches")), number(probe.get("seconds"))
    return (None, None) if count is None or not seconds else (count, number(round(count / seconds, 1)))


def _collections(context: ProcessContext) -> Optional[Collections]:
    probe = context.probe("collector")
    seconds, counts = number(probe.get("seconds")), probe.get("counts")
    if not seconds:
        return None
    known = tuple(counts) if isinstance(counts, list) and all(isinstance(n, int) for n in counts) else None
    return Collections(seconds, integer(probe.get("looks")) or 0, integer(probe.get("busy")) or 0, known)
