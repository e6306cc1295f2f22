"""Generators that Tornado runs as coroutines, and what the futures that tasks wait for stand for.

- A ``Runner`` has ``gen``, the generator, ``future``, which it waits for, and ``result_future``, which its end resolves.
- ``gen.multi`` resolves a future of its own: each member has a function ``callback`` with that future and the set
  ``unfinished_children`` in its closure.
- tornado.locks and tornado.queues make a future for each waiter (``asyncio.primitives``).

All are found in the collector's lists, and only if the program has imported these modules.

Source: tornado/gen.py, locks.py and queues.py of 5.1 to 6.6.
"""

from __future__ import annotations

import contextlib
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...cpython.heap.gclists import tracked
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import InterpreterState, Python
from ...memory import Fault
from ..asyncio.awaiting import Awaited
from ..asyncio.futures import Futures
from ..asyncio.primitives import TORNADO, Primitives
from ..asyncio.tasks import TaskState, follow

_RUNNER = ("tornado.gen", "Runner")
_GEN = "tornado/gen.py"
_MOST_TASKS, _MOST_MEMBERS = 100_000, 100_000


class TornadoRead(NamedTuple):
    """The coroutines of one interpreter.

    - ``coroutines``: by the address of the task, which is that of its Runner
    - ``futures``: what a future that a task may wait for stands for
    - ``problem``: why those of a program that has imported Tornado could not be read
    """

    tasks: List[TaskState]
    coroutines: Dict[int, int]
    futures: Dict[int, Awaited]
    problem: Optional[str] = None


class Tornado:
    """Tornado's coroutines of one interpreter; public methods never raise."""

    def __init__(self, python: Python, interpreter: InterpreterState, futures: Futures) -> None:
        self._python, self._interpreter, self._futures = python, interpreter, futures
        self._objects, self._parts = python.objects, Parts(python.objects)
        self._functions = futures.functions
        self._kinds: Dict[int, str] = {}  # by class

    def read(self) -> TornadoRead:
        """Return what is found; nothing in a program that has not imported Tornado."""
        read = TornadoRead([], {}, {})
        gathered: Dict[int, int] = {}  # future of `multi` → its unfinished members
        primitives = Primitives(self._objects)
        if not self._is_imported():
            return read
        try:
            for address in tracked(self._python, self._interpreter):
                with contextlib.suppress(Fault, NotThat):  # one that cannot be read
                    kind = self._kind(address)
                    if kind == "runner":
                        self._note_runner(address, read)
                    elif kind == "primitive":
                        self._note_primitive(primitives, address, read)
                    elif kind == "future":
                        gathered.update(self._gathering(address))
        except NotThat as exc:
            return read._replace(problem=str(exc))
        for future, members in gathered.items():
            several = self._several(members, read)
            if several is not None:
                read.futures[future] = several
        return read

    def _is_imported(self) -> bool:
        try:
            modules = self._python.memory.u64(self._interpreter.address + self._python.layout.is_modules)
            return not {"tornado.gen", *TORNADO}.isdisjoint(self._objects.text_dict(modules))
        except (Fault, NotThat):
            return False

    def _kind(self, address: int) -> str:
        class_ = self._parts.type_of(address)
        if class_ is None:
            return ""
        if class_ not in self._kinds:
            self._kinds[class_] = self._kind_of(class_, address)
        return self._kinds[class_]

    def _kind_of(self, class_: int, address: int) -> str:
        if self._futures.kind(address) is not None:
            return "future"
        for each in self._parts.classes(class_):
            module = self._parts.module(each)
            if (module, self._objects.type_at(each).name) == _RUNNER:
                return "runner"
            if module in TORNADO:
                return "primitive"
        return ""

    @staticmethod
    def _note_primitive(primitives: Primitives, address: int, read: TornadoRead) -> None:
        """Note the waiters of a lock or queue, and not those of its semaphore and its event, which are parts of it."""
        found = primitives.at(address)
        for future in primitives.waiters(found) if found is not None else ():
            if found is not None and (future not in read.futures or found.kind in ("lock", "queue")):
                read.futures[future] = Awaited(found.kind, primitive=found)

    def _note_runner(self, address: int, read: TornadoRead) -> None:
        values = self._parts.attributes(address)
        number = self._objects.integer_or_none
        coroutine, future, result = (values.get(name, 0) for name in ("gen", "future", "result_future"))
        if number(values.get("finished")) or not coroutine or len(read.tasks) >= _MOST_TASKS:
            return
        if self._futures.kind(future) is None or self._futures.kind(result) is None:
            return
        chain = follow(self._python, coroutine)
        if not chain.frames or chain.running or number(values.get("running")):
            return
        name = chain.frames[-1].code.qualname or chain.frames[-1].code.name
        loop = self._parts.attributes(values.get("io_loop", 0)).get("asyncio_loop") if "io_loop" in values else None
        ready = self._futures.state(future) == "done"
        state = TaskState(address, name, "pending", loop, chain.frames, None, ready, future, fires=result)
        read.tasks.append(state)
        read.coroutines[address] = coroutine
        read.futures[result] = Awaited("task", tasks=[address])

    def _gathering(self, member: int) -> List[Tuple[int, int]]:
        """Return the futures of ``multi`` that await a future, each with the set of its unfinished members."""
        found = []
        for called in self._futures.callbacks(member):
            code = self._functions.code(called)
            if code is not None and code.name == "callback" and code.filename.endswith(_GEN):
                closure = self._functions.closure(called)
                members, future = closure.get("unfinished_children"), closure.get("future")
                if members is not None and future is not None:
                    found.append((future, members))
        return found

    def _several(self, members: int, read: TornadoRead) -> Optional[Awaited]:
        """Describe a wait for all members of ``multi``: for tasks, or for the first that is none."""
        try:
            pending = [each for each in self._objects.set_items(members) if self._futures.state(each) == "pending"]
        except (Fault, NotThat):
            return None
        tasks: List[int] = []
        for each in pending[:_MOST_MEMBERS]:
            known = read.futures.get(each)
            if self._futures.is_task(each):
                tasks.append(each)
            elif known is not None and known.kind == "task":
                tasks += known.tasks
            else:
                return known or Awaited("future", future=each)
        return Awaited("tasks", tasks=tasks, all=True, detail=f"multi of {len(pending)}") if tasks else None
