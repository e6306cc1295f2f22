"""Resources of the standard library that threads wait for.

Conditions, events, semaphores, barriers, queues, futures, threads and imports.
"""

from __future__ import annotations

import contextlib
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.execution.lookup import CHANGES, Watched, stored
from ...cpython.frames.frame import Frame
from ...cpython.objects.attributes import attribute, attributes
from ...cpython.objects.builtins import NotThat
from ...cpython.runtime.layouts import FLAG_TYPE
from ...cpython.sync.primitives import IMPORTLIB, VARIABLES, Layer, LayerKind, simple_queue
from ...evidence import Resource, Waker, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import ResourceKind, WaitKind
from ...frameworks.processpools import results_thread_ended
from ...memory import Fault
from ..ownership.ownership import Acquired, Ownership
from ..ownership.pools import Pools
from ..process.context import PythonContext
from .threadwaits import FutexFacts

#: (kind of the layer, waiting function) → text behind "waits".
_DETAILS = {
    ("condition", ""): "to be notified",
    ("event", ""): "for an event to be set",
    ("semaphore", ""): "for a permit of a semaphore",
    ("barrier", ""): "for the others at a barrier",
    ("queue", "get"): "for an item in a queue",
    ("queue", "put"): "for room in a queue",
    ("queue", "join"): "until every item of a queue is done",
    ("thread", ""): "for a thread to end",
    ("thread", "progress"): "for a thread to get further",
    ("future", ""): "for the result of a job",
    ("futures", ""): "for the results of several jobs",
    ("import-lock", ""): "for another thread to import a module",
    ("variable", ""): "for a variable to change",
    ("shared-variable", ""): "for a variable to change",
    ("global-variable", ""): "for a variable to change",
    ("contents", ""): "for the contents of a container to change",
}
#: Kind of a layer → kind of the resource.
_KINDS: Mapping[LayerKind, ResourceKind] = {
    "condition": "condition", "event": "event", "semaphore": "semaphore", "barrier": "barrier", "thread": "thread",
    "queue": "queue", "future": "future", "futures": "future", "import-lock": "import-lock", "variable": "event",
    "shared-variable": "event", "global-variable": "event", "contents": "event",
}  # fmt: skip
#: Kind of a resource → kind of a wait for it.
_WAIT_KINDS: Dict[ResourceKind, WaitKind] = {"semaphore": "semaphore", "thread": "lock", "import-lock": "lock"}
_MOST_FUTURES = 10_000
_IMPORTING = (*IMPORTLIB, "<frozen importlib._bootstrap_external>", "importlib/__init__.py")


class Draft(NamedTuple):
    """A resource that threads wait for, while threads are being read."""

    ident: str
    kind: ResourceKind
    address: int
    users: List[Frame]
    waiters: List[int]
    functions: List[str]
    tasks: List[str]


