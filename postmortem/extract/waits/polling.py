"""Threads and tasks that poll: a short pause in a loop that asks an object whether it has come to its end.

``sourcecode/rounds.py`` says whether a loop does nothing else; here are the objects, and what they answer as long as
they have not come to their end.

Sources: Lib/threading.py, queue.py, subprocess.py, concurrent/futures/_base.py, asyncio/{futures,events,locks,queues}.py,
multiprocessing/{process,pool}.py of 3.8-3.15.
"""

from __future__ import annotations

import ast
from typing import Callable, Dict, FrozenSet, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.frames.functions import Functions
from ...cpython.heap.parts import Parts
from ...cpython.objects.attributes import Slots, attribute, class_value
from ...cpython.objects.builtins import NotThat
from ...cpython.sync.primitives import Layer, LayerKind, simple_queue
from ...frameworks.asyncio.futures import CONCURRENT, TASK, Futures
from ...frameworks.asyncio.primitives import Primitives as AsyncPrimitives
from ...memory import Fault
from ...sourcepaths import is_stdlib
from ..process.context import PythonContext
from ..sourcecode.callsites import Function, Span, function_from
from ..sourcecode.exittests import Read, gives, reads
from ..sourcecode.rounds import Asked, Constant, Follower, Loop, Question, Rounds, Value, is_harmless, loops_around

#: Seconds. A thread that sleeps longer in between is not considered to be polling.
LONGEST_S = 10.0
#: Frames outward from the pause that are searched for the loop; files of the standard library that only pause.
_OUTWARD = 3
_MOST_ITEMS = 64
_CONTAINERS = ("list", "tuple", "set", "frozenset", "dict", "collections.deque")
_ASYNC = ("task", "async-future", "async-event", "async-queue", "async-lock", "async-semaphore")

ThingKind = Literal[
    "future", "event", "queue", "thread", "semaphore", "lock", "process", "task", "async-future", "async-event",
    "async-queue", "async-lock", "async-semaphore", "variable", "shared-variable", "global-variable", "contents",
]  # fmt: skip
#: (class or base, attributes that tell it from others of that name, kind); threading.Event among them.
_CLASSES: Tuple[Tuple[str, Tuple[str, ...], ThingKind], ...] = (
    ("Event", ("_flag", "_cond"), "event"),
    ("Queue", ("unfinished_tasks", "queue"), "queue"),
    ("Thread", ("_started", "_daemonic"), "thread"),
    ("Semaphore", ("_value", "_cond"), "semaphore"),
    ("Popen", ("pid", "returncode"), "process"),
    ("BaseProcess", ("_popen",), "process"),
)
_LAYERS: Mapping[ThingKind, LayerKind] = {
    "future": "future", "event": "event", "queue": "queue", "thread": "thread", "semaphore": "semaphore",
    "variable": "variable", "shared-variable": "shared-variable", "global-variable": "global-variable",
    "contents": "contents",
}  # fmt: skip
#: In names of variables that tell a loop to stop: what it waits for in between is something else, or nothing.
_STOPS = ("stop", "shut", "exit", "quit", "clos", "cancel", "abort", "term", "kill", "interrupt", "end", "leav", "halt")


class Polled(NamedTuple):
    """Condition that a thread or task polls for.

    - ``thing``: address of the object; None: of that which the pause itself waits for
    - ``method``: with which the program asks
    - ``endless``: True: nothing but that ends the loop; False: a clock or counter does; None: something else may
    - ``pid``: of a process
    - ``depth``: index of the frame with the loop
    - ``length_s``: for which it sleeps, if its source says so
    """

    thing: Optional[int]
    kind: Optional[ThingKind]
    method: str
    endless: Optional[bool]
    pid: Optional[int]
    depth: int
    length_s: Optional[float] = None


class _Tested(NamedTuple):
    """Variable that a loop tests.

    - ``thing``: owner of an attribute, dict of a module's globals, or a container; ``name``: of the attribute or global variable
    - ``is_open``: whether the loop may wait for it to change: not if it tells the loop to stop, or the loop itself changes it
    """

    thing: int
    kind: ThingKind
    name: str
    is_open: bool


def layer_of(polled: Polled) -> Optional[Layer]:
    """Return a polled object of ``threading``, ``queue`` or ``concurrent.futures`` as a layer; None for others."""
    kind = _LAYERS.get(polled.kind) if polled.kind is not None else None
    if kind is None or polled.thing is None:
        return None
    function = polled.method
    if kind == "queue":
        function = "put" if function in ("full", "put", "put_nowait") else "get"
    return Layer(kind, polled.thing, function, polled.depth - 1)


