"""Futures passed to callbacks of tasks: the end of the task sets them.

Caches share one result in this way: the first caller's task computes it, and a callback of that task sets the future
that the other callers await.
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
    """Return the tasks whose callbacks receive a future, by the future's address.

    asyncio's own callbacks are left out: other modules read what they stand for.
    """
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
    """Return the plain futures passed to a task's callbacks."""
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