class Primitives:
    """A collector of waits for the standard library's primitives."""

    def __init__(self, context: PythonContext, pools: Pools) -> None:
        self._python = context.python
        self._objects = context.python.objects
        self._threads = context.threads
        self._names = context.names
        self._pools = pools
        self._drafts: Dict[Tuple[int, str], Draft] = {}  # by object, and by the variable that is polled
        self._joins: Dict[int, int] = {}  # thread → threading.Thread
        self._variables: Dict[str, Layer] = {}  # resource → the variable that is polled
        self._describe: Dict[str, Callable[[Draft, Resource], Resource]] = {
            "condition": self._condition,
            "event": self._event,
            "semaphore": self._semaphore,
            "barrier": self._barrier,
            "queue": self._queue,
            "future": self._future,
            "thread": self._thread,
            "import-lock": self._import_lock,
        }

    # ------------------------------------------------------------------ waits

    def wait(self, layer: Layer, tid: int, frames: Sequence[Frame]) -> FutexFacts:
        """Note a thread's wait in a layer and return its facts.

        ``frames``: the thread's, most recent call first.
        """
        known, facts = self._noted(layer, frames)
        known.waiters.append(tid)
        if layer.kind == "thread":
            self._joins[tid] = layer.address
        return facts

    def task_wait(self, layer: Layer, task: str, frames: Sequence[Frame]) -> FutexFacts:
        """Note a task's wait for such an object, which it can only poll, and return its facts."""
        known, facts = self._noted(layer, frames)
        known.tasks.append(task)
        return facts

    def _noted(self, layer: Layer, frames: Sequence[Frame]) -> Tuple[Draft, FutexFacts]:
        """Return the draft of a layer's object and the facts of a wait in it."""
        kind = _KINDS[layer.kind]
        key = layer.address, layer.function if layer.kind in VARIABLES else ""
        known = self._drafts.get(key)
        if known is None:
            known = Draft(f"{kind}-{len(self._drafts) + 1}", kind, layer.address, [], [], [], [])
            self._drafts[key] = known
            if layer.kind in VARIABLES:
                self._variables[known.ident] = layer
        known.users.extend(frames[layer.depth + 1 : layer.depth + 6])
        known.functions.append(layer.function)
        detail = _DETAILS.get((layer.kind, layer.function)) or _DETAILS.get((layer.kind, ""))
        return known, FutexFacts(_WAIT_KINDS.get(kind, "condition"), known.ident, detail, "waits" if detail else None)

    def forget(self, ident: str, tid: int) -> None:
        """Forget a thread's wait."""
        for draft in self._drafts.values():
            if draft.ident == ident and tid in draft.waiters:
                draft.waiters.remove(tid)

    def ident(self, address: int) -> Optional[str]:
        """Return the resource id of an object; None if nothing waits for it."""
        draft = self._drafts.get((address, ""))
        return draft.ident if draft is not None else None

    def named(self, ident: str) -> Tuple[Optional[str], Sequence[Frame]]:
        """Return the program's name for an awaited object, by its resource id, and the frames that use it."""
        draft = next(draft for draft in self._drafts.values() if draft.ident == ident)
        return self.name(draft.address, draft.users), draft.users

    def addresses(self) -> Dict[str, int]:
        """Return addresses of objects by resource id."""
        return {draft.ident: draft.address for draft in self._drafts.values()}

    def variables(self) -> Dict[str, Watched]:
        """Return what changes the variables that are polled, by resource id."""
        return {ident: _watched(layer) for ident, layer in self._variables.items()}

    def kinds(self) -> Dict[str, ResourceKind]:
        """Return kinds of objects by resource id."""
        return {draft.ident: draft.kind for draft in self._drafts.values()}

    def wanted(self, *kinds: str) -> List[int]:
        """Return addresses of awaited objects of these kinds."""
        return [draft.address for draft in self._drafts.values() if draft.kind in kinds]

    def joined(self, tid: int) -> Optional[int]:
        """Return the thread that a thread joins; None if unknown."""
        return self._threads.tid_of_object(self._joins.get(tid))

    # ------------------------------------------------------------------ results

    def resources(self, holders: Dict[int, Tuple[Waker, ...]]) -> Tuple[Resource, ...]:
        """Return all resources.

        ``holders``: object → holders of its permits, or of items to be put back.
        """
        found = []
        for draft in self._drafts.values():
            wakers = holders.get(draft.address, ())
            blank = Resource(draft.ident, draft.kind, "", waiters=tuple(draft.waiters), wakers=wakers)
            blank = changed(blank, waiting_tasks=tuple(draft.tasks)) if draft.tasks else blank
            found.append(self._describe[draft.kind](draft, blank))
        return tuple(found)

    def name(self, address: int, users: Sequence[Frame]) -> Optional[str]:
        """Return the program's name for an object; None if not found."""
        return self._names.find(lambda value: value == address, users)

    def _called(self, what: str, draft: Draft) -> str:
        name = self.name(draft.address, draft.users)
        return f"{what} {name}" if name else f"{'an' if what[0] in 'AEIOU' else 'a'} {what} whose name was not found"

    def _type(self, draft: Draft) -> str:
        return (self._objects.type_name(draft.address) or draft.kind).split(".")[-1]

    def _integer(self, draft: Draft, attribute_name: str) -> Optional[int]:
        return self._objects.integer_or_none(attribute(self._objects, draft.address, attribute_name))

    def _condition(self, draft: Draft, blank: Resource) -> Resource:
        return changed(blank, description=self._called(self._type(draft), draft))

    def _event(self, draft: Draft, blank: Resource) -> Resource:
        if draft.ident in self._variables:
            return self._variable(draft, blank, self._variables[draft.ident])
        flag = self._integer(draft, "_flag")
        state = "" if flag is None else " (set)" if flag else " (not set)"
        found = changed(blank, description=self._called(self._type(draft), draft) + state, value=flag)
        living = self._threads.by_object if self._python.all_threads and flag == 0 else None
        pool = results_thread_ended(self._python.frames, draft.users, living) if living else None
        return changed(found, closed=True, because=(fact("results-thread-ended", pool=pool),)) if pool else found

    def _variable(self, draft: Draft, blank: Resource, layer: Layer) -> Resource:
        """Describe a variable that is polled: by its object's name in the program, or by its class."""
        known = self.name(draft.address, draft.users)
        if layer.kind == "contents":
            count = self._objects.length_or_none(draft.address)
            named = f"{self._type(draft)} {known or layer.function}".rstrip()
            return changed(blank, description=named if count is None else f"{named} ({_items(count)})", value=0)
        if layer.kind == "global-variable":
            return changed(blank, description=f"variable {layer.function}", value=0)
        owner = known or self._class(draft.address) or self._type(draft)
        return changed(blank, description=f"variable {owner}.{layer.function}", value=0)

    def _class(self, address: int) -> Optional[str]:
        """Return the name of a class; None for other objects."""
        with contextlib.suppress(Fault, NotThat):
            if self._objects.type_of(address).flags & FLAG_TYPE:
                return self._objects.type_at(address).name.split(".")[-1] or None
        return None

    def _semaphore(self, draft: Draft, blank: Resource) -> Resource:
        value, limit = self._integer(draft, "_value"), self._integer(draft, "_initial_value")
        left = f"{value} of {limit} permits" if limit else f"{value or 'no'} permit{'s' if (value or 0) > 1 else ''}"
        state = "" if value is None else f" ({left} left)"
        held = [w for w in blank.wakers if w.basis == "with-slot"]
        known = limit is not None and value is not None and len(held) == limit - value
        because = (fact("permits-held", limit=limit, held=len(held), out=len(held)),) if known else ()
        return changed(
            blank,
            description=self._called(self._type(draft), draft) + state,
            value=value,
            limit=limit,
            closed=True if known else None,
            because=because,
        )

    def _barrier(self, draft: Draft, blank: Resource) -> Resource:
        value, limit = self._integer(draft, "_count"), self._integer(draft, "_parties")
        state = "" if value is None or limit is None else f" ({value} of {limit} have arrived)"
        return changed(blank, description=self._called(self._type(draft), draft) + state, value=value, limit=limit)

    def _queue(self, draft: Draft, blank: Resource) -> Resource:
        simple = simple_queue(self._objects, draft.address)
        if simple is not None:
            items = None if simple.items is None else len(simple.items)
            of = self._pools.of_queue(draft.address)
            called = f"queue of {of}" if of else self._called("SimpleQueue", draft)
            return changed(blank, description=f"{called} ({_filled(items, 0)})", value=items, limit=0)
        items, limit = self._length(draft), self._integer(draft, "maxsize")
        limit = 0 if limit is not None and limit < 0 else limit
        unfinished = self._integer(draft, "unfinished_tasks") if "join" in draft.functions else None
        undone = f", {_items(unfinished)} not done" if unfinished is not None else ""
        return changed(
            blank,
            description=f"{self._called(self._type(draft), draft)} ({_filled(items, limit)}{undone})",
            value=items,
            limit=limit,
        )

    def _length(self, draft: Draft) -> Optional[int]:
        """Return the number of items.

        Read from a Queue's ``queue`` (deque or list) or a _PySimpleQueue's ``_queue``; None if unreadable.
        """
        for name in ("queue", "_queue"):
            inner = attribute(self._objects, draft.address, name)
            try:
                if inner:
                    return self._objects.length(inner)
            except (Fault, NotThat):
                return None
        return None

    def _future(self, draft: Draft, blank: Resource) -> Resource:
        several = self._several(draft.address)
        facts = self._pools.future(draft.address) if several is None else self._pools.several(several)
        name = self.name(draft.address, draft.users) if several is None and not facts.wakers else None
        facts = facts._replace(what=facts.what.replace("Future", f"Future {name}", 1)) if name else facts
        return facts.added_to(blank)

    def _several(self, address: int) -> Optional[List[int]]:
        """Return the futures of a set; None if the object is a future itself."""
        try:
            return sorted(list(self._objects.set_items(address))[:_MOST_FUTURES])
        except (Fault, NotThat):
            return None

    # ------------------------------------------------------------------ threads, imports

    def _thread(self, draft: Draft, blank: Resource) -> Resource:
        tid = self._threads.tid_of_object(draft.address)
        found = attribute(self._objects, draft.address, "_name")
        name = self._objects.optional_text(found) if found else None
        if tid is not None:
            return changed(blank, description=f"thread {name or tid}", owner_tid=tid, owner_basis="recorded")
        started = self._objects.integer_or_none(attribute(self._objects, draft.address, "_ident")) is not None
        gone = True if started and self._python.all_threads and not self._python.finalizing else None
        what = "that is no longer there" if started else "that was never started"
        return changed(blank, description=f"thread {name or '?'}, {what}", owner_gone=gone)

    def _import_lock(self, draft: Draft, blank: Resource) -> Resource:
        module, owner, ident = self._import(draft)
        gone = ident is not None and owner is None and self._python.all_threads and not self._python.finalizing
        return changed(
            blank,
            description=f"import of module {module or '?'}",
            module=module,
            owner_tid=owner,
            owner_basis="recorded" if owner is not None else None,
            owner_gone=True if gone else None,
        )

    def _import(self, draft: Draft) -> Tuple[Optional[str], Optional[int], Optional[int]]:
        """Return (module's name, importing thread, recorded ident) of a _ModuleLock."""
        values: Dict[str, int] = {}
        with contextlib.suppress(Fault, NotThat):
            values = attributes(self._objects, draft.address)
        ident = self._objects.integer_or_none(values.get("owner"))
        owner = self._threads.tid_of_ident(ident)
        return self._objects.optional_text(values["name"]) if "name" in values else None, owner, ident

    def imports(self) -> List[Ownership]:
        """Return the awaited imports that threads perform, each at the line of the import."""
        found: List[Ownership] = []
        for draft in self._drafts.values():
            module, owner, _ident = self._import(draft) if draft.kind == "import-lock" else (None, None, None)
            if owner is None or module is None:
                continue
            state = self._threads.states.get(owner)
            frames = state.frames if state is not None else ()
            loads = (
                i for i, f in enumerate(frames) if f.is_in("_find_and_load", *IMPORTLIB) and self._loads(f, module)
            )
            start = next(loads, len(frames))
            depth = next(
                (i for i, f in enumerate(frames) if i > start and not f.code.filename.endswith(_IMPORTING)), None
            )
            if depth is not None:
                found.append(Ownership(draft.address, owner, "recorded", Acquired(frames[depth], depth, None)))
        return found

    def _loads(self, frame: Frame, module: str) -> bool:
        name = self._python.frames.local(frame, "name")
        return name is not None and self._objects.optional_text(name) == module


def _filled(items: Optional[int], limit: Optional[int]) -> str:
    if items is None:
        return "of unknown length"
    if limit:
        return f"{items} of {limit} places taken"
    return f"{_items(items) if items else 'empty'}, no bound"


def _watched(layer: Layer) -> Watched:
    """Return what changes a variable that is polled.

    What others than the object's own code may reach counts wherever it is stored, and a container that gets another in its
    place under the same name has changed, too.
    """
    stores = frozenset((stored(layer.function),)) if layer.function else frozenset()
    if layer.kind == "contents":
        return Watched(CHANGES, stores)
    return Watched(stores, stores if layer.kind != "variable" else frozenset())


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"
