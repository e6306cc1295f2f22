"""Waits of suspended greenlets.

A greenlet that waits has left something with the object that will wake it: its own ``switch``, a Waiter that refers to it,
or itself. The objects are found in the collector's lists and searched for these; no frame of the greenlet shows them, as
the libraries wait in compiled code.

- gevent: ``_links`` of AbstractLinkable and Greenlet, ``getters`` and ``putters`` of queues, callback and arguments of
  watchers (gevent/_abstract_linkable.py, greenlet.py, queue.py, _hub_primitives.py; libev/corecext.pyx of 20.12-26.9).
- eventlet: ``_waiters`` of semaphores and events, ``getters`` and ``putters``, listeners and timers (eventlet/semaphore.py,
  event.py, queue.py, hubs/hub.py, hubs/timer.py of 0.30-0.41).

libev's watchers lie at the end of gevent's objects (ev.h, version 4): active, pending, priority (ints), data unless built
without (EV_COMMON; gevent's own), callback; then ev_io: next, fd and events (ints), 40 or 48 bytes in all; ev_timer: ``at``
in seconds of CLOCK_MONOTONIC, repeat, as long; ev_child: next, flags and pid (ints), and two more, 48 or 56 bytes.
"""

from __future__ import annotations

import itertools
import math
from typing import Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ..asyncio.awaiting import Awaited
from ..asyncio.eventloops import LoopState
from ..asyncio.primitives import Primitive
from ..asyncio.tasks import TaskState
from .structs import GreenKind, Structs
from .switching import OWN, Switched

_BOUND_SELF = 24  # PyCFunctionObject.m_self; im_self of methods is at the same offset
_METHODS = ("builtin_function_or_method", "method")
_LOOP = "gevent.libev.corecext.loop"
_CALLABLE = (*_METHODS, "function", "functools.partial", "cython_function_or_method")
#: Offsets in libev's structs without ``data``; their sizes.
_AT, _FD, _EVENTS, _CHILD_PID = 24, 32, 36, 36
_SIZE, _CHILD_SIZE, _DATA = 40, 48, 8
_EV_READ_WRITE, _EV_OWN = 3, 0x80  # EV__IOFDSET
_MOST_LINKS = 100_000
#: Attributes of watchers in Python: what they call, and those that say that they did or never will.
_CALLED = ("_callback", "args", "_args", "cb", "tpl")
_OVER = ("called", "spent")
#: Files whose functions wait on behalf of the program.
_WAITS = ("/threading.py", "/queue.py", "/selectors.py", "/socket.py", "/ssl.py")

_THREADING = "/threading.py"

WatcherKind = Literal["io", "timer", "child", "other"]


class GreenWait(NamedTuple):
    """A wait of a greenlet.

    Fields:
    - ``timed``: a timer ends it, after ``seconds`` in all (None: unknown), at ``due`` seconds of CLOCK_MONOTONIC.
    """

    awaited: Awaited
    timed: bool = False
    seconds: Optional[float] = None
    due: Optional[float] = None


class PoolOfGreenlets(NamedTuple):
    """A pool of greenlets; ``full``: its greenlets, all of them known, have all its places."""

    size: Optional[int]
    members: Tuple[int, ...]
    full: bool


class _Link(NamedTuple):
    """An object that will wake a greenlet."""

    kind: GreenKind
    address: int
    ends: bool = False  # a timer that throws into the greenlet: a limit of its wait


