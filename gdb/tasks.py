"""pm-tasks: asyncio's tasks, what each awaits, and who has that."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

import gdb
from postmortem.cpython.frames.names import Names
from postmortem.frameworks.asyncio.awaiting import Awaited, Awaiting
from postmortem.frameworks.asyncio.primitives import Primitive, describe
from postmortem.frameworks.asyncio.tasks import Asyncio, TaskState

from .command import PmCommand, Store
from .session import Session
from .show import clean, place, styled

MAX_TASKS, MAX_TASK_FRAMES = 100, 20
#: Frames of a task that are looked through for what they hold.
MAX_SEARCHED = 50
_LOCKS = "asyncio/locks.py"


class Tasks(PmCommand):
    """List asyncio's tasks with their stacks, innermost await first, what each awaits and who has that.

    Usage: pm-tasks [NAME]

    NAME shows only the task of that name. The holder of an asyncio lock is the task that is inside its `async with`;
    of a lock that plain acquire() took it is not known here."""

    name = "pm-tasks"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        if len(arguments) > 1:
            raise gdb.GdbError("Usage: pm-tasks [NAME]")
        session = Store.get()
        shown = total = 0
        for interpreter in session.python.interpreters:
            asyncio = Asyncio(session.python, interpreter)
            tasks = asyncio.tasks()
            waits = _Waits(session, asyncio, tasks)
            for task in tasks:
                if arguments and task.name != arguments[0]:
                    continue
                total += 1
                if shown < MAX_TASKS:
                    shown += 1
                    yield from _lines(task, waits)
            yield from (f"({clean(problem)})" for problem in asyncio.problems)
        if total > shown:
            yield f"… {total - shown} more tasks; `pm-tasks NAME` shows one"
        if not total:
            yield f"No task is named {clean(arguments[0])}." if arguments else "There are no asyncio tasks."


def _lines(task: TaskState, waits: _Waits) -> Iterator[str]:
    awaiting = ", ready to run" if task.ready else waits.text(task)
    yield styled(f"{waits.label(task.address)} ({task.state}{awaiting})", "bold")
    yield from (f"  #{index:<3} {place(frame)}" for index, frame in enumerate(task.frames[:MAX_TASK_FRAMES]))
    if len(task.frames) > MAX_TASK_FRAMES:
        yield f"      … {len(task.frames) - MAX_TASK_FRAMES} frames are not shown"


class _Waits:
    """What the tasks of one interpreter await, and which of them holds which lock."""

    def __init__(self, session: Session, asyncio: Asyncio, tasks: Sequence[TaskState]) -> None:
        self._session = session
        self._awaiting = Awaiting(session.python, asyncio.futures)
        self._names = Names(session.python.frames)
        self._labels = {task.address: clean(task.name or "a task") for task in tasks}
        self._holders: Dict[int, List[str]] = {}
        for task in tasks:
            self._note(task)

    def label(self, task: int) -> str:
        return self._labels.get(task, "a task that is not listed")

    def _note(self, task: TaskState) -> None:
        """Locks whose `async with` the task is in; not one that it waits for, and not around Condition.wait()."""
        waited = {
            self._session.python.frames.local(f, "self") for f in task.frames[:MAX_SEARCHED] if f.is_in("wait", _LOCKS)
        }
        for frame in task.frames[:MAX_SEARCHED]:
            if frame.code.filename.endswith(_LOCKS):
                continue
            for entered in self._session.locks.entered(frame):
                found = self._awaiting.primitives.at(entered.manager)
                if found is None or entered.line is None or entered.manager in waited:
                    continue
                address = found.inner if found.kind == "condition" and found.inner else found.address
                self._holders.setdefault(address, []).append(self._labels[task.address])

    def text(self, task: TaskState) -> str:
        """``, awaits asyncio.Lock gate, held by Task-2``; empty when it waits for nothing."""
        if not task.waiter and task.awaiting is None:
            return ""
        awaited = self._awaiting.of(task.frames, task.waiter) if task.waiter else Awaited("other")
        if awaited.primitive is not None:
            return f", awaits {self._primitive(task, awaited.primitive)}"
        if awaited.tasks:
            names = ", ".join(self.label(one) for one in awaited.tasks[:3])
            more = f" and {len(awaited.tasks) - 3} more" if len(awaited.tasks) > 3 else ""
            how = f"{clean(awaited.detail)}: " if awaited.detail else ""
            return f", awaits {how}{'one of ' if awaited.any and len(awaited.tasks) > 1 else ''}{names}{more}"
        what: Optional[str] = awaited.detail or task.awaiting
        return f", awaits {clean(what)}" if what else ""

    def _primitive(self, task: TaskState, found: Primitive) -> str:
        users = [frame for frame in task.frames if not self._awaiting.own(frame)][:4]
        name = self._names.find(lambda value: value == found.address, users)
        said = f"asyncio.{found.kind.capitalize()}" + (f" {clean(name, 60)}" if name else "")
        state = describe(found)
        holders = list(dict.fromkeys(self._holders.get(found.address, ())))
        held = f", held by {', '.join(holders[:3])}" if holders and found.kind in ("lock", "semaphore") else ""
        return f"{said} ({state}){held}" if state else f"{said}{held}"
