"""Objects that a walk over references must recognise.

- Namespaces of modules, objects of threads, asyncio's registries of tasks.
- What a waiting thread or task sleeps on.

Sources, 3.8-3.15: Lib/threading.py (Condition.wait: ``waiter``); Lib/asyncio/tasks.py (_scheduled_tasks, _all_tasks);
Lib/asyncio/base_events.py (_asyncgens); Lib/weakref.py and _weakrefset.py (WeakSet.data).
"""

from __future__ import annotations

from typing import Collection, Dict, Iterable, Mapping, NamedTuple, Optional, Set, Tuple

from ...cpython.objects.attributes import attribute
from ...cpython.objects.builtins import NotThat
from ...cpython.runtime import layouts as L
from ...cpython.state.interpreter import InterpreterState, Python, ThreadState
from ...memory import Fault
from .futures import Futures
from .tasks import Asyncio

_SETS = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")


class Suspension(NamedTuple):
    """A task of another framework than asyncio; addresses.

    ``awaited``: the object that it waits for, 0 if none.
    """

    coroutine: int
    awaited: int = 0


class Landmarks:
    """Recognisable objects of one process.

    - ``tasks``: addresses of all known tasks
    - ``others``: those of other frameworks, greenlets among them
    - ``behind``: of tasks that go on once all of several others have ended, these others
    """

    def __init__(
        self,
        python: Python,
        tasks: Collection[int],
        others: Optional[Mapping[int, Suspension]] = None,
        behind: Optional[Mapping[int, Tuple[int, ...]]] = None,
    ) -> None:
        self._python = python
        self._objects = python.objects
        self.modules: Dict[int, str] = {}  # address of a namespace → module name
        self.registries: Set[int] = set()  # asyncio's sets of tasks, and their inner sets
        #: Addresses of threading.Thread objects, and of their dicts → thread state.
        self.of_threads: Dict[int, ThreadState] = {}
        self.ended: Set[int] = set()  # tasks
        self.coroutines: Set[int] = set()  # coroutines of tasks that have not ended
        self._waits: Dict[int, int] = {}  # pending task → awaited future, 0 if none
        self._awaited_by: Dict[int, Set[int]] = {}  # awaited future → tasks that await it
        self._loops: Set[int] = set()
        suspended = others or {}
        for interpreter in python.interpreters:
            self._look(interpreter, [task for task in tasks if task not in suspended])
        for task, other in suspended.items():
            self._waits[task] = other.awaited
            self.coroutines.update((other.coroutine,) if other.coroutine else ())
        for task, awaited in (behind or {}).items():
            for child in awaited:
                self._awaited_by.setdefault(child, set()).add(task)
        for task, future in self._waits.items():
            self._awaited_by.setdefault(future, set()).add(task)
        self.pending = set(self._waits)  # tasks that have not ended

    def future_of(self, task: int) -> Optional[int]:
        """Return the future or task that a task awaits; None if there is none."""
        return self._waits.get(task) or None

    def waiting_for(self, tasks: Iterable[int]) -> Set[int]:
        """Return these tasks and all that wait for one of them, transitively."""
        found: Set[int] = set()
        wave = set(tasks)
        while wave:
            found |= wave
            wave = {waiter for task in wave for waiter in self._awaited_by.get(task, ())} - found
        return found

    def waits_on(self, thread: ThreadState, subject: int) -> Optional[int]:
        """Return the object whose release or filling ends a thread's wait for ``subject``; None if unknown.

        That is the lock or SimpleQueue itself, or the lock that ``Condition.wait`` made for this wait.
        """
        if self._objects.type_name(subject) in ("_thread.lock", "_queue.SimpleQueue"):
            return subject
        for frame in thread.frames[:2]:
            if frame.is_in("wait", "/threading.py"):
                waiter = self._python.frames.local(frame, "waiter")
                if waiter is not None and self._objects.type_name(waiter) == "_thread.lock":
                    return waiter
        return None

    # ------------------------------------------------------------------ reading

    def _look(self, interpreter: InterpreterState, tasks: Collection[int]) -> None:
        """Read the landmarks of one interpreter."""
        try:
            self._read_modules(self._python.memory.u64(interpreter.address + self._python.layout.is_modules))
        except (Fault, NotThat):
            return  # without them more objects remain unknown
        for name in _SETS:
            self._note_set(self._python.module_value(interpreter, "asyncio.tasks", name))
        for thread in interpreter.threads:
            if thread.object:
                self._note_thread(thread.object, thread)
        futures = Asyncio(self._python, interpreter).futures
        for task in tasks:
            self._note_task(futures, task)

    def _read_modules(self, namespace: int) -> None:
        """Record the namespaces of sys.modules."""
        for name, module in self._objects.text_dict(namespace).items():
            try:
                if self._objects.is_instance(module, "module"):
                    self.modules.setdefault(self._objects.field(module, L.MODULE_DICT), name)
            except Fault:
                continue

    def _note_set(self, weak_set: Optional[int]) -> None:
        """Record a WeakSet and its inner set as registries."""
        if weak_set:
            data = attribute(self._objects, weak_set, "data")
            self.registries.update(filter(None, (weak_set, data)))

    def _note_thread(self, address: int, thread: ThreadState) -> None:
        """Record a threading.Thread object and its dict."""
        self.of_threads[address] = thread
        try:
            info = self._objects.type_of(address)
            managed = info.flags & L.FLAG_MANAGED_DICT
            offset = self._python.layout.managed_dict if managed else info.dictoffset
            namespace = self._python.memory.u64(address + offset) if offset else 0
        except (Fault, NotThat):
            return
        if namespace and not namespace & 1:  # 3.12: a tagged pointer to inline values
            self.of_threads[namespace] = thread

    def _note_task(self, futures: Futures, task: int) -> None:
        """Record a task, its awaited future and its coroutine."""
        try:
            if futures.state(task) == "done":
                self.ended.add(task)
                return
            self._waits[task] = 0
            self._waits[task] = futures.waiter(task)
            self.coroutines.add(futures.coroutine(task))
            self._note_generators(futures.loop(task) or 0)
        except (Fault, NotThat):
            return

    def _note_generators(self, loop: int) -> None:
        """Record a loop's registry of asynchronous generators."""
        if loop and loop not in self._loops:
            self._loops.add(loop)
            self._note_set(attribute(self._objects, loop, "_asyncgens"))
