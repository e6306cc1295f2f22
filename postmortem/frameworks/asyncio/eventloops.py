"""asyncio's event loops: ready queues, timers, and watched descriptors.

A uvloop has fields in C instead of attributes: its ready queue is its only deque, and a handle's callback is the first
object in the handle that may be one. Its timers and descriptors are not read.

Source: attributes in Lib/asyncio/base_events.py, selector_events.py and unix_events.py of 3.8-3.15; handles have slots
(events.py); uvloop's loop.pxd and cbhandles.pxd of 0.14-0.23.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import islice
from typing import Dict, Iterable, Iterator, List, Literal, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.objects.attributes import Slots, attribute, attributes, class_value
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import InterpreterState, Python
from ...memory import Fault
from .loopturns import Turn, turn_of
from .streams import descriptor_of_socket

_BASE_EVENTS, _RUNNERS = "asyncio/base_events.py", "asyncio/runners.py"
_TORNADO = "tornado/ioloop.py"
_ASYNCIO, _UVLOOP = "BaseEventLoop", "uvloop.loop.Loop"
_MAX_CALLERS = 50
#: Most bytes of a uvloop and of its handles; the types of a handle's fields before its callback.
_MOST_UVLOOP = 4096
_DEQUES = ("collections.deque", "deque")
_BEFORE_CALLBACK = frozenset(("NoneType", "str", "tuple", "list", "Context", "_contextvars.Context", "type"))
_MAX_HANDLES, _MAX_TIMERS, _MAX_DESCRIPTORS = 1_000, 100_000, 1_000


class Handle(NamedTuple):
    """A callback with its arguments, scheduled on a loop; addresses.

    ``when``: of a timer, its due time in seconds of time.monotonic(); None if unknown.
    """

    callback: int
    arguments: Tuple[int, ...]
    when: Optional[float] = None


@dataclass
class LoopState:
    """An event loop at the time of the read; None where a field is unknown."""

    address: int
    kind: str  # "asyncio" | "uvloop" | "trio" | "gevent" | "twisted" | "eventlet", or the name of its class
    ident: Optional[int]  # pthread_t of the thread running the loop
    ready: Optional[int] = None
    scheduled: Optional[int] = None  # number of timers that are not cancelled
    readers: Optional[int] = None
    callbacks: List[int] = field(default_factory=list)  # code objects of ready callbacks that are not task steps
    descriptors: List[int] = field(default_factory=list)  # watched ones, except the loop's own pipe
    watchers: List[int] = field(default_factory=list)  # code objects called when a descriptor is ready
    watched: Optional[int] = None  # number of watched descriptors, except the loop's own pipe
    signals: Optional[List[int]] = None
    state: Optional[Literal["running", "stopped", "closed"]] = None
    main_task: Optional[int] = None  # task that run_until_complete waits for, or the future that its end resolves
    queue: List[Handle] = field(default_factory=list)  # the ready queue
    timers: Optional[List[Handle]] = None  # None: unknown
    first_timer: Optional[float] = None  # due time of the earliest timer, seconds of time.monotonic()
    turn: Optional[Turn] = None  # None: no callback runs, or unknown


class EventLoops:
    """The event loops of one interpreter; ``problems`` collects what could not be read."""

    def __init__(self, python: Python, interpreter: InterpreterState, functions: Functions) -> None:
        self._python = python
        self._interpreter = interpreter
        self._objects = python.objects
        self._functions = functions
        self._slots = Slots(python.objects)
        self._until: Dict[int, int] = {}  # loop → task that run_until_complete waits for
        self.problems: List[str] = []

    def of(self, known: Iterable[Optional[int]]) -> List[LoopState]:
        """Return the loops that threads run, then the others in ``known`` (addresses)."""
        runners = self._runners()
        addresses = [*runners, *(loop for loop in known if loop)]
        found = [self._loop(address, runners.get(address)) for address in dict.fromkeys(addresses)]
        turns = [turn_of(self._python.frames, thread.frames) for thread in self._interpreter.threads]
        for loop in found:
            loop.main_task = self._until.get(loop.address)
            loop.turn = next((turn for turn in turns if turn is not None and turn.loop == loop.address), None)
        return found

    def _runners(self) -> Dict[int, int]:
        """Map each loop to the pthread_t of its thread, by asyncio's frames, a thread's innermost loop first."""
        found: Dict[int, int] = {}
        for thread in self._interpreter.threads:
            for frame in thread.frames:
                if frame.is_in("run_until_complete", _BASE_EVENTS):
                    self._note_main(frame)
                if frame.is_in("run_sync", _TORNADO):
                    self._note_main_of_tornado(frame)
                if frame.function in ("run_forever", "_run_once") and frame.code.filename.endswith(_BASE_EVENTS):
                    loop = self._python.frames.local(frame, "self")
                elif frame.is_in("run", _RUNNERS):
                    loop = self._of_runner(self._python.frames.local(frame, "self"))
                    self._note_main_of_runner(frame, loop)
                    loop = loop or self._python.frames.local(frame, "loop")  # up to 3.10
                else:
                    continue
                if loop:
                    found.setdefault(loop, thread.ident)
        return found

    def _note_main(self, frame: Frame) -> None:
        """Record the task of a ``run_until_complete`` frame."""
        loop, task = (self._python.frames.local(frame, name) for name in ("self", "future"))
        if loop and task:
            self._until[loop] = task

    def _note_main_of_tornado(self, frame: Frame) -> None:
        """Record the future of Tornado's ``run_sync``, a task's or that of a generator's end: a cell in its frame has it."""
        objects, local = self._objects, self._python.frames.local
        owner, cell = local(frame, "self"), local(frame, "future_cell")
        loop = attribute(objects, owner, "asyncio_loop") if owner else None
        try:
            if cell is None:
                return
            is_dict = objects.type_name(cell) == "dict"  # since 6.2; before, a list of one
            future = objects.lookup(cell, "future") if is_dict else next(iter(objects.items(cell, 1)), None)
        except (Fault, NotThat):
            return
        if loop and future:
            self._until.setdefault(loop, future)

    def _note_main_of_runner(self, frame: Frame, loop: Optional[int]) -> None:
        """Record the task of an ``asyncio.Runner`` whose loop has no frame of its own, as a uvloop."""
        task = self._python.frames.local(frame, "task")
        if loop and task and self._kind(loop) == "uvloop":
            self._until.setdefault(loop, task)

    def _of_runner(self, runner: Optional[int]) -> Optional[int]:
        """Return the loop of an ``asyncio.Runner``, or of uvloop's own ``run``."""
        return attribute(self._objects, runner, "_loop") if runner else None

    def _loop(self, address: int, ident: Optional[int]) -> LoopState:
        """Read the state of one loop."""
        loop = LoopState(address, self._kind(address), ident)
        try:
            values = attributes(self._objects, address)
        except (Fault, NotThat) as exc:
            self.problems.append(f"event loop: {exc}")
            return loop
        if loop.ident is None:
            loop.ident = self._objects.integer_or_none(values.get("_thread_id")) or self._caller(loop)
        ready = values.get("_ready") if loop.kind != "uvloop" else self._ready_of_uvloop(address)
        loop.ready = self._objects.length_or_none(ready)
        loop.queue = list(self._queue(ready, address if loop.kind == "uvloop" else 0))
        loop.callbacks = [code for handle in loop.queue for code in self._code(handle.callback)]
        self._read_timers(loop, values.get("_scheduled"), "time" not in values and self._keeps_time(address))
        self._read_selector(loop, values)
        loop.signals = self._signals(values.get("_signal_handlers"))
        closed = self._objects.integer_or_none(values.get("_closed"))
        if "_closed" in values:
            loop.state = "closed" if closed else "stopped" if loop.ident is None else "running"
        elif loop.ident is not None:
            loop.state = "running"
        return loop

    def _caller(self, loop: LoopState) -> Optional[int]:
        """Return the pthread_t of the thread whose value stack holds a uvloop; None unless it is unique.

        A loop written in C has no frames; the caller of its ``run_…`` method keeps it on the value stack.
        """
        if loop.kind != "uvloop":
            return None
        found = {
            thread.ident
            for thread in self._interpreter.threads
            for frame in thread.frames[:_MAX_CALLERS]
            if loop.address in self._python.frames.value_stack(frame)
        }
        return found.pop() if len(found) == 1 else None

    def _kind(self, address: int) -> str:
        """Return the kind of a loop by its base classes, or the name of its class."""
        if self._objects.is_instance(address, _UVLOOP):
            return "uvloop"
        return "asyncio" if self._objects.is_instance(address, _ASYNCIO) else self._objects.type_name(address) or "?"

    # ------------------------------------------------------------------ handles

    def _ready_of_uvloop(self, loop: int) -> Optional[int]:
        """Return the only deque that a uvloop refers to; None if there are several, or none."""
        found = [word for word in self._words(loop) if self._objects.type_name(word) in _DEQUES]
        return found[0] if len(set(found)) == 1 else None

    def _words(self, address: int) -> Sequence[int]:
        """Return the words of an object behind its header; empty if unreadable."""
        try:
            size = min(self._objects.type_of(address).basicsize, _MOST_UVLOOP)
            return self._objects.memory.words(address, size // 8)[2:]
        except (Fault, NotThat):
            return ()

    def _handle_of_uvloop(self, address: int, loop: int) -> Optional[Handle]:
        """Return a handle of a uvloop; None if it was cancelled, which sets its callback to None."""
        for word in self._words(address):
            kind = self._objects.type_name(word) if word and word != loop else None
            if kind is not None and kind not in _BEFORE_CALLBACK:
                return Handle(word, ())
        return None

    def _queue(self, ready: Optional[int], uvloop: int) -> Iterator[Handle]:
        """Yield the callbacks in the ready queue that are not cancelled.

        ``uvloop``: address of the loop, if it is one; else 0.
        """
        try:
            for address in self._objects.deque_items(ready, _MAX_HANDLES) if ready else ():
                handle = self._handle_of_uvloop(address, uvloop) if uvloop else self._handle(address)
                if handle is not None:
                    yield handle
        except (Fault, NotThat):
            return

    def _handle(self, address: int) -> Optional[Handle]:
        """Return a handle; None if it was cancelled, which sets its callback to None."""
        callback, arguments = self._slots.get(address, "_callback"), self._slots.get(address, "_args")
        if callback is None or self._objects.type_name(callback) == "NoneType":
            return None
        try:
            return Handle(callback, self._objects.items(arguments, 100) if arguments else ())
        except (Fault, NotThat):
            return Handle(callback, ())

    def _keeps_time(self, loop: int) -> bool:
        """Return whether a loop's class has the ``time`` of BaseEventLoop, which is time.monotonic()."""
        function = class_value(self._objects, loop, "time")
        code = self._functions.code(function) if function is not None else None
        return code is not None and code.filename.endswith(_BASE_EVENTS)

    def _read_timers(self, loop: LoopState, scheduled: Optional[int], monotonic: bool) -> None:
        """Set the timers of a loop, their number and the earliest due time.

        ``monotonic``: whether due times are of time.monotonic(), rather than of an unknown clock.
        """
        try:
            addresses = self._objects.items(scheduled, _MAX_TIMERS) if scheduled else None
        except (Fault, NotThat):
            loop.scheduled = self._objects.length_or_none(scheduled)
            return
        if addresses is not None:
            found = [(address, self._handle(address)) for address in addresses]
            loop.timers = [
                handle._replace(when=self._when(address) if monotonic else None)
                for address, handle in found
                if handle is not None
            ]
            loop.scheduled = len(loop.timers)
            loop.first_timer = min((timer.when for timer in loop.timers if timer.when is not None), default=None)

    def _when(self, handle: int) -> Optional[float]:
        """Return the due time of a timer by its loop's clock; None if unreadable."""
        when = self._slots.get(handle, "_when")
        try:
            due = float(self._objects.number(when)) if when else None
        except (Fault, NotThat, OverflowError):
            return None
        return due if due is not None and math.isfinite(due) else None

    def _code(self, callback: int) -> Iterator[int]:
        """Yield the address of a callback's code object, if known."""
        code = self._functions.code(callback)
        if code is not None:
            yield code.address

    # ------------------------------------------------------------------ selectors, signals

    def _read_selector(self, loop: LoopState, values: Dict[str, int]) -> None:
        """Set the descriptors that a loop watches, and their callbacks.

        The selector's map is descriptor → SelectorKey(fileobj, fd, events, data); asyncio's data is a pair of handles,
        (reader, writer) (Lib/asyncio/selector_events.py, _add_reader).
        """
        selector = values.get("_selector")
        keys = attribute(self._objects, selector, "_fd_to_key") if selector else None
        if not keys:
            return
        loop.readers = self._objects.length_or_none(keys)
        own = descriptor_of_socket(self._objects, values.get("_ssock"))
        try:
            pairs = list(islice(self._objects.dict_items(keys), _MAX_DESCRIPTORS))
            numbers = [self._objects.integer(number) for number, _key in pairs]
        except (Fault, NotThat):
            return
        loop.descriptors = [number for number in numbers if number != own]
        if loop.readers is not None and own is not None:
            loop.watched = loop.readers - (own in numbers)
        for number, (_number, key) in zip(numbers, pairs):
            if number != own:
                loop.watchers += self._watching(key)

    def _watching(self, key: int) -> List[int]:
        """Return the code objects of the callbacks of one SelectorKey."""
        try:
            handles = self._objects.items(self._objects.items(key)[3])
        except (Fault, NotThat, IndexError):
            return []
        called = (self._slots.get(handle, "_callback") for handle in handles)
        return [code for callback in called if callback for code in self._code(callback)]

    def _signals(self, handlers: Optional[int]) -> Optional[List[int]]:
        """Return the signal numbers with a handler of the loop, sorted; None if unknown."""
        try:
            pairs = self._objects.dict_items(handlers) if handlers else None
            return None if pairs is None else sorted(self._objects.integer(key) for key, _value in islice(pairs, 100))
        except (Fault, NotThat):
            return None
