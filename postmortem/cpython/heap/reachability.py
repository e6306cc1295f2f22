"""Threads, tasks and code that can still reach an awaited object: its referrers, their referrers, and so on.

To signal an object, code must reach it along references. The walk goes from the object upwards:
- It ends at actors: another thread's frame, another task, a module, a class, an event loop's timers and descriptors.
- It passes what cannot act by itself: containers, instances, functions, suspended generators.
- It stops at the waiters, their frames, and tasks that in turn wait for a waiter.

If the reference count of every object on the way accounts for all its references, the list of actors is complete;
otherwise nothing is claimed.

Weak references are followed as well, except those by which asyncio lists all tasks.

Limit: an actor that reaches a waiting task could cancel it; that is not considered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Literal, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ...memory import Fault
from ..frames.frame import Frame
from ..frames.functions import Functions
from ..objects.attributes import attribute
from ..objects.builtins import NotThat
from ..objects.wordsearch import OutOfTime
from ..state.interpreter import Python, ThreadState
from .owners import Holder
from .referrers import Reference, References, Referrers
from .registries import Registry, RegistryKind
from .slots import CALLBACK, WEAK, Slot

MAX_OBJECTS, MAX_LEVELS = 300, 24
MOST_REFERRERS = 6
#: Functions of asyncio that keep a task in a local variable only to wait for its end.
_RUNNERS = (
    ("run_until_complete", "asyncio/base_events.py"),
    ("run_forever", "asyncio/base_events.py"),
    ("_run_once", "asyncio/base_events.py"),
    ("run", "asyncio/runners.py"),
)
#: The generator of trio's loop, whose variables still refer to the task that it stepped last, and to what that yielded.
_STEPPER = ("unrolled_run", "trio/_core/_run.py")
#: Attributes of threading.Thread for its own start (Lib/threading.py), which no other code uses.
_PRIVATE = ("_args", "_kwargs", "_target")
#: Attributes of an event loop that only its own code uses (Lib/asyncio/base_events.py, selector_events.py) → name.
_QUEUES = {"_ready": "the ready queue", "_scheduled": "the timers", "_selector": "the selector"}
#: Containers and callables: what refers to an object in one of these knows it by the name that it has for these.
_UNNAMED = ("item", "key", "value", "field", "stack", "weak")
_CALLABLES = ("method", "functools.partial", "function", "builtin_function_or_method", "builtin_method")
#: Most public places that run no code by themselves and are told: each logger of a program may lead to one.
_MOST_PASSIVE = 8
#: Files of callbacks of weak references that do nothing but remove an entry of their own table (Lib/weakref.py).
_CLEANERS = ("/weakref.py", "/_weakrefset.py")
#: C functions that do so for the variables of a thread (Modules/_threadmodule.c, _localdummy_destroyed; 3.13: clear_locals).
_CLEANERS_IN_C = ("_localdummy_destroyed", "clear_locals")
#: Classes of suspended code, which whoever resumes it does not name.
_SUSPENDED = ("generator", "coroutine", "async_generator")
#: What C code keeps references in, outside of objects.
_REGISTRIES: Mapping[RegistryKind, str] = {
    "thread": "the state of a thread", "start": "the start of a thread", "exit": "the callbacks of atexit",
    "signal": "the handlers of signals", "lost": "the stack of a thread that fork left behind",
    "interpreter": "the hooks of the interpreter", "static": "a variable of C code",
}  # fmt: skip
#: Those of them that run no code by themselves: handlers are agents of their own, hooks are called at events such as a fork.
_PASSIVE_REGISTRIES: Tuple[RegistryKind, ...] = ("signal", "interpreter")
#: Classes whose instances run code by themselves and are not read as tasks.
_ACTORS = ("_asyncio.Task", "Task", "greenlet.greenlet")
_QUEUED_JOB = "a job in the queue of its pool"


@dataclass(frozen=True)
class Surroundings:
    """Objects that the walk must recognise, by address."""

    threads: Set[int]  # thread states of the waiters
    tasks: Set[int]  # waiting tasks, and those that wait for one of them
    pending: Set[int]  # all tasks that have not ended
    ended: Set[int] = field(default_factory=set)  # all tasks that have ended
    subject: int = 0  # the awaited object, of which others are parts
    modules: Mapping[int, str] = field(default_factory=dict)  # namespace → name of the module
    registries: Set[int] = field(default_factory=set)  # asyncio's sets of all tasks
    coroutines: Set[int] = field(default_factory=set)  # coroutines of tasks that have not ended
    of_threads: Mapping[int, ThreadState] = field(default_factory=dict)  # Thread objects and their dicts → thread state
    blind: FrozenSet[str] = frozenset()  # classes whose instances have the subject, but cannot end a wait for it
    #: Jobs in the queue of a full pool → its workers, which alone can run them.
    queued: Mapping[int, Sequence[ThreadState]] = field(default_factory=dict)


#: Reasons why the list of actors is incomplete. uncounted: not all references of an object were found.
ObstacleKind = Literal[
    "free-threaded", "late", "no-count", "weak", "overcounted", "uncounted", "objects", "levels", "unreadable"
]


class Obstacle(NamedTuple):
    """A reason why the walk is incomplete.

    ``what``: the object, or the text of an error; ``references``: its reference count; ``found``: how many of them were
    found.
    """

    kind: ObstacleKind
    what: str = ""
    references: int = 0
    found: int = 0


class Step(NamedTuple):
    """A step on the path to the object: a referring place, or an object passed (``slot`` None).

    ``suspended``: the object is a generator or coroutine.
    """

    text: str
    slot: Optional[Slot] = None
    is_dict: bool = False
    suspended: bool = False


class _Public(NamedTuple):
    """A place known to all code of the process, and the object that it belongs to.

    ``passive``: it runs no code by itself.
    """

    text: str
    owner: str
    passive: bool = False

    @classmethod
    def named(cls, text: str, passive: bool = False) -> _Public:
        """Build a place that is its own owner."""
        return cls(text, text, passive)


class Actor(NamedTuple):
    """A thread or task that can reach the object; with neither, any code that has the path's beginning.

    ``passive``: that beginning is a place that runs no code by itself.
    """

    way: Tuple[Step, ...]
    thread: Optional[ThreadState] = None
    task: Optional[int] = None
    frame: Optional[Frame] = None
    passive: bool = False

    @property
    def is_agent(self) -> bool:
        """Whether it is a thread or task."""
        return self.thread is not None or self.task is not None

    @property
    def is_passive(self) -> bool:
        """Whether only agents whose code names the place can follow its path.

        A suspended generator on the path is code itself: who resumes it names neither it nor what it has.
        """
        return self.passive and not any(step.suspended for step in self.way)


class ReferredTo(NamedTuple):
    """An object on the way from an actor, how often it is referred to, and by what."""

    object: str  # "task Task-1", "the Lock"
    times: int
    by: Tuple[str, ...]


@dataclass
class Reach:
    """Result of a walk.

    - ``actors``: those that can reach the object.
    - ``steps``: the references to each object on the way.
    - ``obstacle``: why the list of actors is incomplete; None if it is complete.
    - ``references``: number of references followed.
    - ``names``: attributes, keys and variables that refer to the object, directly or through containers alone; a
      variable with the address of its code.
    - ``callers``: the same for callables that are bound to it, or have it in their closure or arguments, behind the name
      of the method that they are, empty for other code.
    - ``holders``: objects that have it as an attribute.
    - ``left_behind``: whether a thread that fork left behind has it.
    - ``presumed``: whether a reference on the way only fits into a count, so that nothing is proven by the counts.
    - ``queued``: jobs in the queues of full pools that lead to the object; only the workers act on a queue.
    - ``at_exit``: what the main thread calls when its code has ended, if it has a path by that.
    """

    actors: List[Actor] = field(default_factory=list)
    steps: List[ReferredTo] = field(default_factory=list)
    obstacle: Optional[Obstacle] = None
    references: int = 0
    names: Set[Tuple[object, ...]] = field(default_factory=set)
    callers: Set[Tuple[object, ...]] = field(default_factory=set)
    holders: Set[int] = field(default_factory=set)
    at_exit: Tuple[int, ...] = ()
    queued: Set[int] = field(default_factory=set)
    left_behind: bool = False
    presumed: bool = False

    @property
    def complete(self) -> bool:
        """Whether certainly only the actors can reach the object, and all of them are threads or tasks."""
        return self.obstacle is None and not self.presumed and all(actor.is_agent for actor in self.actors)

    @property
    def accounted(self) -> bool:
        """Whether only the actors can reach the object: threads, tasks, and places that do nothing by themselves."""
        return self.obstacle is None and all(actor.is_agent or actor.is_passive for actor in self.actors)


class Walk:
    """A walk upwards from ``starts``; ``names``: address of a task → its name."""

    def __init__(
        self,
        python: Python,
        referrers: Referrers,
        around: Surroundings,
        names: Mapping[int, str],
        starts: Sequence[int],
    ) -> None:
        self._objects = python.objects
        self._python = python
        self._referrers = referrers
        self._around = around
        self._names = names
        self._paths: Dict[int, Tuple[Step, ...]] = {}
        self.front: List[int] = []  # objects whose referrers are searched next
        self._weak: Set[int] = set()
        self._unnamed = {around.subject}  # the object, and containers that lead to it
        self._callables: Dict[int, str] = {}  # those that lead to it → method of the object, "" for other code
        self.reach = Reach()
        for address in starts:
            self._add(address, ())

    def _climb(self, found: Mapping[int, References]) -> None:
        """Climb one level, from the references to the objects of ``front``. Raises Fault or NotThat."""
        level, self.front = self.front, []
        for address in level:
            references, said = found[address], []
            for reference in references.found:
                self.reach.presumed = self.reach.presumed or reference.presumed
                self._note_name(address, reference)
                what = self._follow(address, reference)
                if what:
                    said.append(what)
            obstacle = self._unaccounted(address, references)
            if obstacle is not None:
                self.reach.obstacle = self.reach.obstacle or obstacle
            times = references.count if references.count is not None else 0
            self.reach.steps.append(ReferredTo(self._called(address), times, tuple(dict.fromkeys(said))))
            self.reach.references += references.count or 0
        if len(self._paths) > MAX_OBJECTS:
            self.give_up(Obstacle("objects"))

    def climb(self, found: Mapping[int, References]) -> None:
        """Climb one level; on an error end the walk with an obstacle. Never raises."""
        try:
            self._climb(found)
        except (Fault, NotThat) as exc:
            self.give_up(Obstacle("unreadable", str(exc)))

    def give_up(self, why: Obstacle) -> None:
        """Record an obstacle, unless there is one already."""
        self.reach.obstacle = self.reach.obstacle or why

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to climb, or the list of actors is known to be incomplete or open."""
        return not self.front or not self.reach.accounted

    # ------------------------------------------------------------------ accounts

    def _unaccounted(self, address: int, references: References) -> Optional[Obstacle]:
        """Return why not all references to an object are known; None if they are."""
        what = self._called(address)
        if references.count is None:
            return Obstacle("no-count", what)
        if references.weak:
            return Obstacle("weak", what)
        if references.counted == references.count:
            return None
        if references.counted > references.count:
            return Obstacle("overcounted", what)
        return Obstacle("uncounted", what, references.count, references.counted)

    # ------------------------------------------------------------------ names

    def _note_name(self, address: int, reference: Reference) -> None:
        """Note by which name code would load the object, or a callable that leads to it."""
        called = address in self._callables
        if not called and address not in self._unnamed:
            return
        how, holder = reference.how, reference.holder
        if how.name is not None:
            frame = reference.frame
            local = (frame.code.address,) if how.kind == "local" and frame is not None else ()
            if called:
                self.reach.callers.add((self._callables[address], how.name, *local))
            else:
                self.reach.names.add((how.name, *local))
        if holder is None:
            return
        kind = self._objects.type_name(holder.address)
        if kind in _CALLABLES:
            self._callables[holder.address] = self._callables.get(address) or self._method(holder.address, kind)
        elif how.kind in _UNNAMED and called:
            self._callables[holder.address] = self._callables[address]
        elif how.kind in _UNNAMED:
            self._unnamed.add(holder.address)
        elif not called and how.kind in ("attribute", "slot"):
            self.reach.holders.add(holder.address)

    def _method(self, address: int, kind: str) -> str:
        """Return the name of a bound method; empty for other callables, or if unreadable."""
        functions = Functions(self._python.frames)
        code = functions.code(address) if kind == "method" else None
        if code is not None:
            return code.name
        return functions.c_name(address) if kind in ("builtin_function_or_method", "builtin_method") else ""

    # ------------------------------------------------------------------ one reference

    def _follow(self, address: int, reference: Reference) -> Optional[str]:
        """Record the actor behind a reference, or add its holder to the walk.

        Returns a description; None for references that do not count.
        """
        if reference.thread is not None or reference.task is not None or reference.registry is not None:
            return self._outside_of_objects(address, reference) if reference.counted else None
        holder = reference.holder
        if holder is None or (reference.counted is False and reference.how != WEAK):
            return None
        if reference.how == WEAK:
            self._weak.add(holder.address)
            self._add(holder.address, self._at(address, WEAK))
            return None
        if holder.address in self._around.pending or holder.address in self._around.tasks:
            return self._by_task(address, reference, holder)
        if holder.address in self._around.queued:
            return self._by_job(address, holder)
        private = reference.how.kind in ("attribute", "value") and reference.how.name in _PRIVATE
        if private and holder.address in self._around.of_threads:
            thread = self._around.of_threads[holder.address]
            if thread.address in self._around.threads:
                return f"the start of {_thread(thread)}"
            self._meet(Actor(self._at(address, reference.how), thread))
            return f"the start of {_thread(thread)}"
        return self._by_object(address, reference, holder)

    def _by_job(self, address: int, holder: Holder) -> str:
        """Follow a reference from a queued job: the workers of its pool can act, but those that await the object."""
        self.reach.queued.add(holder.address)
        for thread in self._around.queued[holder.address]:
            if thread.address not in self._around.threads:
                self._meet(Actor(self._at(address, _QUEUED_JOB), thread))
        return f"{_QUEUED_JOB}, which only a worker can run"

    def _outside_of_objects(self, address: int, reference: Reference) -> str:
        """Follow a reference from a frame on a stack, a frame of a greenlet, or what C code keeps."""
        if reference.thread is not None:
            return self._on_stack(address, reference)
        if reference.task is not None:
            return self._in_greenlet(address, reference, reference.task)
        assert reference.registry is not None
        return self._in_registry(address, reference.registry)

    def _on_stack(self, address: int, reference: Reference) -> str:
        """Follow a reference from a frame on a thread's stack."""
        thread, frame = reference.thread, reference.frame
        assert thread is not None
        function = frame.function if frame is not None else "?"
        if thread.address in self._around.threads:
            return f"{reference.how} of {function} (on the waiting thread's own stack)"
        if address in self._around.coroutines:
            return f"{reference.how} of {function}, which its task runs"  # only the task can: it is recorded by itself
        if frame is not None and address in self._around.tasks and any(frame.is_in(*runner) for runner in _RUNNERS):
            return f"{reference.how} of asyncio's {function}"
        self._meet(Actor(self._at(address, f"{reference.how} of {function}"), thread, None, frame))
        return f"{reference.how} of {function} ({_thread(thread)})"

    def _in_greenlet(self, address: int, reference: Reference, greenlet: int) -> str:
        """Follow a reference from a frame of a suspended greenlet: one that awaits the object cannot act."""
        function = reference.frame.function if reference.frame is not None else "?"
        name = f"{reference.how} of {function} (task {self._names.get(greenlet, '?')})"
        if greenlet not in self._around.tasks:
            self._meet(Actor(self._at(address, f"{reference.how} of {function}"), None, greenlet, reference.frame))
        return name

    def _in_registry(self, address: int, registry: Registry) -> str:
        """Follow a reference that C code keeps: it is a thread's own, or that of what the main thread calls at its end."""
        kind, registries, text = registry.kind, self._referrers.registries, _REGISTRIES[registry.kind]
        if kind == "lost":  # nobody runs it
            self.reach.left_behind = True
            return text
        thread = self._python.main_thread if kind == "exit" else registry.thread
        if thread is None:
            self._meet(Actor(self._at(address, text), passive=kind in _PASSIVE_REGISTRIES))
            return text
        if thread.address in self._around.threads:
            return f"{text}, which the waiting thread alone uses"
        if kind == "exit":
            self.reach.at_exit = registries.exit_callables()
        self._meet(Actor(self._at(address, text), thread))
        return f"{text} ({_thread(thread)})"

    def _by_task(self, address: int, reference: Reference, holder: Holder) -> str:
        """Follow a reference from a pending task: one that awaits the object cannot act, any other can."""
        name = f"task {self._names.get(holder.address, '?')}"
        if holder.address in self._around.tasks:
            return f"{name}, which waits"
        self._meet(Actor(self._at(address, name), None, holder.address))
        return name

    def _by_object(self, address: int, reference: Reference, holder: Holder) -> Optional[str]:
        """Follow a reference from an object that is neither frame nor task."""
        if holder.address in self._around.registries:
            return "asyncio's list of all tasks"
        if reference.how == CALLBACK and (address in self._weak or self._only_cleans(address)):
            return None
        if reference.frame is not None and reference.frame.is_in(*_STEPPER):
            return "trio's unrolled_run, which keeps what the last task's step has left"
        if holder.kind in self._around.blind:
            return f"{self._called(holder.address)}, which cannot end the wait"
        runner = self._by_loop(address, reference, holder)
        if runner is not None:
            return runner
        anybody = self._anybody(holder, reference)
        if anybody is not None:
            path, way = self._paths[address], self._at(address, anybody.text)
            if reference.how.kind in ("slot", "dict") and len(path) > 1:  # the path of the instance's dict
                way = (Step(f"{path[0].text} of {anybody.owner}", path[0].slot), *path[1:])
            self._meet(Actor(way, passive=anybody.passive))
            return anybody.text
        self._add(holder.address, self._at(address, reference.how))
        namespace = self._referrers.holders.namespace(holder) if reference.how.kind == "attribute" else None
        if namespace is not None:  # `vars(instance)` reaches the values too, though they are in the instance
            self._add(namespace, self._at(address, reference.how))
        inside = f" of {reference.frame.function}" if reference.frame is not None else ""
        return f"{reference.how}{inside} of {self._called(holder.address)}"

    def _only_cleans(self, address: int) -> bool:
        """Return whether a weak reference's callback only removes an entry of a table of weak references."""
        kind = self._objects.type_name(address)
        if kind not in _CALLABLES:
            return False
        functions = Functions(self._python.frames)
        if kind in ("builtin_function_or_method", "builtin_method"):
            return functions.c_name(address) in _CLEANERS_IN_C
        code = functions.code(address)
        return code is not None and code.filename.endswith(_CLEANERS)

    def _by_loop(self, address: int, reference: Reference, holder: Holder) -> Optional[str]:
        """Follow a reference from an event loop's own queues, which only the loop's thread uses; else None."""
        if not self._objects.is_instance(holder.address, "BaseEventLoop"):
            return None
        inside, path = reference.how.kind in ("slot", "dict"), self._paths[address]
        slot = (path[0].slot if path else None) if inside else reference.how
        queue = _QUEUES.get(slot.name or "") if slot is not None else None
        ident = self._objects.integer_or_none(attribute(self._objects, holder.address, "_thread_id"))
        thread = next((t for t in self._around.of_threads.values() if t.ident == ident), None)
        if queue is None or thread is None:
            return None
        at = f"{queue} of its event loop"
        self._meet(Actor((Step(at), *path[1:]) if inside else self._at(address, at), thread))
        return f"{queue} of the event loop that {_thread(thread)} runs"

    def _anybody(self, holder: Holder, reference: Reference) -> Optional[_Public]:
        """Return the public place of a holder that is known to all code, or acts by itself; None for other holders."""
        objects = self._objects
        if holder.address in self._around.modules:
            module = self._around.modules[holder.address]
            return _Public(f"global {reference.how.name or reference.how} of {module}", module, True)
        if holder.kind == "type":
            return _Public.named(f"the class {self._class_name(holder.address)}", True)
        if reference.how == CALLBACK:
            return _Public("the callback of a weak reference", "a weak reference")
        if objects.is_instance(holder.address, "module"):
            return _Public.named("a module")
        if objects.is_instance(holder.address, "BaseEventLoop") or objects.is_instance(holder.address, "uvloop.Loop"):
            return _Public(f"{reference.how} of the event loop", "the event loop")
        if (
            any(objects.is_instance(holder.address, name) for name in _ACTORS)
            and holder.address not in self._around.ended
        ):
            return _Public.named(f"a {holder.info.name.split('.')[-1]}")
        return None

    # ------------------------------------------------------------------ books

    def _meet(self, actor: Actor) -> None:
        """Record an actor: each thread and task once, and public places, of those that do nothing only the first."""
        if actor.is_passive and sum(other.is_passive for other in self.reach.actors) >= _MOST_PASSIVE:
            return
        if all(_who(actor) != _who(other) for other in self.reach.actors):
            self.reach.actors.append(actor)

    def _add(self, address: int, path: Tuple[Step, ...]) -> None:
        """Add an object to the walk, unless it was passed; a module's namespace is an actor."""
        if address in self._paths:
            return
        self._paths[address] = path
        if address in self._around.modules:
            self._meet(Actor((Step(f"module {self._around.modules[address]}"),), passive=True))
        else:
            self.front.append(address)

    def _at(self, address: int, step: Union[Slot, str]) -> Tuple[Step, ...]:
        """Return the path from an actor to the awaited object, without dicts of instances and parts of the object."""
        first = Step(str(step), step) if isinstance(step, Slot) else Step(step)
        kind = self._objects.type_name(address)
        steps = [first, Step(self._called(address), None, kind == "dict", kind in _SUSPENDED)]
        if address != self._around.subject:
            steps += self._paths.get(address, ())[1:]
        return tuple(step for step in steps if not step.is_dict)

    def _class_name(self, address: int) -> str:
        try:
            return self._objects.type_at(address).name or "?"
        except (Fault, NotThat):
            return "?"

    def _called(self, address: int) -> str:
        """Describe an object: a task by its name, others by class."""
        if address in self._names:
            return f"task {self._names[address]}"
        name = self._objects.type_name(address) or "?"
        return f"the {name.split('.')[-1]}"


def walk(referrers: Referrers, walks: Sequence[Walk]) -> None:
    """Take several walks to their ends together. Never raises.

    One pass over memory searches for many words at little more than the cost of one.
    """
    for _ in range(MAX_LEVELS):
        going = [one for one in walks if not one.is_over]
        if not going:
            return
        try:
            found = referrers.of(list({address for one in going for address in one.front}))
        except NotThat as exc:
            for one in going:
                one.give_up(Obstacle("late") if isinstance(exc, OutOfTime) else Obstacle("unreadable", str(exc)))
            return
        for one in going:
            one.climb(found)
    for one in walks:
        if not one.is_over:
            one.give_up(Obstacle("levels"))


def _who(actor: Actor) -> Tuple[object, ...]:
    """Return the identity of an actor: its thread and task, or its path without either."""
    thread = actor.thread.address if actor.thread is not None else None
    return thread, actor.task, actor.way if thread is None and actor.task is None else None


def _thread(thread: ThreadState) -> str:
    return f"thread {thread.name or thread.native_id or thread.ident}"
