"""Event loops blocked by a coroutine that computes and does not await while other callbacks are ready."""

from __future__ import annotations

from typing import Tuple

from ....evidence import Process, PythonFrame, Thread
from ....findings import Template
from ....findings.found import Said
from .loopsteps import is_coroutine

_KEPT = Template("{function} is a coroutine, and has been in the same step for {lasts:.1f} s: it does not await")
_LATE = Template("the first timer of its loop is {late:.1f} s late")
_READY = Template("{count:n callback} {count:v is|are} ready meanwhile")
_OTHERS = Template("{count:n other task} of the loop cannot run")


def keeps_its_loop(process: Process, thread: Thread, function: PythonFrame) -> Tuple[Said, ...]:
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
    facts = [_KEPT(function=function.function, lasts=loop.callback_lasts_s)]
    if late and loop.next_timer_s is not None:
        facts.append(_LATE(late=-loop.next_timer_s))
    if loop.ready:
        facts.append(_READY(count=loop.ready))
    if waiting:
        facts.append(_OTHERS(count=len(waiting)))
    return tuple(facts)