class Links:
    """Waits of the greenlets of one interpreter; methods never raise."""

    def __init__(self, python: Python, switched: Switched) -> None:
        self._python, self._objects = python, python.objects
        self.primitives = Structs(python)
        self._states = switched.states
        self._hubs = {loop.address for loop in switched.loops}
        self._tasks = switched.tasks
        self._of: Dict[int, List[_Link]] = {}
        self._blocks: Dict[int, int] = {}  # inner lock → the lock that has it
        self._exits: Dict[int, int] = {}  # eventlet's event of a green thread's end → the thread
        self._started: List[int] = []  # compiled watchers that have a callback
        self._scheduled: Set[int] = set()  # greenlets to which a callback in a hub's queue switches
        self.pools: Dict[int, PoolOfGreenlets] = {}  # semaphore of a pool → the pool
        self._threads = self._of_threads()
        if switched.tasks:
            self._search(switched.tracked)

    def own(self, frame: Frame) -> bool:
        """Return whether a frame belongs to one of the libraries, or waits on the program's behalf."""
        name = frame.code.filename
        return _in_library(frame) or ("/lib/python" in name and name.endswith(_WAITS))

    # ------------------------------------------------------------------ search

    def _of_threads(self) -> Dict[int, int]:
        """Map each threading.Thread that a patched module runs as a greenlet to that greenlet."""
        found: Dict[int, int] = {}
        for address, state in self._states.items():
            if state.frames and state.frames[-1].is_in("_bootstrap", _THREADING):
                thread = self._python.frames.local(state.frames[-1], "self")
                if thread:
                    found[thread] = address
        return found

    def _search(self, tracked: Sequence[int]) -> None:
        """Collect the objects that will wake a greenlet."""
        count = 0
        for address in tracked:
            found = self.primitives.class_of(address)
            if found is None or count >= _MOST_LINKS:
                continue
            count += 1
            if found.kind == "watcher":
                self._watcher(address)
            elif found.kind == "callback":
                self._scheduled.update(link for word in self._called(address) for link in self._woken(word))
            elif found.kind == "rlock":
                self._note_block(address)
            elif found.kind == "pool":
                self._note_pool(address)
            elif found.kind == "greenlet":
                self._note_exit(address)
                self._containers(address, found.kind)
            elif found.kind not in ("waiter", "condition"):
                self._containers(address, found.kind)

    def _containers(self, address: int, kind: GreenKind) -> None:
        for container in self.primitives.containers(address):
            for item in self.primitives.members(container):
                for greenlet in self._woken(item):
                    self._link(greenlet, _Link(kind, address))

    def _link(self, greenlet: int, link: _Link) -> None:
        several = self._of.setdefault(greenlet, [])
        if link not in several:
            several.append(link)

    def _woken(self, item: int) -> Iterator[int]:
        """Yield the suspended greenlet that a callback or a member of a list of waiters wakes."""
        if item in self._states:
            yield from self._suspended(item)
            return
        if self._objects.type_name(item) in _METHODS:
            try:
                item = self._objects.field(item, _BOUND_SELF)
            except Fault:
                return
            if item in self._states:
                yield from self._suspended(item)
                return
        found = self.primitives.class_of(item)
        if found is not None and found.kind == "waiter":
            held = self.primitives.value(item, "greenlet")
            words = (held,) if held is not None else self.primitives.words(item)
            for word in words:
                if word in self._states and word not in self._hubs:
                    yield from self._suspended(word or 0)

    def _suspended(self, address: int) -> Iterator[int]:
        if self._states[address].phase == "suspended" and address not in self._hubs:
            yield address

    def _watcher(self, address: int) -> None:
        """Record the greenlet that a watcher of a hub's loop wakes, or throws into."""
        if any(self._objects.integer_or_none(self.primitives.value(address, name)) for name in _OVER):
            return
        values = [self.primitives.value(address, name) for name in _CALLED]
        words = [value for value in values if value] or [*self.primitives.words(address)]
        if self.primitives.is_compiled(address) and any(self._objects.type_name(w) in _CALLABLE for w in words):
            self._started.append(address)
        for item in self._unpacked(words):
            ends = self._is_throw(item)
            for greenlet in self._woken(item):
                self._link(greenlet, _Link("watcher", address, ends))

    def _called(self, address: int) -> Iterator[int]:
        """Yield what a callback of a hub's queue calls, and with what."""
        yield from self._unpacked(self.primitives.words(address))

    def _unpacked(self, words: Sequence[int]) -> Iterator[int]:
        """Yield words, and the members of tuples among them."""
        for word in words:
            yield word
            if self._objects.type_name(word) == "tuple":
                yield from self.primitives.members(word)

    def _is_throw(self, item: int) -> bool:
        """Return whether a callable is ``throw`` of a greenlet."""
        try:
            if self._objects.type_name(item) != "builtin_function_or_method":
                return False
            method = self._objects.field(item, 16)  # m_ml; its first word is the name
            return self._objects.memory.cstring(self._objects.memory.u64(method), 16) == b"throw"
        except Fault:
            return False

    def _note_block(self, address: int) -> None:
        inner = self.primitives.value(address, "_block")
        if inner:
            self._blocks[inner] = address

    def _note_exit(self, address: int) -> None:
        event = self.primitives.value(address, "_exit_event")
        if event:
            self._exits[event] = address

    def _note_pool(self, address: int) -> None:
        """Record the greenlets of a pool, by its semaphore."""
        value = self.primitives.value
        semaphore = value(address, "_semaphore") or value(address, "sem")
        members = value(address, "greenlets") or value(address, "coroutines_running")
        if semaphore and members and self.primitives.at(semaphore) is not None:
            self.pools[semaphore] = self._pool(address, members)

    def _pool(self, address: int, members: int) -> PoolOfGreenlets:
        size = self._objects.integer_or_none(self.primitives.value(address, "size"))
        found = self.primitives.members(members)
        known = tuple(each for each in found if each in self._states and self._states[each].phase != "ended")
        return PoolOfGreenlets(size, known, len(known) == len(found) == size)

    def fill(self, loops: Sequence[LoopState]) -> None:
        """Set what gevent's hubs watch: descriptors, timers, callbacks in the queue.

        With watchers of another kind (signals, children, other threads) the number of timers is unknown: anything may
        come.
        """
        by_loop = {
            word: hub
            for hub in loops
            for word in self.primitives.words(hub.address)
            if self._objects.type_name(word) == _LOOP
        }
        hubs = list(by_loop.values())
        for hub in loops:
            if hub.kind == "eventlet":  # one that is known to it; others may be
                hub.ready = sum(task.loop == hub.address and bool(self.ready(task)) for task in self._tasks) or None
        if not self._started or not hubs:
            return
        for hub in hubs:
            hub.scheduled, hub.watched, hub.ready = 0, 0, None
        self._count_ready(hubs)
        for address in self._started:
            hub_of = [by_loop[word] for word in self.primitives.words(address) if word in by_loop]
            kind = self._watcher_kind(address)
            for hub in hub_of:
                fd = self._descriptor(address) if kind == "io" else None
                if fd is not None and hub.watched is not None:
                    hub.descriptors.append(fd)
                    hub.watched += 1
                elif kind == "timer" and hub.scheduled is not None:
                    hub.scheduled += 1
                elif kind == "io":
                    hub.watched = None
                elif kind != "timer":
                    hub.scheduled = None
        for hub in hubs:
            hub.descriptors = sorted(set(hub.descriptors))

    def _count_ready(self, hubs: Sequence[LoopState]) -> None:
        """Set how many greenlets each hub has to switch to; unknown where one of them may belong to any of several."""
        ready = self._scheduled | self._satisfied() | {task.address for task in self._tasks if self.ready(task)}
        hub_of = {task.address: task.loop for task in self._tasks}
        for hub in hubs:
            if len(hubs) == 1:
                hub.ready = len(ready)
            elif all(hub_of.get(greenlet) is not None for greenlet in ready):
                hub.ready = sum(hub_of[greenlet] == hub.address for greenlet in ready)

    def _satisfied(self) -> Set[int]:
        """Return the greenlets that have not been woken yet although a result, an item or a lock is there for them."""
        waited = {self._blocks.get(link.address, link.address) for links in self._of.values() for link in links}
        given = {address for address in waited if self.primitives.is_given(address) or self._lets_go_on(address)}
        return {
            greenlet
            for greenlet, links in self._of.items()
            if any(self._blocks.get(link.address, link.address) in given for link in links)
        }

    def _lets_go_on(self, address: int) -> bool:
        """Return whether whoever waits for a gevent lock, semaphore, event or queue can go on, to put into a queue or to get."""
        known = self.primitives.at(address)
        if known is None or known.library != "gevent":
            return False
        if known.kind == "lock":
            return known.locked is False
        room = known.kind != "queue" or not known.limit or (known.value or 0) < known.limit
        return known.kind in ("semaphore", "event", "queue") and bool(known.value and known.value > 0) and room

    # ------------------------------------------------------------------ answers

    def ended(self) -> Set[int]:
        """Return the addresses of the greenlets that have ended."""
        return {address for address, state in self._states.items() if state.phase == "ended"}

    def of(self, task: TaskState) -> Optional[GreenWait]:
        """Return what a suspended greenlet waits for; None if unknown."""
        links = self._of.get(task.address, [])
        if task.state != "pending":
            return None
        if not links:
            return self._unlinked(task)
        limits = [link for link in links if link.kind == "watcher" and (link.ends or self._is_timer(link.address))]
        wakes = [link for link in links if link not in limits]
        due = min((at for at in map(self._due, limits) if at is not None), default=None)
        if not wakes:
            seconds = self._sleeps(task.frames)
            return GreenWait(Awaited("sleep", timed=True, seconds=seconds), True, seconds, due)
        awaited = self._awaited(wakes, task.frames)
        if awaited is None:
            return None
        return GreenWait(awaited, bool(limits), self._given(limits), due)

    def waiter(self, task: TaskState) -> int:
        """Return the only object that will wake a greenlet, except timers; 0 if unknown or several."""
        found = {link.address for link in self._of.get(task.address, ()) if link.kind != "watcher"}
        return found.pop() if len(found) == 1 else 0

    def ready(self, task: TaskState) -> Optional[bool]:
        """Return whether a suspended greenlet only waits for its turn: what it wants is there, or it will be called.

        None: what it waits for is unknown.
        """
        if task.address in self._scheduled:
            return True
        wait = self.of(task)
        if wait is None:
            return None
        primitive, tasks = wait.awaited.primitive, wait.awaited.tasks
        if tasks:
            ended = [self._states[each].phase == "ended" for each in tasks if each in self._states]
            return any(ended)
        if primitive is None:
            return bool(wait.awaited.future) and self.primitives.is_given(wait.awaited.future or 0)
        if primitive.kind == "lock":
            return primitive.locked is False
        if primitive.kind in ("semaphore", "event"):
            return bool(primitive.value and primitive.value > 0)
        return self._lets_go_on(primitive.address)

    def _awaited(self, links: Sequence[_Link], frames: Sequence[Frame]) -> Optional[Awaited]:
        greenlets = [self._exits.get(link.address, link.address) for link in links if self._is_end(link)]
        if len(greenlets) == len(links):
            several = len(greenlets) > 1
            return Awaited("task", tasks=greenlets, any=several)
        if len(links) > 1:
            return None  # several unlike objects: which of them suffices is unknown
        link = links[0]
        joined = self._joined(frames)
        if joined is not None:
            return Awaited("task", tasks=[joined])
        if link.kind == "watcher":
            return self._of_another_hub(link.address, frames) or self._watched(link.address)
        if link.kind == "result":
            return Awaited("future", future=link.address, what=self._title(link.address))
        return self._primitive(link.address, frames)

    def _unlinked(self, task: TaskState) -> Optional[GreenWait]:
        """Return the wait of a greenlet for which no object was found that will wake it; None if unknown.

        A sleep has a timer, which was not found if the collector's lists are too long or damaged, or has just expired.
        """
        awaited = self._taken_off(task.frames)
        if awaited is not None:
            return GreenWait(awaited)
        seconds = self._sleeps(task.frames)
        return GreenWait(Awaited("sleep", timed=True, seconds=seconds), True, seconds) if seconds is not None else None

    def _taken_off(self, frames: Sequence[Frame]) -> Optional[Awaited]:
        """Return the wait for a lock of eventlet that has taken a greenlet off its list of waiters and could not switch to it.

        Source: eventlet/semaphore.py, acquire and _do_acquire: 0.30-0.41.
        """
        asks = next((frame for frame in frames[:2] if frame.is_in("acquire", "eventlet/semaphore.py")), None)
        lock = self._python.frames.local(asks, "self") if asks is not None else None
        return self._primitive(lock, frames) if lock else None

    def _of_another_hub(self, watcher: int, frames: Sequence[Frame]) -> Optional[Awaited]:
        """Return the wait for a lock that belongs to the hub of another thread, which is to wake this hub by a watcher.

        Source: gevent/_semaphore.py, __acquire_from_other_thread, and gevent/thread.py, LockType.acquire: 21.1-26.9.
        """
        if self._watcher_kind(watcher) != "other" or not frames or not frames[0].is_in("acquire", "gevent/thread.py"):
            return None
        lock = self._python.frames.local(frames[0], "self")
        return self._primitive(lock, frames) if lock else None

    def _joined(self, frames: Sequence[Frame]) -> Optional[int]:
        """Return the greenlet that runs the threading.Thread whose end is awaited; None if there is none.

        Source: Lib/threading.py, Thread.join, up to 3.12 through _wait_for_tstate_lock: 3.8-3.15.
        """
        outer = next(itertools.dropwhile(_in_library, frames), None)
        if outer is None or not (outer.is_in("_wait_for_tstate_lock", _THREADING) or outer.is_in("join", _THREADING)):
            return None
        return self._threads.get(self._python.frames.local(outer, "self") or 0)

    def _title(self, address: int) -> Optional[str]:
        """Return the name of an object's class with its library."""
        found = self.primitives.class_of(address)
        name = self._objects.type_name(address)
        return f"{found.library}.{name.split('.')[-1]}" if found is not None and name else None

    def _is_end(self, link: _Link) -> bool:
        return link.kind == "greenlet" or link.address in self._exits

    def _primitive(self, address: int, frames: Sequence[Frame]) -> Optional[Awaited]:
        """Return the wait for a primitive, or for the object that waits by means of it."""
        address = self._blocks.get(address, address)
        primitive = self._behind(address, frames) or self.primitives.at(address)
        return Awaited(primitive.kind, primitive=primitive) if primitive is not None else None

    def _behind(self, lock: int, frames: Sequence[Frame]) -> Optional[Primitive]:
        """Return the Condition, Event, Semaphore or queue of the standard library that made a lock to wait on.

        Source: Lib/threading.py, Condition.wait: ``waiter``; Event.wait; Semaphore.acquire; Lib/queue.py, get and put: 3.8-3.15.
        """
        local = self._python.frames.local
        frames = list(itertools.islice(itertools.dropwhile(_in_library, frames), 2))
        if not frames or not frames[0].is_in("wait", _THREADING) or local(frames[0], "waiter") != lock:
            return None
        condition = local(frames[0], "self")
        outer = frames[1] if len(frames) > 1 else None
        if outer is not None and condition:
            user = local(outer, "self")
            if user and outer.is_in("wait", _THREADING):
                flag = self._objects.integer_or_none(self.primitives.value(user, "_flag"))
                return Primitive(user, "event", None, flag, inner=condition, library="threading")
            if user and outer.is_in("acquire", _THREADING):
                return self.primitives.at(user) or self.primitives.at(condition)
            if user and outer.code.name in ("get", "put", "join") and outer.code.filename.endswith("/queue.py"):
                items = self._objects.length_or_none(self.primitives.value(user, "queue"))
                most = self._objects.integer_or_none(self.primitives.value(user, "maxsize"))
                return Primitive(user, "queue", None, items, most, library="queue")
        return self.primitives.at(condition)

    # ------------------------------------------------------------------ watchers

    def _watched(self, address: int) -> Optional[Awaited]:
        kind = self._watcher_kind(address)
        if kind == "io":
            fd = self._descriptor(address)
            return Awaited("descriptor", fd=fd)
        if kind == "child":
            pid = self._number(address, _CHILD_PID, "_pid")
            return Awaited("process", pid=pid) if pid else Awaited("other")
        return Awaited("other")

    def _watcher_kind(self, address: int) -> WatcherKind:
        name = (self._objects.type_name(address) or "").split(".")[-1].rstrip("_")
        if name in ("io", "FdListener"):
            return "io"
        if name in ("timer", "Timer", "LocalTimer"):
            return "timer"
        return "child" if name == "child" else "other"

    def _is_timer(self, address: int) -> bool:
        return self._watcher_kind(address) == "timer"

    def _descriptor(self, address: int) -> Optional[int]:
        for name in ("fileno", "_fd"):
            fd = self._objects.integer_or_none(self.primitives.value(address, name))
            if fd is not None:
                return fd
        inner = self._inner(address)
        try:
            if inner and 0 < self._objects.memory.i32(inner + _EVENTS) & ~_EV_OWN <= _EV_READ_WRITE:
                fd = self._objects.memory.i32(inner + _FD)
                return fd if 0 <= fd < 1 << 24 else None
        except Fault:
            pass
        return None

    def _number(self, address: int, offset: int, name: str) -> Optional[int]:
        found = self._objects.integer_or_none(self.primitives.value(address, name))
        inner = self._inner(address) if found is None else None
        try:
            return self._objects.memory.i32(inner + offset) if inner else found
        except Fault:
            return None

    def _inner(self, address: int) -> Optional[int]:
        """Return the address of libev's struct in a watcher, less ``data``; None if there is none.

        A word of the object points to it.
        """
        words = self.primitives.words(address)
        found = next((word for word in words if address < word < address + 16 + 8 * len(words)), None)
        if found is None:
            return None
        size = _CHILD_SIZE if self._watcher_kind(address) == "child" else _SIZE
        extra = address + self._objects.type_of(address).basicsize - found - size
        return found + extra if extra in (0, _DATA) else None

    def _due(self, link: _Link) -> Optional[float]:
        """Return when a timer is due, in seconds of CLOCK_MONOTONIC; None if unknown."""
        said = self.primitives.value(link.address, "scheduled_time")  # eventlet's
        if said is not None:
            return self._real(said)
        inner = self._inner(link.address)
        try:
            at = self._objects.memory.f64(inner + _AT) if inner and self._is_timer(link.address) else None
        except Fault:
            return None
        return at if at is not None and math.isfinite(at) and at > 0 else None

    def _sleeps(self, frames: Sequence[Frame]) -> Optional[float]:
        """Return the duration given to a sleep; None if unknown."""
        for frame in frames[:2]:
            if frame.is_in("sleep", "gevent/hub.py", "eventlet/greenthread.py"):
                return self._real(self._python.frames.local(frame, "seconds"))
        return None

    def _real(self, address: Optional[int]) -> Optional[float]:
        """Return a finite number; None for anything else."""
        try:
            number = float(self._objects.number(address)) if address else None
        except (Fault, NotThat, OverflowError):
            return None
        return number if number is not None and math.isfinite(number) else None

    def _given(self, limits: Sequence[_Link]) -> Optional[float]:
        """Return the seconds that a limit was given; None if unknown, or there are several."""
        found: Set[float] = set()
        for link in limits:
            given = self._real(self.primitives.value(link.address, "seconds"))
            found.update(() if given is None else (given,))
        return found.pop() if len(found) == 1 else None


def _in_library(frame: Frame) -> bool:
    return any(part in frame.code.filename for part in OWN)
