"""Hubs as event loops, and greenlets as their tasks.

A hub is the greenlet that waits for descriptors and timers and switches to the others; one runs per thread:

- gevent: an instance of ``WaitOperationsGreenlet`` (gevent/_hub_primitives.py, hub.py of 20.5-26.9); its attribute
  ``thread_ident`` names the thread.
- eventlet: the greenlet whose stack has ``run`` of eventlet/hubs/hub.py (0.30-0.41).
- Plain greenlets have none: what switches to them is unknown.

A greenlet belongs to the thread on whose C stack it was started: thread stacks lie directly below the thread's
``pthread_t`` (glibc, nptl/allocatestack.c; musl, src/thread/pthread_create.c), and the main thread's above all of them.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.calls import callable_name
from ...cpython.frames.frame import Frame
from ...cpython.heap.gclists import tracked
from ...cpython.objects.attributes import attribute
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import InterpreterState, Python, ThreadState
from ...memory import Fault
from ..asyncio.eventloops import LoopState
from ..asyncio.tasks import TaskState
from .saved import Greenlets, GreenletState

#: Classes of gevent's hubs: compiled, and in pure Python.
_GEVENT_HUBS = ("gevent._gevent_c_hub_primitives.WaitOperationsGreenlet", "WaitOperationsGreenlet")
#: Greenlets that a hub starts.
_SPAWNED = ("gevent._gevent_cgreenlet.Greenlet", "GreenThread")
_PAGE = 1 << 12
_EVENTLET_HUB = ("run", "eventlet/hubs/hub.py")
#: Modules whose presence means that there may be greenlets.
_MODULES = ("greenlet", "greenlet._greenlet")
MAX_GREENLETS = 50_000
#: Code of the libraries themselves, which names no greenlet.
OWN = ("/gevent/", "/eventlet/", "/greenlet/")


class Switched(NamedTuple):
    """The greenlets of one interpreter.

    Fields:
    - ``loops``: hubs; ``tasks``: the other greenlets that have not ended.
    - ``states``: what was read of each greenlet, by address.
    - ``tracked``: addresses of all objects in the collector's lists.
    - ``problems``: what could not be read.
    """

    loops: List[LoopState]
    tasks: List[TaskState]
    states: Dict[int, GreenletState]
    tracked: Sequence[int]
    problems: List[str]


def read_greenlets(python: Python, interpreter: InterpreterState) -> Switched:
    """Return the greenlets of an interpreter; none if its programs do not use the library. Never raises."""
    nothing = Switched([], [], {}, (), [])
    if not any(python.module_dict(interpreter, name) for name in _MODULES):
        return nothing
    try:
        objects = list(tracked(python, interpreter))
    except (Fault, NotThat) as exc:
        return nothing._replace(problems=[f"greenlets: {exc}"])
    greenlets = Greenlets(python)
    found = [address for address in objects if greenlets.is_greenlet(address)][:MAX_GREENLETS]
    states = {state.address: state for state in greenlets.read(found)}
    return _Switching(python, interpreter, states, objects).read()


class _Switching:
    def __init__(
        self,
        python: Python,
        interpreter: InterpreterState,
        states: Dict[int, GreenletState],
        objects: Sequence[int],
    ) -> None:
        self._python, self._objects = python, python.objects
        self._threads = interpreter.threads
        self._states, self._tracked = states, objects
        self._of_ident = {thread.ident: thread for thread in self._threads}

    def read(self) -> Switched:
        problems = [f"greenlet at {s.address:#x}: {s.cut}" for s in self._states.values() if s.cut is not None]
        owners = self._owners()
        loops = self._loops(owners)
        hubs = {loop.address for loop in loops}
        of_thread = {loop.ident: loop for loop in loops if loop.ident is not None}
        only = loops[0] if len(loops) == 1 else None
        tasks = []
        for address, state in self._states.items():
            thread = owners[address]
            loop = of_thread.get(thread.ident) if thread is not None else only
            task = self._task(state, thread, loop) if address not in hubs else None
            if task is not None:
                tasks.append(task)
        for loop in loops:
            loop.main_task = self._main(loop, owners)
        _number(tasks)
        return Switched(loops, tasks, self._states, self._tracked, problems)

    # ------------------------------------------------------------------ threads

    def _owners(self) -> Dict[int, Optional[ThreadState]]:
        """Return the thread of each greenlet; None where it has not started or is unknown."""
        named = {address: self._named_thread(state) for address, state in self._states.items()}
        highest = next((t for a, t in named.items() if t is not None and not self._above(self._states[a].place)), None)
        highest = highest or self._oldest()
        owners: Dict[int, Optional[ThreadState]] = {}
        for address, state in self._states.items():
            above = self._above(state.place)
            placed = self._of_ident[min(above)] if above else highest
            owners[address] = named[address] or (placed if state.place >= _PAGE else None)
        self._place_running(owners)
        return owners

    def _above(self, place: int) -> List[int]:
        """Return the pthread_t above a place on a C stack: none above the main thread's."""
        return [thread.ident for thread in self._threads if thread.ident > place]

    def _named_thread(self, state: GreenletState) -> Optional[ThreadState]:
        """Return the thread that gevent's hub says it runs in; None for other greenlets."""
        if state.place < _PAGE or not self._is_gevent_hub(state.address):
            return None
        ident = self._objects.integer_or_none(attribute(self._objects, state.address, "thread_ident"))
        return self._of_ident.get(ident or 0)

    def _oldest(self) -> Optional[ThreadState]:
        """Return the thread with the lowest id, else that made first: the main thread, unless the process forked."""
        known = [thread for thread in self._threads if thread.native_id is not None]
        if len(known) == len(self._threads) > 0:
            return min(known, key=lambda thread: thread.native_id or 0)
        return self._threads[-1] if self._threads else None

    def _place_running(self, owners: Dict[int, Optional[ThreadState]]) -> None:
        """Keep one running greenlet a thread.

        A running main greenlet records no place, or an old one: of a thread that has ended, perhaps, whose stack was where
        another thread's is. It belongs to the only thread in which something was switched and no other greenlet runs.
        """
        mains = [address for address, state in self._states.items() if state.main and state.phase == "running"]
        others = [address for address, state in self._states.items() if not state.main and state.phase == "running"]
        busy = {owner.ident for owner in map(owners.get, others) if owner is not None}
        free = {
            owner.ident: owner
            for address, owner in owners.items()
            if address not in mains and owner is not None and owner.ident not in busy
        }
        for address in mains:
            owners[address] = next(iter(free.values())) if len(mains) == len(free) == 1 else None

    # ------------------------------------------------------------------ hubs

    def _loops(self, owners: Dict[int, Optional[ThreadState]]) -> List[LoopState]:
        """Return the hubs."""
        found: List[LoopState] = []
        for address, state in self._states.items():
            thread, kind = owners[address], self._kind(state, owners[address])
            if kind is not None and thread is not None and state.phase in ("running", "suspended"):
                found.append(LoopState(address, kind, thread.ident, state="running"))
        return found

    def _is_gevent_hub(self, address: int) -> bool:
        return any(self._objects.is_instance(address, name) for name in _GEVENT_HUBS)

    def _kind(self, state: GreenletState, thread: Optional[ThreadState]) -> Optional[str]:
        """Return the kind of a hub; None for other greenlets."""
        if self._is_gevent_hub(state.address):
            return "gevent"
        frames = state.frames
        if state.phase == "running" and thread is not None and not state.main:
            frames = thread.frames
        outer = frames[-1:]
        return "eventlet" if outer and outer[0].is_in(*_EVENTLET_HUB) else None

    def _main(self, loop: LoopState, owners: Dict[int, Optional[ThreadState]]) -> Optional[int]:
        """Return the main greenlet of a hub's thread."""
        for address, state in self._states.items():
            owner = owners[address]
            if state.main and address != loop.address and owner is not None and owner.ident == loop.ident:
                return address
        return None

    # ------------------------------------------------------------------ tasks

    def _task(
        self, state: GreenletState, thread: Optional[ThreadState], loop: Optional[LoopState]
    ) -> Optional[TaskState]:
        """Return a greenlet as a task; None if it has ended, is unknown, or its start is not scheduled."""
        if state.phase == "suspended" and (state.frames or not state.main):
            task = TaskState(state.address, None, "pending", loop.address if loop else None, state.frames)
            task.ident = thread.ident if thread is not None else None
        elif state.phase == "running" and thread is not None and loop is not None:
            task = TaskState(state.address, None, "running", loop.address, thread.frames, ready=False)
        elif state.phase == "new" and loop is not None and self._is_scheduled(state):
            task = TaskState(state.address, None, "pending", loop.address, ready=True)
        else:
            return None
        task.name, task.greenlet = self._name(state, task.frames), True
        return task

    def _is_scheduled(self, state: GreenletState) -> bool:
        """Return whether a greenlet that has not started is one that a hub will start."""
        return any(self._objects.is_instance(state.address, name) for name in _SPAWNED)

    def _name(self, state: GreenletState, frames: Sequence[Frame]) -> str:
        """Return the name that the program gave a greenlet, or that of the function that it runs."""
        if state.main:
            return "main greenlet"  # of its thread
        given = attribute(self._objects, state.address, "name")
        text = self._objects.optional_text(given) if given is not None else None
        if text and self._objects.type_name(given or 0) == "str":
            return text
        for frame in frames[-1:]:  # a thread made by a patched threading module
            thread = self._python.frames.local(frame, "self") if frame.is_in("_bootstrap", "/threading.py") else None
            named = attribute(self._objects, thread, "_name") if thread is not None else None
            text = self._objects.optional_text(named) if named is not None else None
            if text:
                return text
        for frame in reversed(frames):
            if not any(part in frame.code.filename for part in OWN):
                return frame.code.qualname or frame.code.name
        run = attribute(self._objects, state.address, "_run")
        called = callable_name(self._objects, run) if run is not None else None
        return called if called and not called.endswith("function_or_method") else "Greenlet"


def _number(tasks: Sequence[TaskState]) -> None:
    """Tell greenlets of one name apart, in the order of their addresses."""
    named: Dict[Tuple[Optional[str], bool], List[TaskState]] = {}
    for task in sorted(tasks, key=lambda task: task.address):
        named.setdefault((task.name, task.loop is None), []).append(task)
    for (name, _alone), several in named.items():
        for number, task in enumerate(several if len(several) > 1 else (), 1):
            task.name = f"{name}-{number}"
