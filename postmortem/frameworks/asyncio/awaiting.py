"""The object that a suspended task waits for: primitive, other tasks, thread, descriptor, process, timer.

- asyncio's own functions at the end of a chain of awaits hold the awaited object as ``self`` or in a local.
- A bare future is identified by its class (gather), or by the callbacks that link it to another future (shield,
  run_in_executor).

Source: Lib/asyncio/{locks,queues,tasks,taskgroups,streams,base_events,base_subprocess,selector_events,futures}.py of
3.8-3.15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.heap.parts import Parts
from ...cpython.objects.attributes import attribute, attributes
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ..channels import channel_of
from .futures import CONCURRENT, Futures
from .primitives import Primitive, Primitives
from .streams import descriptor_of_server, descriptor_of_socket, descriptor_of_transport

#: Directories of asyncio and of anyio's counterparts.
_PACKAGES = ("/asyncio", "/anyio/_backends", "/anyio/_core", "/anyio/streams")
#: Files of Tornado's that wait on behalf of a caller.
_TORNADO = ("tornado/locks.py", "tornado/queues.py", "tornado/gen.py")
#: Innermost frames of a task that may be the framework's own.
_MAX_OWN = 8
_MAX_LINKS = 5  # nested shields
_MAX_TASKS = 100_000
_MAX_LIMITED = 50  # frames searched for a limit


AwaitedKind = Literal[
    "future",
    "task",
    "tasks",
    "lock",
    "event",
    "condition",
    "semaphore",
    "queue",
    "barrier",
    "sleep",
    "descriptor",
    "thread",
    "process",
    "other",
]


@dataclass
class Awaited:
    """The object that a task waits for: addresses, and what else bounds the wait."""

    kind: AwaitedKind
    primitive: Optional[Primitive] = None
    future: Optional[int] = None  # the future itself, if it is the program's own or a thread's
    tasks: List[int] = field(default_factory=list)
    any: bool = False  # the first of the tasks to end suffices
    passes_on: bool = False  # cancelling the waiter cancels the tasks
    timed: bool = False  # a timer ends the wait
    fd: Optional[int] = None
    pid: Optional[int] = None
    concurrent: Optional[int] = None  # the concurrent.futures.Future that completes it
    thread: Optional[int] = None  # the awaited threading.Thread
    detail: Optional[str] = None
    seconds: Optional[float] = None  # duration of a sleep
    what: Optional[str] = None  # class of the future, if it is not asyncio's
    sends: Optional[bool] = None  # of a channel: whether it sends, rather than receives
    all: bool = False  # it goes on once all of the tasks have ended, unless it is cancelled together with them
    end: Optional[int] = None  # of a channel: the object whose method waits
    stays: bool = False  # a cancellation does not end the wait
    outcome: Optional[str] = None  # phrase for what a thread does


class _Place(NamedTuple):
    """A framework frame among a task's frames, innermost await first."""

    frame: Frame
    depth: int
    frames: Sequence[Frame]
    waiter: int


_Rule = Callable[["Awaiting", _Place], Optional[Awaited]]


