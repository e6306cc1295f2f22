"""Code whose effects nobody can wait for: threads that only sleep and count, and signal handlers that set a flag.

A heartbeat of that kind can run for ever and yet ends nobody's wait. That is shown by what its loop consists of, which is
little: numbers and texts, variables and attributes that hold these, tests and operators of them, calls of Python functions
of the same kind, and of functions that read a clock or sleep. Anything else, and all that is not known, counts as an effect:
also what could run a finaliser, such as the loss of an object, or the garbage collector, which runs where objects are made.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Sequence, Set

from ..frames.frame import Frame
from .functions import Function, Shape
from .instructions import Instruction, after
from .library import Library, Limits
from .lookup import Place
from .machine import Machine
from .run import Run
from .values import PLAIN, UNKNOWN, Atom, Value

#: Instructions of such loops. The operands of those that may call an operand's own methods are looked at, too.
_INSTRUCTIONS = frozenset((
    "RESUME", "NOP", "CACHE", "NOT_TAKEN", "EXTENDED_ARG", "PRECALL", "TO_BOOL", "MAKE_CELL", "COPY_FREE_VARS",
    "POP_TOP", "PUSH_NULL", "COPY", "SWAP", "DUP_TOP", "DUP_TOP_TWO", "ROT_TWO", "ROT_THREE", "ROT_FOUR", "ROT_N",
    "LOAD_CONST", "LOAD_COMMON_CONSTANT", "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW",
    "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST", "STORE_FAST_LOAD_FAST",
    "STORE_FAST_STORE_FAST", "LOAD_DEREF", "STORE_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "LOAD_ATTR",
    "LOAD_METHOD", "STORE_ATTR", "BINARY_OP", "COMPARE_OP", "IS_OP", "CALL", "CALL_METHOD", "CALL_FUNCTION",
    "RETURN_CONST", "RETURN_VALUE",
))  # fmt: skip
_FAMILIES = ("POP_JUMP", "JUMP_", "BINARY_", "INPLACE_", "UNARY_")
_ENDS = frozenset(("RETURN_CONST", "RETURN_VALUE"))
#: Functions in C without an effect, by module (Modules/timemodule.c).
_CLOCKS = frozenset((
    "sleep", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns",
))  # fmt: skip
_IN_C = ("builtin_function_or_method", "builtin_method")
_SELF = 24  # PyCFunctionObject.m_self
_SCALARS = frozenset(("int", "bool", "float", "str", "NoneType"))


class Quiet(Machine):
    """The evaluation of a thread's loop, or a handler; used once.

    ``acts``: whether it may do anything beside sleeping and counting.
    """

    def __init__(self, library: Library, limits: Limits) -> None:
        super().__init__(library, limits)
        self.acts = False

    def sets_a_flag(self, handler: int) -> bool:
        """Return whether a signal handler only stores numbers and texts, as far as is known."""
        self.callable(handler, [UNKNOWN, UNKNOWN])
        return not self._has_effects

    @property
    def _has_effects(self) -> bool:
        return bool(self.acts or self.incomplete or self.applied or self.passed)

    def is_quiet(self, frames: Sequence[Frame]) -> bool:
        """Return whether a thread repeats what it is in for ever, and whether that has no effect, as far as is known.

        ``frames``: all frames of the thread, most recent call first.
        """
        for depth, frame in enumerate(frames):
            instructions = self.library.instructions.of(frame.code)
            if instructions is None:
                return False
            live = after(instructions, frame.lasti)
            if _current(instructions, frame.lasti) not in live:
                continue
            if _ENDS & {instructions[at].name for at in live}:
                continue  # it returns to the frame that called it, which may have such a loop
            self.frame(frame)
            known = all(inner.code.address in self._seen for inner in frames[:depth])
            return known and not self._has_effects
        return False

    def evaluate(self, run: Run) -> None:
        """Evaluate a code object, unless it has an instruction with effects."""
        if any(name not in _INSTRUCTIONS and not name.startswith(_FAMILIES) for name in run.names()):
            self.acts = True
        if not self.acts:
            super().evaluate(run)

    def operate(self, values: Iterable[Value], run: Place) -> None:
        """Note operands other than numbers and texts."""
        if run.is_live and not all(map(_is_plain, values)):
            self.acts = True

    def overwrite(self, before: Value, after: Value, run: Place) -> None:
        """Note that a variable loses an object, or gets one that it may lose."""
        if run.is_live and not ((not before or _is_plain(before)) and _is_plain(after)):
            self.acts = True

    def attribute(self, value: Value, name: str, run: Optional[Place]) -> Value:
        """Return what loading an attribute gives; note whether that may run code of the program."""
        if run is None or (run.is_live and not (value and all(self._is_simple(atom, name) for atom in value))):
            self.acts = True
        return super().attribute(value, name, run)

    def store(self, target: Value, name: str, value: Value) -> None:
        """Note that an attribute is stored, and whether that may run code of the program."""
        if not (target and _is_plain(value) and all(self._is_counter(atom, name) for atom in target)):
            self.acts = True
        super().store(target, name, value)

    def call(self, called: Value, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        """Return what a call may give; note whether it is of anything else than Python functions and clocks."""
        if run is not None and not run.is_live:
            return UNKNOWN
        if not called or named or not all(map(self._is_followed, called)):
            self.acts = True
        if any(self._is_clock(atom) for atom in called) and not all(map(_is_plain, given)):
            self.acts = True
        if self.acts:
            return UNKNOWN
        return PLAIN if all(map(self._is_clock, called)) else super().call(called, given, named, run)

    def _body(self, function: Function, shape: Shape, given: List[Value], named: Dict[str, Value]) -> Value:
        """Evaluate a function's body; those of the standard library are taken to have effects."""
        if self.library.is_standard(function.code) or self.library.is_leaf(function.code):
            self.acts = True
            return UNKNOWN
        return super()._body(function, shape, given, named)

    # ------------------------------------------------------------------ objects

    def _is_followed(self, atom: Atom) -> bool:
        if atom[0] == "method":
            return self.functions.function(atom[1]) is not None
        return atom[0] == "obj" and (self.heap.kind(atom[1]) == "function" or self._is_clock(atom))

    def _is_clock(self, atom: Atom) -> bool:
        """Return whether an object is a function in C that only sleeps or reads a clock."""
        heap = self.heap
        if atom[0] != "obj" or heap.kind(atom[1]) not in _IN_C:
            return False
        module = heap.field(atom[1], _SELF)
        name = heap.of_instance(module, "__name__") if module and heap.kind(module) == "module" else None
        known = name is not None and heap.value(name) == frozenset((("str", "time"),))
        return known and self.library.callables.c_name(atom[1]) in _CLOCKS

    def _is_simple(self, atom: Atom, name: str) -> bool:
        """Return whether an attribute is found without code of the program: in a module, an instance or its class."""
        heap = self.heap
        if atom[0] != "obj":
            return False
        if heap.kind(atom[1]) == "module":
            return heap.of_instance(atom[1], name) is not None
        class_, own = self._places(atom[1], name)
        type_ = atom[1] if heap.is_class(atom[1]) else heap.type_of(atom)
        if not self._is_usual(type_, ("__getattribute__", "__getattr__")):
            return False
        return (own is not None or class_ is not None) and (
            class_ is None or heap.kind(class_) in {"function", *_SCALARS}
        )

    def _is_counter(self, atom: Atom, name: str) -> bool:
        """Return whether an attribute holds a number or text, and is stored without code of the program."""
        heap = self.heap
        if atom[0] != "obj":
            return False
        if heap.kind(atom[1]) == "module":
            own, class_ = heap.of_instance(atom[1], name), None
        else:
            class_, own = self._places(atom[1], name)
            if not self._is_usual(atom[1] if heap.is_class(atom[1]) else heap.type_of(atom), ("__setattr__",)):
                return False
        if class_ is not None and heap.kind(class_) not in _SCALARS:
            return False
        return own is None or heap.kind(own) in _SCALARS

    def _places(self, address: int, name: str) -> List[Optional[int]]:
        """Return an attribute as a class has it, and as the instance has it."""
        heap = self.heap
        if heap.is_class(address):
            return [heap.in_class(address, name), None]
        return [heap.in_class(heap.type_of(("obj", address)), name), heap.of_instance(address, name)]

    def _is_usual(self, type_: int, names: Sequence[str]) -> bool:
        """Return whether a class of type ``type``, written in Python, leaves these methods to ``object``."""
        heap = self.heap
        if not type_ or heap.kind(type_) != "type" or not heap.is_written_in_python(type_):
            return False
        found = [heap.in_class(type_, name) for name in names]
        return all(each is None or heap.kind(each) == "wrapper_descriptor" for each in found)


def _is_plain(value: Value) -> bool:
    """Return whether a value is known to be a number, a text or None."""
    return bool(value) and all(atom[0] in ("plain", "str") for atom in value)


def _current(instructions: Dict[int, Instruction], offset: int) -> int:
    """Return the offset of the instruction at, or around, an offset; -1 before the first one."""
    if offset in instructions:
        return offset
    before: Set[int] = {at for at in instructions if at <= offset}
    return max(before, default=-1)
