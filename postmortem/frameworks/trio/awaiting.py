"""Waits of suspended trio tasks, from the frames of trio's own functions at the end of its chain of awaits.

The functions' ``self`` and locals have the object. A function further out replaces what the inner one shows: a lock its
parking lot, a process its descriptor.

Sources, 0.20-0.35: trio/_sync.py, _channel.py, _timeouts.py, _threads.py, _subprocess.py, _core/{_parking_lot,_run,
_io_epoll,_entry_queue,_wakeup_socketpair,_thread_cache}.py; anyio/streams/memory.py of 3.0-4.16.
"""

from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.heap.parts import Parts
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ..asyncio.awaiting import Awaited
from ..asyncio.streams import descriptor_of_file, descriptor_of_socket
from ..channels import channel_of
from .primitives import PARKS, TrioPrimitives

_PACKAGES = ("/trio", "/trio/_core", "/anyio/_backends", "/anyio/_core", "/anyio/streams")
#: Innermost frames of a task that may be trio's own.
_MAX_OWN = 12
_MAX_CHILDREN = 100_000


class Worker(NamedTuple):
    """A thread of trio's cache that runs a function for a task; addresses.

    ``deliver``: the function that hands the outcome to the task; ``thread``: the threading.Thread.
    """

    deliver: int
    thread: int


class _Place(NamedTuple):
    """A frame of trio's, what the frames inside of it wait for, and the waiting task."""

    frame: Frame
    inner: Optional[Awaited]
    task: int


_Rule = Callable[["TrioAwaiting", _Place], Optional[Awaited]]