class Awaiting:
    """Identification of awaited objects for the tasks of one interpreter; ``of`` and ``own`` never raise."""

    def __init__(self, python: Python, futures: Futures, known: Optional[Mapping[int, Awaited]] = None) -> None:
        """Create a reader; ``known``: what futures stand for that only their framework can tell, Tornado's."""
        self._python = python
        self._known: Mapping[int, Awaited] = known or {}
        self._objects = python.objects
        self.futures = futures
        self.primitives = Primitives(python.objects)
        self._parts = Parts(python.objects)
        self._rules: Dict[int, Tuple[bool, Optional[_Rule]]] = {}  # by address of the code object

    def of(self, frames: Sequence[Frame], waiter: int) -> Awaited:
        """Identify what a task waits for; a plain future if nothing more is known.

        ``frames``: the task's frames, innermost await first; ``waiter``: address of the future that it waits for.
        """
        try:
            found = self._by_frames(frames, waiter) or self.by_future(waiter)
        except (Fault, NotThat):
            found = None
        return found or Awaited("future", future=waiter)

    def own(self, frame: Frame) -> bool:
        """Return whether a frame belongs to asyncio, anyio or Tornado."""
        return self._rule(frame)[0] or frame.code.filename.endswith(_TORNADO)

    def given(self, frames: Sequence[Frame]) -> Optional[float]:
        """Return the limit in seconds that a task's frames were given, as ``timeout`` of wait_for or wait.

        None if there is none, or several that differ.
        """
        found = {
            self._number(self._python.frames.local(frame, "timeout"))
            for frame in frames[:_MAX_LIMITED]
            if frame.function in ("wait_for", "wait", "_wait") and frame.code.filename.endswith("asyncio/tasks.py")
        }
        known = [given for given in found if given is not None and math.isfinite(given)]
        return known[0] if len(known) == 1 else None

    def _rule(self, frame: Frame) -> Tuple[bool, Optional[_Rule]]:
        """Return (whether the frame is the framework's own, its rule), cached by code object."""
        known = self._rules.get(frame.code.address)
        if known is None:
            package, _, module = frame.code.filename.rpartition("/")
            own = package.endswith(_PACKAGES)
            known = own, _RULES.get((module, frame.code.name)) if own else None
            self._rules[frame.code.address] = known
        return known

    def _by_frames(self, frames: Sequence[Frame], waiter: int) -> Optional[Awaited]:
        """Identify the wait by the innermost framework frames; an outer container replaces its inner part."""
        found: Optional[Awaited] = None
        if frames and frames[0].is_in("__await__", "asyncio/futures.py"):
            frames = frames[1:]  # the frame of a future written in Python
        for index, frame in enumerate(frames[:_MAX_OWN]):
            own, rule = self._rule(frame)
            if not own:
                break
            if rule is None:
                continue
            said = rule(self, _Place(frame, index, frames, waiter))
            if said is not None and (found is None or (found.kind, said.kind) in _CONTAINERS):
                found = said
        return found

    # ------------------------------------------------------------------ futures

    def by_future(self, future: int) -> Optional[Awaited]:
        """Identify the wait by the future alone. Raises Fault or NotThat."""
        futures, awaited = self.futures, future
        if future in self._known:
            return self._known[future]
        for _ in range(_MAX_LINKS):
            if futures.is_task(future):
                return Awaited("task", tasks=[future], passes_on=future == awaited)
            inner = futures.linked(future, "_outer_done_callback", "inner")  # asyncio.shield
            if inner is None or futures.kind(inner) is None:
                break
            future = inner
        if self._objects.type_name(future) == "_GatheringFuture":
            return self._gathered(future)
        source = futures.linked(future, "_call_check_cancel", "source")
        if source is not None and futures.kind(source) == CONCURRENT:
            return Awaited("thread", future=future, concurrent=source)
        return Awaited("future", future=future)

    def _gathered(self, future: int) -> Optional[Awaited]:
        """Describe a wait for gather's future."""
        children = attribute(self._objects, future, "_children")
        if not children:
            return None
        found = self._of_several(self._objects.items(children, _MAX_TASKS), False, "gather")
        found.passes_on = True
        return found

    def _of_several(self, members: Sequence[int], any_: bool, what: str) -> Awaited:
        """Describe a wait for several futures.

        Futures that are not tasks are left out if all are needed; if any one suffices, none is listed.
        """
        pending = [m for m in dict.fromkeys(members) if self.futures.state(m) == "pending"]
        tasks = [m for m in pending if self.futures.is_task(m)]
        bare = [m for m in pending if not self.futures.is_task(m)]
        detail = f"{what} of {len(pending)}" if len(pending) != 1 else f"{what} of one"
        if any_ and bare:
            return Awaited("tasks", any=True, detail=f"{detail}, not all of them tasks")
        if bare and not tasks:
            return Awaited("tasks", future=bare[0], detail=detail)
        return Awaited("tasks", tasks=tasks, any=any_, detail=detail)

    # ------------------------------------------------------------------ frames

    def _self(self, frame: Frame) -> Optional[int]:
        return self._python.frames.local(frame, "self")

    def _primitive(self, at: _Place) -> Optional[Awaited]:
        found = self.primitives.at(self._self(at.frame))
        return None if found is None else Awaited(found.kind, primitive=found)

    def _memory_stream(self, at: _Place) -> Optional[Awaited]:
        """Describe the wait of an end of anyio's memory object stream, which sleeps on an Event of its own."""
        end = self._self(at.frame)
        found = channel_of(self._objects, self._parts, end, "anyio")
        return None if found is None else Awaited("queue", primitive=found, sends=at.frame.code.name == "send", end=end)

    def _sleep(self, at: _Place) -> Optional[Awaited]:
        delay = self._number(self._python.frames.local(at.frame, "delay"))
        return Awaited("sleep", timed=True, detail=None if delay is None else f"sleep({delay:g})", seconds=delay)

    def _wait(self, at: _Place) -> Optional[Awaited]:
        """Describe ``_wait`` of tasks.py; with FIRST_COMPLETED and FIRST_EXCEPTION any member may end it."""
        local = self._python.frames.local
        members, when = local(at.frame, "fs"), local(at.frame, "return_when")
        if members is None:
            return None
        all_ = when is not None and self._objects.optional_text(when) == "ALL_COMPLETED"
        found = self._of_several(self._members(members), not all_, "wait")
        found.timed = self._given(local(at.frame, "timeout"))
        found.all = all_ and not found.timed and found.future is None
        return found

    def _wait_for(self, at: _Place) -> Optional[Awaited]:
        """Describe ``wait_for`` up to 3.11, which wraps its argument in a task and waits for a future of its own."""
        future = self._python.frames.local(at.frame, "fut")
        if future is None or at.depth or self.futures.kind(future) is None:
            return None
        found = self.by_future(future)
        if found is not None:
            found.timed = future != at.waiter or self._given(self._python.frames.local(at.frame, "timeout"))
            found.passes_on = bool(found.tasks)
        return found

    def _cancelling(self, at: _Place) -> Optional[Awaited]:
        """Describe a wait for the end of a cancelled task."""
        future = self._python.frames.local(at.frame, "fut")
        if future is None or not self.futures.is_task(future):
            return None
        return Awaited("task", tasks=[future], detail="the end of a task that was cancelled")

    def _completed(self, at: _Place) -> Optional[Awaited]:
        """Describe ``as_completed``: up to 3.12 a generator on its caller's value stack, since 3.13 an iterator."""
        iterator = self._self(at.frame)
        values = attributes(self._objects, iterator) if iterator is not None else self._of_generator(at)
        todo = values.get("_todo") or values.get("todo")
        if todo is None:
            return None
        found = self._of_several(self._members(todo), True, "as_completed")
        found.timed = self._given(values.get("_timeout_handle") or values.get("timeout_handle"))
        return found

    def _of_generator(self, at: _Place) -> Dict[str, int]:
        """Return the locals of the ``as_completed`` generator in the caller's value stack; empty if there is none."""
        if at.depth + 1 >= len(at.frames):
            return {}
        for value in self._python.frames.value_stack(at.frames[at.depth + 1]):
            if value and self._objects.type_name(value) == "generator":
                inner = self._python.frames.generator(value).frame
                if inner is not None and inner.is_in("as_completed", "asyncio/tasks.py"):
                    return dict(self._python.frames.locals(inner))
        return {}

    def _group(self, at: _Place) -> Optional[Awaited]:
        """Describe the exit of a TaskGroup."""
        group = self._self(at.frame)
        members = attribute(self._objects, group, "_tasks") if group else None
        if members is None:
            return None
        found = self._of_several(self._members(members), False, "TaskGroup")
        found.passes_on = found.all = True
        return found

    def _stream(self, at: _Place) -> Optional[Awaited]:
        """Describe the wait of a reader, of a writer, or of the protocol between one and its transport."""
        stream = self._self(at.frame)
        if stream is None:
            return None
        values = attributes(self._objects, stream)
        fd = descriptor_of_transport(self._objects, values.get("_transport"))
        if fd is None and "_stream_reader_wr" in values:
            return None  # the writer's frame around this one has the transport
        what = {"_wait_for_data": "reads", "drain": "waits until what it wrote is taken"}.get(at.frame.function)
        return Awaited("descriptor", fd=fd, detail=what)

    def _socket(self, at: _Place) -> Optional[Awaited]:
        """Describe a ``sock_…`` method of the loop."""
        fd = descriptor_of_socket(self._objects, self._python.frames.local(at.frame, "sock"))
        return Awaited("descriptor", fd=fd, detail=at.frame.function)

    def _server(self, at: _Place) -> Optional[Awaited]:
        """Describe a wait of a server for its connections."""
        if at.frame.function != "serve_forever":
            return Awaited("future", future=at.waiter, detail="waits until the server's connections are closed")
        server = self._self(at.frame)
        fd = descriptor_of_server(self._objects, server) if server else None
        return Awaited("descriptor", fd=fd, detail="serves")

    def _child(self, at: _Place) -> Optional[Awaited]:
        """Describe a wait for a child process."""
        transport = self._self(at.frame)
        pid = self._number(attribute(self._objects, transport, "_pid")) if transport else None
        return Awaited("process", pid=None if pid is None else int(pid), detail="waits for a child to end")

    def _executor(self, at: _Place) -> Optional[Awaited]:
        """Describe ``shutdown_default_executor``: a helper thread joins the executor's workers."""
        thread = self._python.frames.local(at.frame, "thread")
        timed = self._given(self._python.frames.local(at.frame, "timeout"))
        return Awaited(
            "thread", future=at.waiter, thread=thread, timed=timed, detail="waits for the executor's workers to end"
        )

    # ------------------------------------------------------------------ values

    def _members(self, address: int) -> Sequence[int]:
        if self._objects.type_name(address) in ("set", "frozenset"):
            return list(self._objects.set_items(address))
        return self._objects.items(address, _MAX_TASKS)

    def _given(self, address: Optional[int]) -> bool:
        """Return whether an argument is neither unknown nor None."""
        return address is not None and self._objects.type_name(address) != "NoneType"

    def _number(self, address: Optional[int]) -> Optional[float]:
        try:
            return self._objects.number(address) if address else None
        except (Fault, NotThat):
            return None


