"""The synchronisation object that a blocked thread awaits, from the standard library's frames.

A wait for a Queue, Future or Barrier is a wait for a Condition inside it, which is a wait for a lock made for this
waiter. The lock reveals nothing; the frames do. Each function in the table has the object as its ``self``; the
outermost one is what the program waits for.

Sources: Lib/threading.py, Lib/queue.py, Lib/concurrent/futures/_base.py, Lib/importlib/_bootstrap.py of 3.8-3.15.
"""

from __future__ import annotations

from typing import List, Literal, NamedTuple, Optional, Sequence, Tuple

from ...memory import Fault
from ..frames.frame import Frame, Frames
from ..objects.attributes import attribute
from ..objects.builtins import NotThat, Objects
from .parking import parked_on

IMPORTLIB = ("<frozen importlib._bootstrap>", "importlib/_bootstrap.py")
_THREADING, _QUEUE, _FUTURES = ("/threading.py",), ("/queue.py",), ("concurrent/futures/_base.py",)
#: Most nested layers: no call of the standard library nests deeper.
_MAX_LAYERS = 12

LayerKind = Literal[
    "condition", "event", "semaphore", "barrier", "thread", "queue", "future", "futures", "import-lock", "variable",
    "shared-variable", "global-variable", "contents",
]  # fmt: skip
#: Variables that are polled: an attribute that an object itself has; one of a class or module, which more code can set; one of a
#: module's own globals (the object is their dict); what a container has in it.
VARIABLES: Tuple[LayerKind, ...] = ("variable", "shared-variable", "global-variable", "contents")
#: (file endings, functions, type or base of ``self``, kind)
_LAYERS: Tuple[Tuple[Tuple[str, ...], Tuple[str, ...], str, LayerKind], ...] = (
    (_THREADING, ("wait", "wait_for", "_acquire_restore"), "Condition", "condition"),
    (_THREADING, ("wait",), "Event", "event"),
    (_THREADING, ("acquire",), "Semaphore", "semaphore"),
    (_THREADING, ("wait", "_wait", "_enter"), "Barrier", "barrier"),
    (_THREADING, ("join", "_wait_for_tstate_lock"), "Thread", "thread"),
    (_QUEUE, ("get", "put", "join"), "Queue", "queue"),
    (_QUEUE, ("get",), "_PySimpleQueue", "queue"),
    (_FUTURES, ("result", "exception"), "Future", "future"),
    (IMPORTLIB, ("acquire",), "_ModuleLock", "import-lock"),
)
#: Functions that wait for several futures → variable with the pending ones (Lib/concurrent/futures/_base.py).
_SEVERAL = {"wait": "not_done", "as_completed": "pending"}


class Layer(NamedTuple):
    """A standard function that waits, and its object."""

    kind: LayerKind
    address: int  # of the object; for "futures", of their set
    function: str  # "get"; of a variable its name
    depth: int  # index of its frame, 0 = most recent call


def layers(frames: Frames, stack: Sequence[Frame]) -> List[Layer]:
    """Return the layers of a wait, innermost first; empty if the innermost frame is not in the table."""
    found: List[Layer] = []
    for depth, frame in enumerate(stack[:_MAX_LAYERS]):
        layer = _layer(frames, frame, depth)
        if layer is None:
            break
        found.append(layer)
    return found


def _layer(frames: Frames, frame: Frame, depth: int) -> Optional[Layer]:
    """Return the layer of a frame; None if its function is not in the table."""
    function = frame.function
    for files, functions, type_name, kind in _LAYERS:
        if function in functions and frame.code.filename.endswith(files):
            value = frames.local(frame, "self")
            if value is not None and frames.objects.is_instance(value, type_name):
                return Layer(kind, value, function, depth)
    if function in _SEVERAL and frame.code.filename.endswith(_FUTURES):
        several = frames.local(frame, _SEVERAL[function])
        if several is not None:
            return Layer("futures", several, function, depth)
    return None


def condition_lock(objects: Objects, layer: Layer) -> Optional[int]:
    """Return the lock that a Condition releases during a wait and re-acquires afterwards; None if unknown."""
    return attribute(objects, layer.address, "_lock")


# ---------------------------------------------------------------------- queues in C


