"""Locks: what a thread waits for, and who holds it.

A plain ``_thread.lock`` records no owner. But ``with lock:`` leaves the bound ``__exit__`` of the context manager
on the frame's value stack for as long as the body runs, below the depth that the exception table gives for the
current instruction (Python/compile.c of 3.11-3.13, compiler_with; objects from Modules/_threadmodule.c). An
RLock records its owner. Up to 3.13 the lock's semaphore is malloc'ed: the futex word that a thread sleeps on is
the address that the lock object holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..memory import Fault
from .attributes import attribute, attributes, class_value, class_values
from .frames import Frame, Frames
from .objects import NotThat

#: lockobject: lock_lock, in_weakreflist, locked. rlockobject: rlock_lock, rlock_owner, rlock_count (3.11-3.13).
_WORD, _LOCKED, _OWNER, _COUNT = 16, 32, 24, 32
#: m_self of PyCFunctionObject and im_self of PyMethodObject lie at the same place; im_func/m_ml as well.
_SELF, _FUNC = 24, 16


@dataclass(frozen=True)
class LockState:
    address: int
    kind: str  # "lock" | "rlock"
    word: int  # address of the semaphore, 0 when unknown
    locked: Optional[bool]
    owner_ident: Optional[int]  # RLock only
    through: Optional[str] = None  # type of the object that wraps it: "Condition"


class HeldLock(NamedTuple):
    lock: LockState
    line: Optional[int]  # of the `with` statement
    slot: int  # of the value stack


class Locks:
    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._objects = frames.objects

    def at(self, address: int) -> Optional[LockState]:
        """The lock at an address, looking through Condition and bound methods; None when it is none."""
        objects = self._objects
        try:
            name = objects.type_of(address).name
            if name in ("builtin_function_or_method", "method"):
                return self.at(objects.field(address, _SELF))
            if name == "_thread.lock":
                word, _weak, locked = objects.memory.words(address + _WORD, 3)
                return LockState(address, "lock", word, bool(locked & 0xFF), None)
            if name == "_thread.RLock":
                word, owner, count = objects.memory.words(address + _WORD, 3)
                return LockState(address, "rlock", word, count > 0, owner if count else None)
            if objects.is_instance(address, "Condition"):
                inner = attribute(objects, address, "_lock")
                found = self.at(inner) if inner else None
                if found is None:
                    return None
                return LockState(found.address, found.kind, found.word, found.locked, found.owner_ident, "Condition")
        except (Fault, NotThat):
            pass
        return None

    # ------------------------------------------------------------------ holders

    def held(self, frame: Frame) -> List[HeldLock]:
        """Locks that `with` statements of this frame keep, outermost first; through generator-based context
        managers too (the lock is then held by the suspended generator, on this frame's behalf)."""
        found: List[HeldLock] = []
        for slot, manager, line in self._managers(frame):
            found.extend(HeldLock(lock, line, slot) for lock in self._locks_of(manager, 5))
        return found

    def _locks_of(self, manager: int, depth: int) -> Iterator[LockState]:
        """The locks that a context manager keeps: it is one, or its generator or ExitStack holds some."""
        lock = self.at(manager)
        if lock is not None:
            yield lock
        elif depth:
            inner = self.generator_frame(manager)
            if inner is not None:
                for _slot, other, _line in self._managers(inner):
                    yield from self._locks_of(other, depth - 1)
            for other in self._stacked(manager):
                yield from self._locks_of(other, depth - 1)

    def managers(self, frame: Frame) -> List[Tuple[int, Optional[int]]]:
        """The context managers of a frame's active `with` statements that are no locks themselves, and the line of
        each `with`."""
        return [(m, line) for _slot, m, line in self._managers(frame) if self.at(m) is None]

    def enter_uses(self, manager: int, name: str) -> bool:
        """Does the ``__enter__`` of a manager's class use a name, such as ``release``?"""
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
        """The locks among the attributes of a manager whose ``__enter__`` acquires."""
        if not self.enter_uses(manager, "acquire"):
            return []
        try:
            values = attributes(self._objects, manager).values()
        except (Fault, NotThat):
            return []
        return [lock for lock in map(self.at, values) if lock is not None]

    def _stacked(self, manager: int) -> List[int]:
        """What an ExitStack will leave: ``_exit_callbacks`` is a deque of (is_sync, bound __exit__)
        (Lib/contextlib.py)."""
        if not self._objects.is_instance(manager, "ExitStack"):
            return []
        try:
            callbacks = attribute(self._objects, manager, "_exit_callbacks")
            pairs = list(self._objects.deque_items(callbacks, 100)) if callbacks else []
            exits = [self._objects.items(pair)[1] for pair in pairs]
            return [self._objects.field(e, _SELF) for e in exits if self._objects.type_name(e) == "method"]
        except (Fault, NotThat, IndexError):
            return []

    def _managers(self, frame: Frame) -> Iterator[Tuple[int, int, Optional[int]]]:
        """(slot, context manager, line of its `with`) of the active `with` statements of a frame."""
        kept = self._frames.kept_depth(frame)
        for slot, value in enumerate(self._frames.value_stack(frame)[:kept] if kept else ()):
            if self._is_exit(value):
                try:
                    manager = self._objects.field(value, _SELF)
                except Fault:
                    continue
                yield slot, manager, self._frames.with_line(frame, slot)

    def _is_exit(self, value: int) -> bool:
        """Is it a bound ``__exit__``?"""
        objects = self._objects
        name = objects.type_name(value) if value else None
        try:
            if name == "builtin_function_or_method":
                return objects.memory.cstring(objects.memory.u64(objects.field(value, _FUNC)), 16) == b"__exit__"
            if name == "method":
                function = objects.field(value, _FUNC)
                if objects.type_name(function) != "function":
                    return False
                qualname = objects.optional_text(objects.memory.u64(function + objects.layout.func_qualname))
                return qualname is not None and qualname.split(".")[-1] == "__exit__"
        except Fault:
            pass
        return False

    def generator_frame(self, manager: int) -> Optional[Frame]:
        """The suspended frame of a ``contextlib.contextmanager``."""
        if not self._objects.is_instance(manager, "_GeneratorContextManager"):
            return None
        generator = attribute(self._objects, manager, "gen")
        if generator is None or self._objects.type_name(generator) != "generator":
            return None
        try:
            return self._frames.generator(generator).frame
        except (Fault, NotThat):
            return None

    # ------------------------------------------------------------------ waiters

    def awaited(self, frames: Sequence[Frame], word: int) -> Optional[LockState]:
        """The lock whose semaphore a thread sleeps on: it is on the value stack or among the locals of one of the
        innermost frames. Slots may be stale, so only a lock with this very semaphore counts."""
        for frame in frames[:3]:
            candidates = list(self._frames.value_stack(frame))
            candidates += [value for _name, value in self._frames.locals(frame)]
            for value in candidates:
                lock = self.at(value) if value else None
                if lock is not None and lock.word == word:
                    return lock
        return None

    # ------------------------------------------------------------------ names

    def name(self, lock: int, frames: Sequence[Frame]) -> Optional[str]:
        """What the program calls a lock, as seen from frames that use it: ``lock_a``, ``Account.lock``. What
        threading.py and contextlib.py call it (``self``, ``cm``) tells nobody anything."""
        frames = [f for f in frames if not f.code.filename.endswith(("/threading.py", "/contextlib.py"))]
        for frame in frames:
            found = self._name_in(lock, list(self._frames.locals(frame))[:200])
            if found:
                return found
        for frame in frames:
            namespace = self._frames.globals(frame)
            try:
                items = list(self._objects.text_dict(namespace).items())[:2000] if namespace else []
            except (Fault, NotThat):
                continue
            found = self._name_in(lock, items)
            if found:
                return found
        return None

    def _name_in(self, lock: int, named: Sequence[Tuple[str, int]]) -> Optional[str]:
        for name, value in named:
            if self._same(value, lock):
                return name
        for name, value in named:
            owner = self._objects.type_name(value)
            if owner is None or owner in ("module", "dict", "type"):
                continue
            found = self._attribute_name(lock, value)
            if found:
                return f"{owner.split('.')[-1]}.{found}" if name in ("self", "cls") else f"{name}.{found}"
        return None

    def _attribute_name(self, lock: int, value: int) -> Optional[str]:
        try:
            values = attributes(self._objects, value)
        except (Fault, NotThat):
            return None
        for name, item in (*values.items(), *class_values(self._objects, value).items()):
            if self._same(item, lock):
                return name
        return None

    def _same(self, value: int, lock: int) -> bool:
        if value == lock:
            return True
        if self._objects.type_name(value) != "Condition":
            return False
        found = self.at(value)
        return found is not None and found.address == lock
