"""Locks: the lock that a thread awaits, and its holder.

Holders:
- A plain ``_thread.lock`` records no owner, but ``with lock:`` leaves the context manager's bound ``__exit__`` on the
  frame's value stack while the body runs, below the depth that the exception table gives for the current instruction
  (Python/compile.c of 3.11-3.13, compiler_with; objects from Modules/_threadmodule.c).
- Since 3.14 it is the function ``__exit__`` and, in the next slot, its context manager (Python/codegen.c,
  LOAD_SPECIAL).
- An RLock records its owner.

A waiter sleeps on a futex word:
- that of the malloc'ed semaphore to which the lock object points, or
- where the lock is a one-byte ``PyMutex`` (3.14, late releases of 3.13), that of its own entry in the parking lot (see
  ``parking``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Set, Tuple

from ...memory import Fault
from ..frames.callheights import COMPILED
from ..frames.frame import Frame, Frames
from ..frames.names import Names
from ..objects.attributes import attribute, attributes, class_value
from ..objects.builtins import NotThat, Objects
from .parking import parked_on

#: lockobject: lock_lock, in_weakreflist, locked; or a PyMutex alone. rlockobject: rlock_lock, rlock_owner, rlock_count,
#: in_weakreflist; or a _PyRecursiveMutex: PyMutex, thread, level (Modules/_threadmodule.c, pycore_lock.h). The size of
#: the type distinguishes them.
_WORD = 16
_MUTEX_SIZE, _RECURSIVE_MUTEX_SIZE = 24, 40
#: PyMutex (Include/internal/pycore_lock.h): bit _Py_LOCKED, next to _Py_HAS_PARKED.
_LOCKED = 1
#: m_self of PyCFunctionObject and im_self of PyMethodObject have the same offset; so have m_ml and im_func.
_SELF, _FUNC = 24, 16
#: Locks without a name at one line after which the search for names ends there.
_MOST_NAMELESS = 50
#: Most frames searched for a lock's name.
_USERS = 8
_MOST_LOCALS = 50
_MOST_WAITERS = 10_000
_PURE_RLOCK = "_RLock"
_EXITS = ("__exit__", "__aexit__")
#: PyDescrObject.d_name, PyMethodDescrObject.d_method (Include/cpython/descrobject.h, descrobject.h before 3.11)
_DESCRIBED, _METHOD = 24, 40


@dataclass(frozen=True)
class LockState:
    """A lock at the time of the read."""

    address: int
    kind: Literal["lock", "rlock", "mutex"]  # mutex: per-object lock of a free-threaded build
    word: int  # address of the semaphore or the PyMutex; 0 if unknown
    locked: Optional[bool]
    owner_ident: Optional[int]  # recorded for an RLock and a mutex only
    through: Optional[str] = None  # type of the wrapping object: "Condition"
    what: Optional[str] = None  # description of a "mutex": "critical section of list"


def _lock(objects: Objects, address: int) -> LockState:
    """Read a _thread.lock. Raises Fault or NotThat."""
    start = address + objects.layout.ob_extra + _WORD
    if objects.type_of(address).basicsize - objects.layout.ob_extra <= _MUTEX_SIZE:
        return LockState(address, "lock", start, bool(objects.memory.u8(start) & _LOCKED), None)
    word, _weak, locked = objects.memory.words(start, 3)
    return LockState(address, "lock", word, bool(locked & 0xFF), None)


def _rlock(objects: Objects, address: int) -> LockState:
    """Read a _thread.RLock. Raises Fault or NotThat."""
    start = address + objects.layout.ob_extra + _WORD
    first, owner, count = objects.memory.words(start, 3)
    if objects.type_of(address).basicsize - objects.layout.ob_extra <= _RECURSIVE_MUTEX_SIZE:
        locked = bool(first & _LOCKED)
        return LockState(address, "rlock", start, locked, owner if locked else None)
    return LockState(address, "rlock", first, count > 0, owner if count else None)


#: Most nested wrappers of a lock: conditions, methods, pure-Python locks.
_MOST_LAYERS = 8
_READERS: Dict[str, Callable[[Objects, int], LockState]] = {"_thread.lock": _lock, "_thread.RLock": _rlock}


class Kept(NamedTuple):
    """A lock that a `with` statement holds."""

    lock: LockState
    line: Optional[int]  # of the `with` statement


class Entered(NamedTuple):
    """A context manager that a `with` statement keeps open."""

    manager: int  # address of the context manager
    line: Optional[int]  # of the `with` statement


class Locks:
    """Locks of one interpreter; public methods never raise."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects = frames.objects
        self._names = Names(frames)
        self._entered: Dict[int, List[Entered]] = {}  # by the address of the frame
        self._listed: Dict[int, Optional[Set[int]]] = {}  # condition → locks of its waiters
        self._nameless: Dict[Tuple[int, int], int] = {}  # (code, instruction) → number of nameless locks used there

    def at(self, address: int, depth: int = _MOST_LAYERS) -> Optional[LockState]:
        """Return the lock at an address, through conditions and bound methods; None if there is none.

        ``depth``: most wrappers, because a Condition may be its own lock.
        """
        if depth <= 0:
            return None
        objects = self._objects
        try:
            name = objects.type_of(address).name
            if name in ("builtin_function_or_method", "method"):
                return self.at(objects.field(address, _SELF), depth - 1)
            if name in _READERS:
                return _READERS[name](objects, address)
            if objects.is_instance(address, _PURE_RLOCK):
                return self._pure(address, depth - 1)
            if objects.is_instance(address, "Condition"):
                inner = attribute(objects, address, "_lock")
                found = self.at(inner, depth - 1) if inner else None
                if found is None:
                    return None
                return LockState(found.address, found.kind, found.word, found.locked, found.owner_ident, "Condition")
        except (Fault, NotThat):
            pass
        return None

    def _pure(self, address: int, depth: int) -> Optional[LockState]:
        """Read a threading._RLock or an instance of a subclass. Raises Fault or NotThat.

        It is identified by its inner lock, whose address it takes (Lib/threading.py: _block, _owner, _count: 3.8-3.15).
        """
        values = attributes(self._objects, address)
        found = self.at(values["_block"], depth) if "_block" in values else None
        if found is None or found.kind != "lock":
            return None
        owner = self._objects.integer_or_none(values.get("_owner")) if found.locked else None
        return replace(found, kind="rlock", owner_ident=owner)

    # ------------------------------------------------------------------ holders

    def held(self, frame: Frame) -> List[Kept]:
        """Return the locks that `with` statements of a frame hold, outermost first.

        Includes locks inside generator-based context managers, held by the suspended generator for the frame.
        """
        found: List[Kept] = []
        for entered in self.entered(frame):
            lock = self.at(entered.manager)
            if lock is not None:
                found.append(Kept(lock, entered.line))
        return found

    def entered(self, frame: Frame) -> List[Entered]:
        """Return the context managers that `with` statements of a frame keep open, each followed by those inside it."""
        known = self._entered.get(frame.address)
        if known is None:
            known = self._entered[frame.address] = [
                Entered(inner, line) for manager, line in self._managers(frame) for inner in self._opened(manager, 5)
            ]
        return known

    def _opened(self, manager: int, depth: int) -> Iterator[int]:
        """Yield a context manager and, unless it is a lock, those that its generator or ExitStack keeps open."""
        yield manager
        if not depth or self.at(manager) is not None:
            return
        inner = self.generator_frame(manager)
        if inner is not None:
            for other, _line in self._managers(inner):
                yield from self._opened(other, depth - 1)
        for other in self.stacked(manager):
            yield from self._opened(other, depth - 1)

    def managers(self, frame: Frame) -> List[Tuple[int, Optional[int]]]:
        """Return (context manager, line of its `with`) of a frame's active `with` statements, without locks.

        Includes those that an ExitStack has entered.
        """
        found = [(m, line) for outer, line in self._managers(frame) for m in self._unpacked(outer, 5)]
        return [(m, line) for m, line in found if self.at(m) is None]

    def _unpacked(self, manager: int, depth: int) -> Iterator[int]:
        """Yield a context manager and those that it has entered as an ExitStack."""
        yield manager
        for inner in self.stacked(manager) if depth else ():
            yield from self._unpacked(inner, depth - 1)

    def enter_uses(self, manager: int, name: str) -> bool:
        """Return whether the ``__enter__`` of a manager's class uses a name, such as ``release``."""
        function = class_value(self._objects, manager, "__enter__")
        try:
            if function is None or self._objects.type_name(function) != "function":
                return False
            return (
                name
                in self._frames.codes.get(
                    self._objects.memory.u64(function + self._objects.layout.func_code)
                ).used_names()
            )
        except (Fault, NotThat):
            return False

    def guarded(self, manager: int) -> List[LockState]:
        """Return the locks among the attributes of a manager whose ``__enter__`` uses ``acquire``."""
        if not self.enter_uses(manager, "acquire"):
            return []
        try:
            values = attributes(self._objects, manager).values()
        except (Fault, NotThat):
            return []
        return [lock for lock in map(self.at, values) if lock is not None]

    def stacked(self, manager: int) -> List[int]:
        """Return the context managers that an ExitStack or AsyncExitStack has entered.

        ``_exit_callbacks`` is a deque of (is_sync, bound __exit__) (Lib/contextlib.py, _BaseExitStack).
        """
        if not self._objects.is_instance(manager, "_BaseExitStack"):
            return []
        try:
            callbacks = attribute(self._objects, manager, "_exit_callbacks")
            pairs = list(self._objects.deque_items(callbacks, 100)) if callbacks else []
            exits = [self._objects.items(pair)[1] for pair in pairs]
            return [self._objects.field(e, _SELF) for e in exits if self._objects.type_name(e) == "method"]
        except (Fault, NotThat, IndexError):
            return []

    def methods(self, frame: Frame, name: str) -> Iterator[int]:
        """Yield the locks whose bound method of this name is a local variable of a frame."""
        for _variable, value in list(self._frames.locals(frame))[:_MOST_LOCALS]:
            try:
                is_builtin = self._objects.type_name(value) == "builtin_function_or_method"
                if is_builtin and self._is_builtin(value, (name,)):
                    yield self._objects.field(value, _SELF)
            except Fault:
                continue

    def _is_builtin(self, value: int, names: Sequence[str]) -> bool:
        """Return whether a bound C method has one of these names. Raises Fault.

        Its PyMethodDef points to the name in the file; if that is not available, compares with the PyMethodDef that the
        class has under the name.
        """
        method = self._objects.field(value, _FUNC)
        try:
            called = self._objects.memory.cstring(self._objects.memory.u64(method), 16)
            return called in [name.encode() for name in names]
        except Fault:
            bound = self._objects.field(value, _SELF)
            found = [class_value(self._objects, bound, name) for name in names] if bound else []
            return any(self._objects.field(each, _METHOD) == method for each in found if each)

    def _managers(self, frame: Frame) -> Iterator[Tuple[int, Optional[int]]]:
        """Yield (context manager, line of its `with`) of the active `with` statements of a frame."""
        kept = self._frames.kept_depth(frame)
        values = self._frames.value_stack(frame)[:kept] if kept else ()
        for slot, value in enumerate(values):
            manager, last = self._bound(value), slot
            if manager is None and slot + 1 < len(values) and values[slot + 1] and self._is_exit(value):
                manager, last = values[slot + 1], slot + 1
            if manager:
                yield manager, self._frames.with_line(frame, last)

    def _bound(self, value: int) -> Optional[int]:
        """Return the context manager of a bound ``__exit__`` or ``__aexit__``; None for other values."""
        objects = self._objects
        name = objects.type_name(value) if value else None
        try:
            if name == "builtin_function_or_method":
                found = self._is_builtin(value, _EXITS)
            else:
                found = name == "method" and self._is_exit(objects.field(value, _FUNC))
            return objects.field(value, _SELF) if found else None
        except Fault:
            return None

    def _is_exit(self, value: int) -> bool:
        """Return whether a value is a function or unbound builtin method named ``__exit__`` or ``__aexit__``."""
        objects = self._objects
        name = objects.type_name(value) if value else None
        try:
            if name == "function":
                qualname = objects.optional_text(objects.memory.u64(value + objects.layout.func_qualname))
                return qualname is not None and qualname.split(".")[-1] in _EXITS
            if name is not None and name.endswith(COMPILED):
                return self._is_builtin(value, _EXITS)
            return name == "method_descriptor" and objects.optional_text(objects.field(value, _DESCRIBED)) in _EXITS
        except Fault:
            return False

    def generator_frame(self, manager: int) -> Optional[Frame]:
        """Return the suspended frame of a ``contextmanager`` or ``asynccontextmanager``; None if there is none."""
        if not self._objects.is_instance(manager, "_GeneratorContextManagerBase"):
            return None
        generator = attribute(self._objects, manager, "gen")
        if generator is None or self._objects.type_name(generator) not in ("generator", "async_generator"):
            return None
        try:
            return self._frames.generator(generator).frame
        except (Fault, NotThat):
            return None

    # ------------------------------------------------------------------ waiters

    def awaited(self, frames: Sequence[Frame], word: int) -> Optional[LockState]:
        """Return the lock on whose futex word a thread sleeps; None if it is not found.

        Candidates are on the value stack or among the locals of the innermost frames; slots may be stale, so only a
        lock with this very word counts. A parked thread's entry names the awaited byte; the lock is the object around
        it.
        """
        parked = parked_on(self._objects.memory, word)
        word = word if parked is None else parked
        if frames and frames[0].is_in("acquire", "/threading.py"):
            around = self.at(self._frames.local(frames[0], "self") or 0)
            if around is not None and around.word == word:
                return around
        for frame in frames[:3]:
            candidates = list(self._frames.value_stack(frame))
            candidates += [value for _name, value in self._frames.locals(frame)]
            for value in candidates:
                lock = self.at(value) if value else None
                if lock is not None and lock.word == word:
                    return lock
        return None if parked is None else self.at(parked - self._objects.layout.ob_extra - _WORD)

    def notified(self, frame: Frame, waiter: Optional[LockState]) -> Optional[bool]:
        """Return True if a thread in ``Condition.wait`` was notified but has not run since; None otherwise.

        That is: its own lock (``waiter``) is free, or no longer in the condition's list (Lib/threading.py,
        Condition.notify: 3.8-3.15). Since 3.13 a lock may be handed over from thread to thread and is then never seen
        free.
        """
        if waiter is None or not frame.is_in("wait", "/threading.py"):
            return None
        condition = self._frames.local(frame, "self")
        if condition is None or self._frames.local(frame, "waiter") != waiter.address:
            return None
        if waiter.locked is False:
            return True
        if condition not in self._listed:
            self._listed[condition] = self._waiters_of(condition)
        listed = self._listed[condition]
        return True if listed is not None and waiter.address not in listed else None

    def _waiters_of(self, condition: int) -> Optional[Set[int]]:
        """Return the locks in a condition's list; None if it cannot be read completely."""
        try:
            waiters = attribute(self._objects, condition, "_waiters")
            found = set(self._objects.deque_items(waiters, _MOST_WAITERS)) if waiters else None
        except (Fault, NotThat):
            return None
        return found if found is not None and len(found) < _MOST_WAITERS else None

    # ------------------------------------------------------------------ names

    def name(self, lock: int, frames: Sequence[Frame]) -> Optional[str]:
        """Return the program's name of a lock, or of a Condition around it, whichever is shorter; None if unknown.

        ``frames``: frames that use it. After _MOST_NAMELESS nameless locks at one line no more names are sought there.
        """
        places = {(frame.code.address, frame.lasti) for frame in frames[:_USERS]}
        if places and all(self._nameless.get(place, 0) >= _MOST_NAMELESS for place in places):
            return None
        matched = [0]

        def same(value: int) -> bool:
            if self._same(value, lock):
                matched[0] = value
                return True
            return False

        around = self._names.find(same, frames)
        if around is None:
            for place in places:
                self._nameless[place] = self._nameless.get(place, 0) + 1
            return None
        if matched[0] == lock:
            return around
        own = self._names.find(lambda value: value == lock, frames)
        return own if own is not None and own.count(".") <= around.count(".") else around

    def _same(self, value: int, lock: int) -> bool:
        """Return whether a value is the lock, or a Condition or pure-Python RLock around it."""
        if value == lock:
            return True
        if self._objects.type_name(value) != "Condition" and not self._objects.is_instance(value, _PURE_RLOCK):
            return False
        found = self.at(value)
        return found is not None and found.address == lock