class TrioAwaiting:
    """Identification of awaited objects for the trio tasks of one interpreter; public methods never raise."""

    def __init__(self, python: Python, parts: Parts, workers: Sequence[Worker] = ()) -> None:
        self._python, self._parts = python, parts
        self._objects = python.objects
        self._functions = Functions(python.frames)
        self._workers = {worker.deliver: worker for worker in workers}
        self.primitives = TrioPrimitives(python.frames, parts)
        self._rules: Dict[int, Tuple[bool, Optional[_Rule]]] = {}  # by address of the code object

    def of(self, task: int, frames: Sequence[Frame]) -> Awaited:
        """Identify what a task waits for; kind "other" with the waiting function if nothing more is known.

        ``frames``: the task's frames, innermost await first.
        """
        found: Optional[Awaited] = None
        last: Optional[Frame] = None
        for frame in frames[:_MAX_OWN]:
            own, rule = self._rule(frame)
            if not own:
                break
            last = frame
            try:
                found = (rule(self, _Place(frame, found, task)) if rule is not None else None) or found
            except (Fault, NotThat):
                continue
        if found is None:
            at = last or (frames[0] if frames else None)
            found = Awaited("other", detail=None if at is None else at.code.qualname or at.code.name)
        return found

    def own(self, frame: Frame) -> bool:
        """Return whether a frame belongs to trio, or to anyio."""
        return self._rule(frame)[0]

    def _rule(self, frame: Frame) -> Tuple[bool, Optional[_Rule]]:
        """Return (whether the frame is trio's own, its rule), cached by code object."""
        known = self._rules.get(frame.code.address)
        if known is None:
            path, name = frame.code.filename, frame.code.name
            own = path.rpartition("/")[0].endswith(_PACKAGES)
            rule = next((r for (file, function), r in _RULES.items() if name == function and path.endswith(file)), None)
            known = self._rules[frame.code.address] = own, rule if own else None
        return known

    # ------------------------------------------------------------------ rules

    def _local(self, at: _Place, name: str) -> Optional[int]:
        return self._python.frames.local(at.frame, name)

    def _primitive(self, at: _Place) -> Optional[Awaited]:
        """Describe a parked task; one that a condition has moved to its lock's parking lot waits for the lock."""
        found = self.primitives.at(self._local(at, "self"))
        if found is None:
            return None
        if found.kind == "condition" and found.inner is not None:
            lot = self._parts.attributes(found.inner).get("_lot")
            if lot is not None and self._parts.attributes(at.task).get("custom_sleep_data") == lot:
                found = self.primitives.at(found.inner) or found
        return Awaited(found.kind, primitive=found)

    def _channel(self, at: _Place) -> Optional[Awaited]:
        library = "anyio" if "/anyio/" in at.frame.code.filename else "trio"
        end = self._local(at, "self")
        found = channel_of(self._objects, self._parts, end, library)
        return None if found is None else Awaited("queue", primitive=found, sends=at.frame.code.name == "send", end=end)

    def _nursery(self, at: _Place) -> Optional[Awaited]:
        """Describe the exit of a nursery, which waits for its children."""
        nursery = self._local(at, "self")
        members = self._parts.attributes(nursery).get("_children") if nursery else None
        if members is None:
            return None
        children = list(self._objects.set_items(members))[:_MAX_CHILDREN]
        detail = f"nursery with {len(children)} tasks" if len(children) != 1 else "nursery with one task"
        if not children:  # a `start()` of another task is under way
            return Awaited("other", detail="a task that is being started in its nursery")
        return Awaited("tasks", tasks=children, detail=detail, all=True)

    def _sleep(self, at: _Place) -> Optional[Awaited]:
        given = self._number(self._local(at, "seconds")) if at.frame.code.name == "sleep" else None
        detail = None if given is None else f"sleep({given:g})"
        seconds = given if given is not None else at.inner.seconds if at.inner is not None else None
        return Awaited("sleep", timed=True, detail=detail, seconds=seconds)

    def _forever(self, _at: _Place) -> Optional[Awaited]:
        """Describe a wait that only cancellation ends: of no object, and of no time."""
        return Awaited("event", detail="sleep_forever")

    def _descriptor(self, at: _Place) -> Optional[Awaited]:
        """Describe a wait for a descriptor: a number, a socket or a file."""
        value = self._local(at, "fd")
        number = self._objects.integer_or_none(value)
        if number is None and value is not None:
            number = descriptor_of_socket(self._objects, value)
            number = descriptor_of_file(self._objects, value) if number is None else number
        what = {"read_task": "reads", "write_task": "writes"}
        name = self._local(at, "attr_name")
        return Awaited(
            "descriptor", fd=number, detail=what.get(self._objects.optional_text(name) or "") if name else None
        )

    def _entry_queue(self, _at: _Place) -> Optional[Awaited]:
        """Describe trio's own task that runs what other threads hand to the loop."""
        return Awaited("queue", detail="for calls from other threads")

    def _process(self, at: _Place) -> Optional[Awaited]:
        process = self._local(at, "self")
        pid = self._objects.integer_or_none(self._parts.attributes(process).get("pid")) if process else None
        return Awaited("process", pid=pid, detail="waits for a child to end")

    def _thread(self, at: _Place) -> Optional[Awaited]:
        """Describe a wait for a function in a thread, which cannot be cancelled unless it is abandoned then."""
        if at.inner is not None:  # it still waits for the limiter, or runs a call that the thread has sent back
            return None
        deliver = self._local(at, "deliver_worker_fn_result")
        worker = self._workers.get(deliver) if deliver is not None else None
        leaves = self._objects.integer_or_none(self._local(at, "abandon_bool") or self._local(at, "cancellable"))
        thread = worker.thread if worker is not None else None
        code = self._functions.code(self._local(at, "sync_fn"))
        what = f"outcome of {code.qualname or code.name if code is not None else 'a function'} in a thread"
        return Awaited(
            "thread", future=deliver, thread=thread, detail="to_thread.run_sync", stays=not leaves, outcome=what
        )

    def _number(self, address: Optional[int]) -> Optional[float]:
        try:
            return self._objects.number(address) if address else None
        except (Fault, NotThat):
            return None


_A = TrioAwaiting
_RULES: Dict[Tuple[str, str], _Rule] = {
    **dict.fromkeys(PARKS, _A._primitive),
    ("trio/_channel.py", "send"): _A._channel,
    ("trio/_channel.py", "receive"): _A._channel,
    ("anyio/streams/memory.py", "send"): _A._channel,
    ("anyio/streams/memory.py", "receive"): _A._channel,
    ("trio/_core/_run.py", "_nested_child_finished"): _A._nursery,
    ("trio/_timeouts.py", "sleep_forever"): _A._forever,
    ("trio/_timeouts.py", "sleep_until"): _A._sleep,
    ("trio/_timeouts.py", "sleep"): _A._sleep,
    ("trio/_core/_io_epoll.py", "_epoll_wait"): _A._descriptor,
    ("trio/_core/_wakeup_socketpair.py", "wait_woken"): _A._entry_queue,
    ("trio/_subprocess.py", "wait"): _A._process,
    ("trio/_threads.py", "to_thread_run_sync"): _A._thread,
}
