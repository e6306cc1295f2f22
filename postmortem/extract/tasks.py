"""asyncio's tasks and loops → evidence."""

from __future__ import annotations

from typing import Callable, Dict, List, Tuple

from ..cpython.code import Code
from ..cpython.frames import Frame
from ..cpython.interpreter import Python
from ..cpython.objects import NotThat
from ..cpython.tasks import Asyncio, LoopState, TaskState
from ..evidence import Gap, Loop, PythonFrame, Task
from ..memory import Fault


def read_tasks(
    python: Python, show: Callable[[Frame], PythonFrame], tid_of_ident: Dict[int, int], gaps: List[Gap]
) -> Tuple[Tuple[Loop, ...], Tuple[Task, ...]]:
    """All interpreters' loops and tasks. Ids count from 1 in the order found and carry no address."""
    loops: List[Loop] = []
    tasks: List[Task] = []
    for interpreter in python.interpreters:
        asyncio = Asyncio(python, interpreter)
        states = sorted(asyncio.tasks(), key=_by_name)
        names = {}
        for state in asyncio.loops(states):
            names[state.address] = f"loop-{len(loops) + 1}"
            tid = tid_of_ident.get(state.ident) if state.ident is not None else None
            running = next((t.name for t in states if t.loop == state.address and t.state == "running"), None)
            loops.append(_loop(python, state, names[state.address], tid, running))
        for task in states:
            stack = tuple(show(f) for f in task.frames)
            loop = names.get(task.loop) if task.loop else None
            tasks.append(Task(f"task-{len(tasks) + 1}", task.name, task.state, loop, stack, task.awaiting))
        gaps.extend(Gap("cpython", "asyncio", problem) for problem in asyncio.problems)
    return tuple(loops), tuple(tasks)


def _by_name(task: TaskState) -> Tuple[str, int, str]:
    """Task-2 before Task-10; a set's order is no order."""
    name = task.name or ""
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :][-9:] or 0), name


def _loop(python: Python, state: LoopState, ident: str, tid: object, running: object) -> Loop:
    kind = "asyncio" if "EventLoop" in state.kind or state.kind.startswith("_Unix") else state.kind
    callbacks = []
    for address in state.callbacks:
        try:
            code = Code(python.objects, address)
        except (Fault, NotThat):
            continue
        callbacks.append(PythonFrame(code.filename, code.firstlineno, code.name, code.qualname))
    return Loop(
        id=ident,
        tid=tid if isinstance(tid, int) else None,
        kind=kind,
        ready=state.ready,
        scheduled=state.scheduled,
        running_task=running if isinstance(running, str) else None,
        ready_callbacks=tuple(dict.fromkeys(callbacks)),
        readers=state.readers,
    )
