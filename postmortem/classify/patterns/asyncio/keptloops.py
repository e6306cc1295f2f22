"""An event loop that a coroutine keeps for itself: it computes and does not await, while others stand in line."""

from __future__ import annotations

from typing import Tuple

from ....evidence import Process, PythonFrame, Thread
from ...facts.view import do, plural
from .loopsteps import is_coroutine


def keeps_its_loop(process: Process, thread: Thread, function: PythonFrame) -> Tuple[str, ...]:
    """The facts, when a thread has run the same step of this coroutine all the time, and something of its loop is late for
    that; else nothing."""
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
