"""Which futures the callbacks of tasks were handed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional

from postmortem.cpython.objects.builtins import NotThat
from postmortem.evidence import Waker
from postmortem.extract.waits.callbacks import called_back
from postmortem.frameworks.asyncio.futures import FUTURE, TASK
from postmortem.frameworks.asyncio.tasks import TaskState

FIRST, SECOND, SHARED, CALLBACK = 0x1000, 0x2000, 0x3000, 0x4000


def told(carried: List[int], file: str = "/v/site-packages/cache.py", state: str = "pending") -> Dict[int, List[Waker]]:
    """Return the wakers of a task with one callback, a function in ``file``, beside a second task that cannot be read."""

    def callbacks(task: int) -> List[int]:
        if task == SECOND:
            raise NotThat("damaged")
        return [CALLBACK]

    kinds: Dict[int, Optional[str]] = {SHARED: FUTURE, FIRST: TASK}
    futures = SimpleNamespace(callbacks=callbacks, kind=kinds.get)
    functions = SimpleNamespace(code=lambda _c: SimpleNamespace(filename=file), carried=lambda _c: carried)
    asyncio: Any = SimpleNamespace(futures=futures, functions=functions)
    states: Any = [
        SimpleNamespace(address=at, name=name, state=state) for at, name in ((FIRST, "load"), (SECOND, None))
    ]
    known: List[TaskState] = states
    return called_back(asyncio, known, {FIRST: "task-1", SECOND: "task-2"})


def test_a_future_that_a_callback_is_to_set() -> None:
    """As a cache's callback has it as an argument; each task once, and nothing else that the callback has at hand."""
    waker = Waker("callback", "memory", task="task-1", name="a callback of task load")
    assert told([0x9, SHARED, FIRST, SHARED]) == {SHARED: [waker]}


def test_what_says_nothing() -> None:
    """asyncio's own callbacks, whose meaning is read elsewhere, and those of a task that has ended."""
    assert told([SHARED], "/lib/python3.12/asyncio/tasks.py") == {}
    assert told([SHARED], state="done") == {}
