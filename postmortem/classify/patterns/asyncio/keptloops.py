"""Event loops blocked by a coroutine that computes and does not await while other callbacks are ready."""

from __future__ import annotations

from typing import Tuple

from ....evidence import Process, PythonFrame, Thread
from ...facts.view import do, plural
from .loopsteps import is_coroutine


def keeps_its_loop(process: Process, thread: Thread, function: PythonFrame) -> Tuple[str, ...]:
    """Return the facts if a thread has run one step of this coroutine all the time and delays its loop; else ()."""
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    if (
        loop is None
        or loop.turned is not False
        or loop.callback_lasts_s is None
        or not is_coroutine(process, loop, function)
    ):
        return ()
    late = loop.next_timer_s is not None and loop.next_timer_s < 0
    waiting = [t for t in process.tasks if t.loop == loop.id and t.state == "pending"]
    if not late and not loop.ready:
        return ()
    facts = [
        f"{function.function} is a coroutine, and in the same step since {loop.callback_lasts_s:.1f} s: it does not await"
    ]
    if late and loop.next_timer_s is not None:
        facts.append(f"the first timer of its loop is {-loop.next_timer_s:.1f} s late")
    if loop.ready:
        facts.append(f"{plural(loop.ready, 'callback')} {do(loop.ready, 'stand')} ready meanwhile")
    if waiting:
        facts.append(f"{plural(len(waiting), 'other task')} of the loop cannot run")
    return tuple(facts)
