"""Futures that a function is handed which is called at the end of a task: that task's end is what sets them.

So a cache shares one result among all who ask for it: the first one's task runs, the others await a future which a callback of
that task sets.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from ...cpython.objects.builtins import NotThat
from ...evidence import Waker
from ...frameworks.asyncio.futures import FUTURE
from ...frameworks.asyncio.tasks import Asyncio, TaskState
from ...memory import Fault

_MOST_CALLBACKS = 50


def called_back(asyncio: Asyncio, states: Sequence[TaskState], ids: Dict[int, str]) -> Dict[int, List[Waker]]:
    """By the address of the future. asyncio's own callbacks are left out: what they stand for is read elsewhere."""
    found: Dict[int, List[Waker]] = {}
    for state in states:
        if state.state == "done":
            continue
        for future in _handed(asyncio, state.address):
            name = f"a callback of task {state.name or ids[state.address]}"
            waker = Waker("callback", "memory", task=ids[state.address], name=name)
            if waker not in found.setdefault(future, []):
                found[future].append(waker)
    return found


def _handed(asyncio: Asyncio, task: int) -> List[int]:
    """The bare futures that callbacks of a task were given."""
    found = []
    try:
        for called in asyncio.futures.callbacks(task)[:_MOST_CALLBACKS]:
            code = asyncio.functions.code(called)
            if code is not None and "/asyncio/" not in code.filename:
                found += [value for value in asyncio.functions.carried(called) if _is_bare(asyncio, value)]
    except (Fault, NotThat):
        pass
    return found


def _is_bare(asyncio: Asyncio, value: int) -> bool:
    return asyncio.futures.kind(value) == FUTURE