class Polling:
    """Searches loops for what they poll; the results of equal places are kept. Methods never raise."""

    def __init__(self, context: PythonContext, futures: Optional[Futures] = None) -> None:
        self._context = context
        self._frames = context.python.frames
        self._memory = ThingsInMemory(context, futures)

    def of(
        self,
        frames: Sequence[Frame],
        first: int,
        paused_on: Optional[int],
        raises: Optional[bool] = None,
        runs: bool = False,
    ) -> Optional[Polled]:
        """Return what a pause in a loop waits for; None if its loop does something else, or asks for nothing.

        - ``frames``: most recent call first; those before ``first`` are the pause's own
        - ``paused_on``: the object with which the code pauses, such as an event with a short limit; 0: something that
          is no object, such as a descriptor; None: it only sleeps
        - ``raises``: whether the pause ends with an exception; None: as its name says
        - ``runs``: the code was found between two pauses
        """
        try:
            return self._of(frames, first, paused_on, raises, runs)
        except (Fault, NotThat, RecursionError):
            return None

    def _of(
        self, frames: Sequence[Frame], first: int, paused_on: Optional[int], raises: Optional[bool], runs: bool
    ) -> Optional[Polled]:
        for depth in range(first, min(first + _OUTWARD, len(frames))):
            frame = frames[depth]
            function = self._context.acquires.function(frame)
            if function is None or frame.line is None:
                return None
            span, local = _span(frame), self._locals(frame)
            follower = Follower(
                self._memory,
                self._named(frame, local),
                local.__contains__,
                span,
                frame.line,
                raises if depth == first else None,
                runs,
            )
            for loop in loops_around(function, span, frame.line):
                rounds = follower.rounds(loop)
                if rounds is not None:
                    chosen = self._chosen(rounds, paused_on, depth)
                    if chosen is None and paused_on is None:
                        found = self._at_work(loop, rounds, local, frames, depth)
                        return found or self._variable(loop, rounds, frame, depth)
                    return chosen
            if not is_harmless(function) and not follower.merely_pauses(function):
                return None  # what calls it goes round with more than a pause
        return None

    def _locals(self, frame: Frame) -> Mapping[str, int]:
        return dict(self._frames.locals(frame))

    def _named(self, frame: Frame, local: Mapping[str, int]) -> Callable[[str], Optional[int]]:
        namespace = self._frames.globals(frame)

        def named(name: str) -> Optional[int]:
            found = local.get(name)
            if found is None and namespace:
                try:
                    found = self._frames.objects.lookup(namespace, name)
                except (Fault, NotThat):
                    return None
            return found

        return named

    def _chosen(self, rounds: Rounds, paused_on: Optional[int], depth: int) -> Optional[Polled]:
        """Return the object that a loop waits for: of several one that is no event, which only tells it to stop."""
        found: List[Tuple[Asked, ThingKind]] = []
        for asked in rounds.asked:
            kind = self._memory.kind(asked.thing)
            if kind is not None:
                found.append((asked, kind))
        things = {0 if asked.all else asked.thing for asked, _kind in found}
        several = len(things | {paused_on} if paused_on is not None else things) > 1
        endless = False if rounds.limited else None if rounds.open or rounds.works or several else True
        others = [one for one in found if one[1] not in ("event", "async-event") and one[0].thing != paused_on]
        # a worker that looks for jobs while it waits for a result: the result is what lets it go
        others.sort(key=lambda one: one[1] in ("queue", "async-queue"))
        busy = rounds.spoke or rounds.works  # an event that tells a loop to stop is not what it waits for
        if paused_on is not None and not others:
            return None if busy and self._is_event(paused_on) else Polled(None, None, "", endless, None, depth)
        chosen = next(iter(others or found), None)
        if chosen is None or (busy and chosen[1] in ("event", "async-event")):
            return None
        asked, kind = chosen
        if asked.any:
            endless = None if endless is not False else False
        pid = self._memory.pid(asked.thing)
        return Polled(asked.thing, kind, asked.method.lstrip("."), endless, pid, depth, rounds.length_s)

    def _at_work(
        self, loop: Loop, rounds: Rounds, local: Mapping[str, int], frames: Sequence[Frame], depth: int
    ) -> Optional[Polled]:
        """Return another thread that a loop waits for because it tests a variable of that Thread object; None for other loops.

        So does a method of a thread's class that others call to wait until the thread has caught up.
        """
        if not isinstance(loop, ast.While) or not rounds.open or rounds.works:
            return None
        tested = [n for n in ast.walk(loop.test) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
        for node in tested:
            thing = local.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if not thing or self._memory.kind(thing) != "thread" or self._context.threads.tid_of_object(thing) is None:
                continue
            begins = [frame for frame in frames if frame.is_in("_bootstrap_inner", "/threading.py")]
            if not any(self._frames.local(frame, "self") == thing for frame in begins):  # its own loop
                endless = False if rounds.limited else None
                return Polled(thing, "thread", "progress", endless, None, depth, rounds.length_s)
        return None

    def _variable(self, loop: Loop, rounds: Rounds, frame: Frame, depth: int) -> Optional[Polled]:
        """Return the variable for which a loop waits that does nothing else than to test it; None for other loops.

        Of several that it tests the first: the others, as all that tell it to stop, may end it as well.
        """
        if rounds.works or rounds.limited:
            return None
        sets, changes = gives(loop)
        local = self._locals(frame)
        named = self._named(frame, local)
        found = [
            self._tested(read, frame, named, local, changes)
            for read in reads(loop)
            if read.path[-1] not in sets and (len(read.path) == 1 or read.path[0] not in sets)
        ]
        known = [tested for tested in found if tested is not None]
        chosen = next((tested for tested in known if tested.is_open), None)
        if chosen is None:
            return None
        endless = True if len(known) == 1 and chosen.kind == "variable" else None
        return Polled(chosen.thing, chosen.kind, chosen.name, endless, None, depth, rounds.length_s)

    def _tested(
        self,
        read: Read,
        frame: Frame,
        named: Callable[[str], Optional[int]],
        local: Mapping[str, int],
        changes: FrozenSet[str],
    ) -> Optional[_Tested]:
        """Return a variable that a test reads; None if it is unknown, or no variable that other code changes.

        What is compared with a name in capitals is compared with a constant.
        """
        *to, name = read.path
        owner = self._resolved(to, named) if to else None
        value = (self._memory.attribute(owner, name) if owner is not None else None) if to else named(name)
        is_constant = read.role == "compared" and name.isupper()
        if value is None or is_constant or (owner is not None and self._memory.kind(owner) is not None):
            return None
        constant = self._memory.constant(value)
        if constant is not None and isinstance(constant.value, tuple):
            is_open = name not in changes
            return _Tested(value, "contents", "" if not to and name in local else name, is_open)
        if read.role == "contents" or (not to and name in local) or self._memory.kind(value) is not None:
            return None
        stops = any(word in name.lower() for word in _STOPS)
        is_open = not stops and (read.role == "compared" or (constant is not None and not constant.value))
        if owner is None:
            namespace = self._frames.globals(frame)
            return _Tested(namespace, "global-variable", name, is_open) if namespace else None
        kind: ThingKind = "variable" if self._memory.own(owner, name) is not None else "shared-variable"
        return _Tested(owner, kind, name, is_open)

    def _resolved(self, path: Sequence[str], named: Callable[[str], Optional[int]]) -> Optional[int]:
        """Return the object that a dotted name refers to; None if unknown."""
        found = named(path[0]) if path else None
        for name in path[1:]:
            found = self._memory.attribute(found, name) if found is not None else None
        return found

    def _is_event(self, thing: int) -> bool:
        return bool(thing) and self._memory.kind(thing) in ("event", "async-event")


def _span(frame: Frame) -> Optional[Span]:
    place = frame.code.location(frame.lasti)
    if place is None or place.line is None or place.column is None or place.end_column is None:
        return None
    return Span((place.line, place.column), (place.end_line or place.line, place.end_column))


class ThingsInMemory:
    """Objects in memory, for ``rounds``. Methods never raise."""

    def __init__(self, context: PythonContext, futures: Optional[Futures]) -> None:
        self._context = context
        self._objects = context.python.objects
        self._locks = context.python.locks
        self._functions = Functions(context.python.frames)
        self._futures = futures or Futures(self._objects, self._functions, context.python.objects.layout)
        self._async = AsyncPrimitives(self._objects)
        self._slots = Slots(self._objects)
        self._parts = Parts(self._objects)
        self._kinds: Dict[int, Optional[ThingKind]] = {}

    # ------------------------------------------------------------------ kinds

    def kind(self, thing: int) -> Optional[ThingKind]:
        """Return the kind of an object that can be waited for; None for others."""
        if thing not in self._kinds:
            self._kinds[thing] = self._kind(thing)
        return self._kinds[thing]

    def _kind(self, thing: int) -> Optional[ThingKind]:
        objects = self._objects
        future = self._futures.kind(thing)
        if future is not None:
            return "future" if future == CONCURRENT else "task" if future == TASK else "async-future"
        primitive = self._async.at(thing)
        if primitive is not None:
            found = f"async-{primitive.kind}"
            return found if found in _ASYNC else None  # type: ignore[return-value]
        if simple_queue(objects, thing) is not None:
            return "queue"
        for name, marks, kind in _CLASSES:
            if objects.is_instance(thing, name) and self._has(thing, *marks):
                return kind
        return "lock" if self._locks.at(thing) is not None else None

    def _has(self, thing: int, *names: str) -> bool:
        return all(attribute(self._objects, thing, name) is not None for name in names)

    def pid(self, thing: int) -> Optional[int]:
        """Return the pid of a process; None for other objects."""
        if self.kind(thing) != "process":
            return None
        popen = attribute(self._objects, thing, "_popen") or thing
        return self._objects.integer_or_none(attribute(self._objects, popen, "pid"))

    def _is_over(self, thing: int, kind: ThingKind) -> Optional[bool]:
        """Return whether an object has come to its end: done, set, ended, not empty, not held; None if unknown."""
        objects = self._objects
        if kind in ("future", "async-future", "task"):
            state = self._futures.state(thing)
            return None if state == "unknown" else state == "done"
        if kind in ("event", "semaphore"):
            value = objects.integer_or_none(attribute(objects, thing, "_flag" if kind == "event" else "_value"))
            return None if value is None else value > 0
        if kind == "thread":
            return self._context.threads.tid_of_object(thing) is None
        if kind == "process":
            popen = attribute(objects, thing, "_popen") or thing
            code = attribute(objects, popen, "returncode")
            return code is None or objects.type_name(code) != "NoneType"
        return self._is_free(thing)

    def _is_free(self, thing: int) -> Optional[bool]:
        """Return whether a lock is not held, or a primitive of asyncio's is set or has permits; None if unknown."""
        primitive = self._async.at(thing)
        if primitive is not None:
            locked, value = primitive.locked, primitive.value
            return not locked if locked is not None else bool(value) if value is not None else None
        lock = self._locks.at(thing)
        return None if lock is None or lock.locked is None else not lock.locked

    def _queue(self, thing: int) -> Tuple[Optional[int], Optional[int]]:
        """Return a queue's items and places (0: no bound); None where unknown."""
        objects = self._objects
        simple = simple_queue(objects, thing)
        if simple is not None:
            return None if simple.items is None else len(simple.items), 0
        primitive = self._async.at(thing)
        if primitive is not None:
            return primitive.value, primitive.limit
        inner = attribute(objects, thing, "queue")
        count = objects.length_or_none(inner) if inner else None
        return count, objects.integer_or_none(attribute(objects, thing, "maxsize"))

    # ------------------------------------------------------------------ rounds.Memory

    def question(
        self, thing: int, method: str, words: Mapping[str, Value], positional: Sequence[Value]
    ) -> Optional[Question]:
        """See ``rounds.Memory``; the name of an attribute begins with a dot."""
        kind = self.kind(thing)
        if kind is None:
            return None
        try:
            if kind in ("queue", "async-queue"):
                return self._of_queue(thing, method)
            answers = _ANSWERS.get(kind, {}).get(method)
            return answers if answers is not None and self._is_over(thing, kind) is False else None
        except (Fault, NotThat):
            return None

    def _of_queue(self, thing: int, method: str) -> Optional[Question]:
        items, places = self._queue(thing)
        if items is None:
            return None
        full = bool(places and places > 0 and items >= places)
        if not items:
            return _OF_EMPTY.get(method)
        return _OF_FULL.get(method) if full else None

    def attribute(self, thing: int, name: str) -> Optional[int]:
        """See ``rounds.Memory``."""
        objects = self._objects
        try:
            if objects.type_name(thing) == "module":
                return objects.text_dict(objects.field(thing, 16)).get(name)
        except (Fault, NotThat):
            return None
        found = attribute(objects, thing, name)
        if found is None:
            found = self._slots.get(thing, name)
        if found is not None:
            return found
        found = class_value(objects, thing, name)
        kind = objects.type_name(found) if found is not None else None
        return found if kind not in ("function", "property", "member_descriptor", "getset_descriptor") else None

    def own(self, thing: int, name: str) -> Optional[int]:
        """Return an attribute that an instance itself has; None for those of its class, and of classes and modules."""
        if not self._parts.is_plain(thing):
            return None
        found = attribute(self._objects, thing, name)
        return found if found is not None else self._slots.get(thing, name)

    def method(self, thing: int, name: str) -> Optional[Tuple[int, bool]]:
        """See ``rounds.Memory``. propertyobject: prop_get is its first field (Objects/descrobject.c)."""
        objects = self._objects
        if attribute(objects, thing, name) is not None:
            return None
        found = class_value(objects, thing, name)
        kind = objects.type_name(found) if found is not None else None
        try:
            if found is not None and kind == "property":
                return objects.field(found, 16), True
        except Fault:
            return None
        return (found, False) if found is not None and kind == "function" else None

    def constant(self, thing: int) -> Optional[Constant]:
        """See ``rounds.Memory``."""
        objects = self._objects
        try:
            kind = objects.type_name(thing)
            if kind == "NoneType":
                return Constant(None)
            if kind == "bool":
                return Constant(bool(objects.integer(thing)))
            if kind in ("int", "float"):
                return Constant(objects.number(thing))
            if kind in _CONTAINERS:
                return Constant((0,) if objects.length(thing) else ())
        except (Fault, NotThat, OverflowError):
            pass
        return None

    def items(self, thing: int) -> Optional[Sequence[int]]:
        """See ``rounds.Memory``."""
        objects = self._objects
        try:
            kind = objects.type_name(thing)
            if kind in ("list", "tuple"):
                return objects.first_items(thing, _MOST_ITEMS)
            if kind in ("set", "frozenset"):
                return sorted(list(objects.set_items(thing))[:_MOST_ITEMS])
            if kind == "collections.deque":
                return list(objects.deque_items(thing, _MOST_ITEMS))
            if kind == "dict":
                return [key for key, _value in objects.dict_items(thing)][:_MOST_ITEMS]
        except (Fault, NotThat):
            pass
        return None

    def function(
        self, callee: Optional[int]
    ) -> Optional[Tuple[Function, Callable[[str], Optional[int]], Optional[int]]]:
        """See ``rounds.Memory``."""
        code = self._functions.code(callee)
        function = self._functions.function(callee)
        if code is None or callee is None or function is None:
            return None
        source = function_from(self._context.acquires.source(code.filename), code.name, code.firstlineno)
        if source is None:
            return None
        objects, layout = self._objects, self._objects.layout
        first = layout.func_code - layout.ob_extra > 16
        try:
            namespace = objects.field(function, 16 if first else 24)
        except Fault:
            return None
        closure = self._functions.closure(callee)

        def named(name: str) -> Optional[int]:
            try:
                return closure.get(name) or objects.lookup(namespace, name)
            except (Fault, NotThat):
                return None

        return source, named, self._functions.bound(callee)


_FALSE, _TRUE, _NONE = Question(Constant(False)), Question(Constant(True)), Question(Constant(None))
_LATE = Question(raises="*")
#: What objects answer that have not come to their end; names with a dot are attributes.
_ANSWERS: Mapping[ThingKind, Mapping[str, Question]] = {
    "future": {"done": _FALSE, "result": _LATE, "exception": _LATE},
    "task": {"done": _FALSE, "result": Question(raises="InvalidStateError")},
    "async-future": {"done": _FALSE, "result": Question(raises="InvalidStateError")},
    "event": {"is_set": _FALSE, "isSet": _FALSE, "wait": _FALSE},
    "async-event": {"is_set": _FALSE},
    "thread": {"is_alive": _TRUE, "isAlive": _TRUE, "join": _NONE},
    "process": {
        "poll": _NONE, ".returncode": _NONE, "is_alive": _TRUE, ".exitcode": _NONE, "join": _NONE, "wait": _LATE,
        "communicate": _LATE,
    },
    "lock": {"acquire": _FALSE, "locked": _TRUE, "acquire_lock": _FALSE, "locked_lock": _TRUE},
    "async-lock": {"locked": _TRUE},
    "semaphore": {"acquire": _FALSE},
    "async-semaphore": {"locked": _TRUE},
}  # fmt: skip
_EMPTY, _FULL = Question(raises="Empty"), Question(raises="Full")
_OF_EMPTY: Mapping[str, Question] = {
    "empty": _TRUE, "qsize": Question(Constant(0)), "get": _EMPTY, "get_nowait": Question(raises="Empty"),
}  # fmt: skip
_OF_FULL: Mapping[str, Question] = {"full": _TRUE, "put": _FULL, "put_nowait": _FULL}


def pauses(frames: Sequence[Frame], most: int = 6) -> int:
    """Return the number of innermost frames that belong to the standard library's call that pauses."""
    for depth, frame in enumerate(frames[:most]):
        if not is_stdlib(frame.code.filename):
            return depth
    return 0
