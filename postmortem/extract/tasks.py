"""asyncio's tasks and loops → evidence."""

from __future__ import annotations

from typing import Dict, List, Optional, Protocol, Sequence, Tuple

from ..cpython.code import Code
from ..cpython.frames import Frame
from ..cpython.interpreter import Python
from ..cpython.objects import NotThat
from ..cpython.streams import awaited_descriptor
from ..cpython.tasks import Asyncio, LoopState, TaskState
from ..evidence import Gap, Loop, PythonFrame, Task
from ..evidence import replace as changed
from ..memory import Fault


class Owner(Protocol):
    """The process that the tasks belong to, as far as they need it."""

    def frame(self, frame: Frame) -> PythonFrame: ...

    def tid(self, ident: Optional[int]) -> Optional[int]: ...

    def note_descriptor(self, fd: int) -> Optional[str]:
        """The resource of a descriptor, None for what is no socket or pipe."""

    def suspended(self, tid: int, frames: Sequence[Frame]) -> None: ...


def read_tasks(python: Python, owner: Owner, gaps: List[Gap]) -> Tuple[Tuple[Loop, ...], Tuple[Task, ...]]:
    """All interpreters' loops and tasks. Ids count from 1 in the order found and carry no address."""
    loops: List[Loop] = []
    tasks: List[Task] = []
    for interpreter in python.interpreters:
        asyncio = Asyncio(python, interpreter)
        states = sorted(asyncio.tasks(), key=_by_name)
        names: Dict[int, str] = {}
        tids: Dict[int, int] = {}
        for state in asyncio.loops(states):
            names[state.address] = f"loop-{len(loops) + 1}"
            tid = owner.tid(state.ident)
            if tid is not None:
                tids[state.address] = tid
            running = next((t.name for t in states if t.loop == state.address and t.state == "running"), None)
            noted = [owner.note_descriptor(fd) for fd in state.descriptors]
            sockets = tuple(r for r in noted if r is not None and r.startswith("socket"))
            loop_evidence = _loop(python, state, names[state.address], tid, running)
            loops.append(changed(loop_evidence, sockets=sockets))
        for task in states:
            stack = tuple(owner.frame(f) for f in task.frames)
            if task.state == "pending" and task.loop in tids:
                owner.suspended(tids[task.loop], task.frames)
            loop = names.get(task.loop) if task.loop else None
            fd = awaited_descriptor(python.frames, task.frames)
            resource = owner.note_descriptor(fd) if fd is not None else None
            tasks.append(Task(f"task-{len(tasks) + 1}", task.name, task.state, loop, stack, task.awaiting, resource))
        gaps.extend(Gap("cpython", "asyncio", problem) for problem in asyncio.problems)
    return tuple(loops), tuple(tasks)


def _by_name(task: TaskState) -> Tuple[str, int, str]:
    """Task-2 before Task-10; a set's order is no order."""
    name = task.name or ""
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :][-9:] or 0), name


def _loop(python: Python, state: LoopState, ident: str, tid: object, running: object) -> Loop:
    kind = "asyncio" if "EventLoop" in state.kind or state.kind.startswith("_Unix") else state.kind
    own = tuple(f for f in _functions(python, state.watchers) if "/asyncio/" not in f.file)
    return Loop(
        id=ident,
        tid=tid if isinstance(tid, int) else None,
        kind=kind,
        ready=state.ready,
        scheduled=state.scheduled,
        running_task=running if isinstance(running, str) else None,
        ready_callbacks=_functions(python, state.callbacks),
        readers=state.readers,
        watchers=own,
    )


def _functions(python: Python, codes: Sequence[int]) -> Tuple[PythonFrame, ...]:
    """Code objects as frames at their first line, each once."""
    found = []
    for address in codes:
        try:
            code = Code(python.objects, address)
        except (Fault, NotThat):
            continue
        found.append(PythonFrame(code.filename, code.firstlineno, code.name, code.qualname))
    return tuple(dict.fromkeys(found))
