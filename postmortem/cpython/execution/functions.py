"""Functions and code objects, as far as calls need them: parameters, defaults, closure, constants.

Sources: PyCodeObject in Include/cpython/code.h of 3.8-3.15: co_consts precedes co_names; co_argcount,
co_posonlyargcount and co_kwonlyargcount are consecutive ints; co_flags follows co_exceptiontable since 3.11, and
co_stacksize before. PyFunctionObject in Include/funcobject.h and Include/cpython/funcobject.h: up to 3.9 func_code,
func_globals, func_defaults, func_kwdefaults, func_closure; since 3.10 func_globals comes first, and func_defaults,
func_kwdefaults, func_closure follow func_code.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...memory import Fault
from ..frames.frame import Frames
from ..objects.builtins import NotThat
from ..objects.code import Code
from .values import PLAIN, Atom, Heap, Value

_VARARGS, _VARKEYWORDS = 4, 8
_MOST_CONSTANTS, _MOST_ARGUMENTS, _MOST_CELLS = 5_000, 255, 100
_CELL = 16


class Shape(NamedTuple):
    """The parts of a code object that an evaluation needs."""

    parameters: Tuple[str, ...]  # positional ones, then those by keyword only
    positional: int  # number of the first
    rest: Optional[str]  # of *args
    keywords: Optional[str]  # of **kwargs
    names: Tuple[str, ...]  # of locals, cells and free variables
    plain: int  # up to 3.10: index of the first cell in ``names``; 0 later
    used: Tuple[str, ...]  # of globals and attributes
    constants: Tuple[int, ...]  # addresses


class Function(NamedTuple):
    """A function: its code, the globals, and what its variables hold before the call."""

    code: Code
    namespace: int
    defaults: Dict[str, Value]
    closure: Dict[str, Value]


class Functions:
    """Reads and caches functions; methods never raise: None stands for what cannot be read."""

    def __init__(self, heap: Heap, frames: Frames) -> None:
        self._heap = heap
        self._objects = heap.objects
        self._frames = frames
        self._shapes: Dict[int, Optional[Shape]] = {}
        self._functions: Dict[int, Optional[Function]] = {}
        self._constants: Dict[int, Value] = {}

    def code(self, address: int) -> Optional[Code]:
        """Return the code object at an address; None if it is none."""
        try:
            return self._frames.codes.get(address)
        except (Fault, NotThat):
            return None

    def shape(self, code: Code) -> Optional[Shape]:
        """Return the shape of a code object; None if unreadable."""
        if code.address not in self._shapes:
            try:
                self._shapes[code.address] = self._read(code)
            except (Fault, NotThat):
                self._shapes[code.address] = None
        return self._shapes[code.address]

    def constant(self, address: int) -> Value:
        """Return a constant: a text, code or tuple; numbers reach nothing."""
        if address not in self._constants:
            kind = self._heap.kind(address)
            found: Value = PLAIN
            if kind == "code":
                found = frozenset((("code", address, (), 0),))
            elif kind in ("str", "tuple"):
                found = self._heap.value(address)
                if kind == "str" and not all(atom[1].isidentifier() for atom in found):
                    found = PLAIN  # no name of anything; messages would only multiply the calls
            self._constants[address] = found
        return self._constants[address]

    def function(self, address: int) -> Optional[Function]:
        """Return the Python function at an address; None if it is none."""
        if address not in self._functions:
            try:
                self._functions[address] = self._function(address)
            except (Fault, NotThat):
                self._functions[address] = None
        return self._functions[address]

    def closure(self, shape: Shape, values: Sequence[Value]) -> Dict[str, Value]:
        """Return name → value of free variables, the last of a code object's names."""
        return dict(zip(shape.names[len(shape.names) - len(values) :], values)) if values else {}

    # ------------------------------------------------------------------ reading

    def _read(self, code: Code) -> Shape:
        """Read a shape. Raises Fault or NotThat."""
        memory, layout = self._objects.memory, self._objects.layout
        at = code.address + layout.co_stacksize
        if layout.heap_frames:
            first, flags = at - 16, memory.u32(at + 4)
        else:
            first, flags = at - 12, memory.u32(code.address + layout.co_exceptiontable + 8)
        positional, by_name = memory.u32(first), memory.u32(first + 8)
        names, plain = code.local_names(), 0
        if layout.heap_frames:
            plain = len(self._objects.items(memory.u64(code.address + layout.co_local_names[0])))
        count = positional + by_name
        extra = bool(flags & _VARARGS) + bool(flags & _VARKEYWORDS)
        if count + extra > min(len(names), _MOST_ARGUMENTS):
            raise NotThat("more parameters than names")
        rest = names[count] if flags & _VARARGS else None
        keywords = names[count + bool(flags & _VARARGS)] if flags & _VARKEYWORDS else None
        constants = self._objects.items(memory.u64(code.address + layout.co_names - 8), _MOST_CONSTANTS)
        return Shape(names[:count], positional, rest, keywords, names, plain, code.used_names(), constants)

    def _function(self, address: int) -> Optional[Function]:
        """Read a function. Raises Fault or NotThat."""
        objects, heap = self._objects, self._heap
        layout, memory = objects.layout, objects.memory
        if objects.type_of(address).name != "function":
            return None
        at = address + layout.func_code
        new = layout.func_code - layout.ob_extra >= 48
        code = self._frames.codes.get(memory.u64(at))
        shape = self.shape(code)
        if shape is None:
            return None
        namespace = objects.field(address, 16) if new else memory.u64(at + 8)
        behind = at + (8 if new else 16)
        defaults: Dict[str, Value] = {}
        given, by_name, cells = memory.u64(behind), memory.u64(behind + 8), memory.u64(behind + 16)
        if given and heap.kind(given) == "tuple":
            values = objects.items(given, _MOST_ARGUMENTS)
            names = shape.parameters[: shape.positional][-len(values) :] if values else ()
            defaults.update((name, heap.value(value)) for name, value in zip(names, values))
        if by_name and heap.kind(by_name) == "dict":
            defaults.update((name, heap.value(value)) for name, value in objects.text_dict(by_name).items())
        closure: List[Value] = []
        if cells and heap.kind(cells) == "tuple":
            closure = [heap.value(objects.field(cell, _CELL)) for cell in objects.items(cells, _MOST_CELLS)]
        return Function(code, namespace, defaults, self.closure(shape, closure))


def bind(shape: Shape, defaults: Dict[str, Value], given: Sequence[Value], named: Dict[str, Value]) -> Dict[str, Value]:
    """Return name → value of a call's parameters; unknown ones keep their defaults."""
    found: Dict[str, Value] = dict(defaults)
    for name, value in zip(shape.parameters[: shape.positional], given):
        found[name] = value
    for name, value in named.items():
        if name in shape.parameters:
            found[name] = value
    if shape.rest is not None:
        rest: Atom = ("tuple", tuple(given[shape.positional :]))
        found[shape.rest] = frozenset((rest,))
    if shape.keywords is not None:
        others = tuple((name, value) for name, value in named.items() if name not in shape.parameters)
        found[shape.keywords] = frozenset((("map", others),))
    return found