_A = Awaiting
#: (inner kind, outer kind): the outer frame's answer replaces the inner one's.
_CONTAINERS = {("event", "lock"), ("event", "queue"), ("condition", "barrier"), ("queue", "tasks")}
_RULES: Dict[Tuple[str, str], _Rule] = {
    ("locks.py", "acquire"): _A._primitive, ("locks.py", "wait"): _A._primitive, ("queues.py", "get"): _A._primitive,
    ("queues.py", "put"): _A._primitive, ("queues.py", "join"): _A._primitive,
    ("tasks.py", "sleep"): _A._sleep, ("tasks.py", "_wait"): _A._wait, ("tasks.py", "wait_for"): _A._wait_for,
    ("tasks.py", "_cancel_and_wait"): _A._cancelling, ("tasks.py", "_wait_for_one"): _A._completed,
    ("taskgroups.py", "__aexit__"): _A._group, ("taskgroups.py", "_aexit"): _A._group,
    ("_asyncio.py", "acquire"): _A._primitive, ("_asyncio.py", "__aexit__"): _A._group,  # anyio
    ("_synchronization.py", "acquire"): _A._primitive,
    ("memory.py", "send"): _A._memory_stream, ("memory.py", "receive"): _A._memory_stream,
    ("streams.py", "_wait_for_data"): _A._stream, ("streams.py", "_drain_helper"): _A._stream,
    ("streams.py", "drain"): _A._stream, ("streams.py", "wait_closed"): _A._stream,
    ("selector_events.py", "sock_recv"): _A._socket, ("selector_events.py", "sock_recv_into"): _A._socket,
    ("selector_events.py", "sock_recvfrom"): _A._socket, ("selector_events.py", "sock_recvfrom_into"): _A._socket,
    ("selector_events.py", "sock_sendall"): _A._socket, ("selector_events.py", "sock_sendto"): _A._socket,
    ("selector_events.py", "sock_connect"): _A._socket, ("selector_events.py", "sock_accept"): _A._socket,
    ("base_events.py", "serve_forever"): _A._server, ("base_events.py", "wait_closed"): _A._server,
    ("base_events.py", "shutdown_default_executor"): _A._executor,
    ("base_subprocess.py", "_wait"): _A._child,
}  # fmt: skip