class SimpleQueue(NamedTuple):
    """A queue.SimpleQueue."""

    address: int
    items: Optional[Tuple[int, ...]]  # addresses, next one first; None if unreadable


#: simplequeueobject, Modules/_queuemodule.c: up to 3.12 lock, locked, lst, lst_pos, weakreflist; since 3.13
#: has_threads_waiting, the ring (put_idx, get_idx, items, items_cap, num_items), weakreflist. The size distinguishes
#: them.
_NAME, _OLD_SIZE, _WORD = "_queue.SimpleQueue", 56, 16
RING_ITEMS = 40
_MOST_ITEMS = 1_000_000


def simple_queue(objects: Objects, address: int) -> Optional[SimpleQueue]:
    """Return a queue.SimpleQueue with its items; None for other objects."""
    if not objects.is_instance(address, _NAME):
        return None
    try:
        return SimpleQueue(address, _simple_items(objects, address))
    except (Fault, NotThat):
        return SimpleQueue(address, None)


def _simple_items(objects: Objects, address: int) -> Tuple[int, ...]:
    """Return the items of a SimpleQueue. Raises Fault or NotThat."""
    if _is_ring(objects, address):
        ring = ring_of(objects, address)
        words = objects.memory.words(ring.items, ring.places)
        return tuple(words[(ring.first + i) % ring.places] for i in range(ring.filled))
    taken = objects.field(address, 40)
    return objects.items(objects.field(address, 32))[taken:]


class Ring(NamedTuple):
    """The ring of a SimpleQueue since 3.13: ``filled`` places from ``first`` on, of ``places`` at ``items``."""

    first: int
    items: int
    places: int
    filled: int


def ring_of(objects: Objects, address: int) -> Ring:
    """Return the ring of a SimpleQueue. Raises Fault or NotThat."""
    ring = Ring(*(objects.field(address, offset) for offset in (32, RING_ITEMS, 48, 56)))
    if ring.filled > ring.places or ring.places > _MOST_ITEMS:
        raise NotThat("a damaged queue")
    return ring


def _is_ring(objects: Objects, address: int) -> bool:
    """Return whether a SimpleQueue has the layout since 3.13. Raises Fault or NotThat."""
    info = objects.type_of(address)
    for _ in range(32):  # a subclass is larger
        if info.name == _NAME or not info.base:
            break
        info = objects.type_at(info.base)
    return info.basicsize - objects.layout.ob_extra > _OLD_SIZE


def awaited_queue(frames: Frames, stack: Sequence[Frame], word: int) -> Optional[int]:
    """Return the SimpleQueue whose ``get`` a thread awaits on a futex word; None if there is none.

    The word is that of the queue's lock; since 3.13 the thread is parked at the queue's flag.
    """
    objects: Objects = frames.objects
    parked = parked_on(objects.memory, word)
    if parked is not None:
        found = parked - objects.layout.ob_extra - _WORD
        return found if objects.is_instance(found, _NAME) else None
    for frame in stack[:2]:
        for value in (*frames.value_stack(frame), *(value for _name, value in frames.locals(frame))):
            if value and objects.is_instance(value, _NAME) and _lock_word(objects, value) == word:
                return value
    return None


def _lock_word(objects: Objects, queue: int) -> Optional[int]:
    """Return the address of the semaphore of a SimpleQueue's lock; None if unreadable."""
    try:
        return objects.field(queue, _WORD)
    except Fault:
        return None


# ---------------------------------------------------------------------- threads that end

#: ThreadHandleObject.handle (3.13+), and the size of the handle, which contains the event that a thread sets at its
#: end: node, refcount, ident, os_handle, state, mutex, thread_is_exiting (Modules/_threadmodule.c, ThreadHandle).
_HANDLE, _HANDLE_SIZE = 16, 64
_HANDLES = ("_handle", "_os_thread_handle")  # 3.13, 3.14


def ends_at(objects: Objects, thread: int, event: int) -> bool:
    """Return whether ``event`` is the address of the event that a threading.Thread sets when it ends."""
    for name in _HANDLES:
        handle = attribute(objects, thread, name)
        try:
            if handle and 0 <= event - objects.field(handle, _HANDLE) < _HANDLE_SIZE:
                return True
        except Fault:
            continue
    return False
