"""Evaluates code over the objects in memory, and notes on what operations are applied.

Nothing is run. Each instruction is looked at once or twice, with the values that its operands may have: variables hold
what they hold in memory, and what the code would store; attributes, globals and items are read from memory, and calls
are followed into Python functions. Branches are all taken. So the result covers what the code may do, not what it will.

- An operation counts when its name is loaded from an object, or a bound method is called: ``event.set`` may be called
  later, by whom it is handed to.
- A callable that is an argument of a call is called as well: threads, timers and callbacks are started so.
- A call of something unknown hands its arguments on; they are noted as *passed*.

What ends the evaluation early (limits, unreadable code) makes it incomplete.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from ..frames.frame import Frame
from .functions import Function, Shape, bind
from .incalls import MOST_CALLED, CallsInC
from .instructions import after
from .library import MAX_DEPTH, Library, Limits
from .lookup import CALL, OPERATIONS, Applied, Place
from .run import Run
from .stack import either_of
from .values import UNKNOWN, Atom, Value, either, order

#: Evaluations of a function with different arguments: each by itself, then with all later ones taken together.
_MOST_CONTEXTS, _MOST_MERGES = 4, 200
_MOST_MERGES_IN_LIBRARY = 12
#: Bytes of code up to which a function is evaluated by itself more often: properties and the like.
_SMALL = 120
#: Callables that are called later by whom they are handed to.
_MOST_STARTED = 100
#: Nested calls, of functions, partials and methods together.
_MOST_NESTED = 100
#: PyMethodObject.im_func, im_self; PyCFunctionObject.m_self; partialobject.fn, args; PyWeakReference.wr_object.
_FUNCTION, _SELF, _ARGUMENTS = 16, 24, 24
_IN_C = ("builtin_function_or_method", "builtin_method")
CALLABLES = ("function", "method", "functools.partial", *_IN_C)
#: The start and the end of a thread (Lib/threading.py): they wake those who wait for the thread itself.
_THREAD = ("_bootstrap", "_bootstrap_inner")


class Machine(CallsInC):
    """The evaluation of one agent's code."""

    def __init__(self, library: Library, limits: Limits, watched: FrozenSet[str] = frozenset()) -> None:
        """Create an evaluation; ``watched``: operations noted besides those that end waits, see ``lookup.Watched``."""
        super().__init__(library, limits)
        self.watched = watched
        self._results: Dict[Tuple[object, ...], Value] = {}
        self._seen: Set[int] = set()
        self._times: Dict[int, int] = {}  # evaluations by code
        self._merged: Dict[int, Dict[str, Value]] = {}  # arguments of later evaluations, taken together
        self._merged_results: Dict[int, Value] = {}
        self._called: Set[Atom] = set()
        #: Callables that were arguments → what followed them, and where.
        self._handed: Dict[Atom, Tuple[List[Value], Optional[Place], int]] = {}
        self._depth = 0  # of functions
        self._nested = 0  # of calls: partials and the like may form a circle

    # ------------------------------------------------------------------ entry points

    def frame(self, frame: Frame) -> None:
        """Evaluate what a frame can still run: after its current instruction, and in loops around it."""
        code = frame.code
        if code.name in _THREAD and code.filename.endswith("/threading.py"):
            return
        instructions = self.library.instructions.of(code)
        shape = self.functions.shape(code)
        if instructions is None or shape is None:
            self.incomplete = True
            return
        variables = {name: self.heap.value(value) for name, value in self.library.frames.locals(frame)}
        namespace = self.library.frames.globals(frame) or 0
        self._seen.add(code.address)
        live = after(instructions, frame.lasti)
        if live:
            run = Run(self, code, shape, instructions, variables, namespace, live)
            run.begun = frame.lasti
            self.evaluate(run)
            self._start_rest()

    def evaluate(self, run: Run) -> None:
        """Evaluate a code object."""
        run.run()

    def callable(self, address: int, arguments: Sequence[Value] = ()) -> None:
        """Evaluate a callable in memory."""
        self.call(self.heap.value(address), list(arguments), {}, None)
        self._start_rest()

    def released(self) -> Set[Applied]:
        """Return each ``release`` that may come without the same code's ``acquire`` of the same before it."""
        found: Set[Applied] = set()
        for each in self.applied.values():
            if each.operation != "release" or each.code is None:
                continue
            taken = frozenset(
                other.offset
                for other in self.applied.values()
                if other.operation == "acquire" and other.code is each.code and other.value & each.value
            )
            instructions = self.library.instructions.of(each.code) or {}
            if not taken or each.offset in after(instructions, each.begun, taken):
                found.add(each)
        return found

    def _start_rest(self) -> None:
        """Call the callables that were handed to functions which, as far as is known, have not called them."""
        for _ in range(_MOST_STARTED):
            atom = next((atom for atom in self._handed if atom not in self._called), None)
            if atom is None:
                return
            given, run, at = self._handed[atom]
            if run is not None:
                run.at = at  # it has ended
            self._call(atom, given, {}, run)
        self.incomplete = True

    # ------------------------------------------------------------------ calls

    def call(self, called: Value, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        """Return what a call may give, and note what it may do."""
        if run is not None and not run.is_live:  # done already: what it gave is in memory
            return either(
                *(self._call(atom, given, named, run) for atom in called if atom[0] in ("cmethod", "builtin"))
            )
        if self._nested >= _MOST_NESTED:
            self.incomplete = True
            return UNKNOWN
        self._nested += 1
        result: List[Value] = []
        if not called:
            self.hand_on([*given, *named.values()], run)
        self._hand(given, named, run)
        for atom in sorted(called, key=order)[:MOST_CALLED] if len(called) > 1 else called:
            result.append(self._call(atom, given, named, run))
        self._nested -= 1
        return either(*result)

    def _hand(self, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> None:
        """Note the callables among the arguments of a call: they may be called, with what follows them or ``args``."""
        at = run.at if run is not None else 0
        for index, value in enumerate(given):
            for atom in value:
                if atom[0] in ("method", "code", "obj") and self._is_callable(atom):
                    self._handed.setdefault(atom, (given[index + 1 :], run, at))
        arguments = self.positions(named["args"]) if "args" in named else []
        for value in named.values():
            for atom in value:
                if atom[0] in ("method", "code", "obj") and self._is_callable(atom):
                    self._handed.setdefault(atom, (arguments, run, at))

    def _is_callable(self, atom: Atom) -> bool:
        if atom[0] in ("method", "code"):
            return True
        if atom[0] != "obj":
            return False
        return self.heap.kind(atom[1]) in CALLABLES

    def _call(self, atom: Atom, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        kind = atom[0]
        self._called.add(atom)
        if kind == "method":
            return self._function(atom[1], [frozenset((atom[2],)), *given], named, run)
        if kind == "code":
            return self._new_function(atom, given, named)
        if kind == "obj":
            return self._object(atom, atom[1], given, named, run)
        if kind == "cmethod":
            return self.call_method(atom[1], frozenset((atom[2],)), given)
        if kind == "builtin":
            return self.call_builtin(atom[1], given, named, run)
        if kind == "inst":
            found = self._of_class(atom, atom[1], "__call__", run)
            return self.call(found, given, named, run) if found else UNKNOWN
        if kind == "name":
            self.note(CALL, frozenset((atom,)), run)
            self.hand_on([*given, *named.values()], run)
        return UNKNOWN

    def _object(
        self, atom: Atom, address: int, given: List[Value], named: Dict[str, Value], run: Optional[Place]
    ) -> Value:
        """Call an object in memory."""
        heap, kind = self.heap, self.heap.kind(address)
        if kind == "function":
            return self._function(address, given, named, run)
        if kind in ("method", *_IN_C):
            return self._bound(address, kind, given, named, run)
        if kind == "functools.partial":
            first = list(heap.sequence(heap.field(address, _ARGUMENTS)))
            return self.call(heap.value(heap.field(address, _FUNCTION)), [*first, *given], named, run)
        if kind.startswith("weakref"):
            return heap.value(heap.field(address, _FUNCTION))
        if heap.is_class(address):
            return self._instance(address, given, named, run)
        wrapped = heap.of_instance(address, "__wrapped__")
        if wrapped is not None:
            return self.call(heap.value(wrapped), given, named, run)
        found = self._of_class(atom, heap.type_of(atom), "__call__", run)
        return self.call(found, given, named, run) if found else UNKNOWN

    def _bound(
        self, address: int, kind: str, given: List[Value], named: Dict[str, Value], run: Optional[Place]
    ) -> Value:
        """Call a method that is bound to an object, in Python or in C."""
        heap = self.heap
        owner = heap.field(address, _SELF)
        if kind != "method":
            name = self.library.callables.c_name(address)
            if heap.kind(owner) == "module":
                return self.call_builtin(name, given, named, run)
            if name in OPERATIONS:
                self.note(name, heap.value(owner), run)
            return self.call_method(name, heap.value(owner), given)
        function = heap.field(address, _FUNCTION)
        known = self.functions.function(function)
        if known is not None and known.code.name in OPERATIONS:
            self.note(known.code.name, heap.value(owner), run)
        return self.call(heap.value(function), [heap.value(owner), *given], named, run)

    def _instance(self, type_: int, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        """Call a class."""
        heap = self.heap
        if not heap.is_written_in_python(type_):
            result = self.call_builtin(heap.called(type_), given, named, run)
            return result or frozenset((("inst", type_),))
        made: Atom = ("inst", type_)
        begin = heap.in_class(type_, "__init__")
        if begin is not None and heap.kind(begin) == "function":
            self._function(begin, [frozenset((made,)), *given], named, run)
        else:
            self.put(frozenset((made,)), either(*given))
        return frozenset((made,))

    def _new_function(self, atom: Atom, given: List[Value], named: Dict[str, Value]) -> Value:
        """Call a function that the code made."""
        code = self.functions.code(atom[1])
        shape = self.functions.shape(code) if code is not None else None
        if code is None or shape is None:
            self.incomplete = True
            return UNKNOWN
        closure = self.functions.closure(shape, atom[2])
        return self._body(Function(code, atom[3], {}, closure), shape, given, named)

    def _function(self, address: int, given: List[Value], named: Dict[str, Value], run: Optional[Place]) -> Value:
        """Call a Python function in memory."""
        function = self.functions.function(address)
        if function is None:
            return (
                self.call(self.heap.value(address), given, named, run)
                if self.heap.kind(address) != "function"
                else UNKNOWN
            )
        shape = self.functions.shape(function.code)
        if shape is None:
            self.incomplete = True
            return UNKNOWN
        return self._body(function, shape, given, named)

    def _body(self, function: Function, shape: Shape, given: List[Value], named: Dict[str, Value]) -> Value:
        """Evaluate a function's body, once for the same arguments."""
        if self.library.is_leaf(function.code):
            return UNKNOWN
        variables = bind(shape, function.defaults, given, named)
        variables.update(function.closure)
        code = function.code
        key = (code.address, tuple(sorted(variables.items())) if len(variables) > 1 else tuple(variables.items()))
        known = self._results.get(key)
        if known is not None:
            return known
        times = self._times[code.address] = self._times.get(code.address, 0) + 1
        most = _MOST_CONTEXTS if code.size() > _SMALL else _MOST_MERGES
        if times > most:
            before = self._merged.get(code.address)
            variables = either_of(before, variables) if before is not None else variables
            if variables == before:
                return self._merged_results.get(code.address, UNKNOWN)
            if times > most + (_MOST_MERGES_IN_LIBRARY if self.library.is_standard(code) else _MOST_MERGES):
                self.incomplete = self.incomplete or not self.library.is_standard(code)
                return self._merged_results.get(code.address, UNKNOWN)
            self._merged[code.address] = dict(variables)
        instructions = self.library.instructions.of(code)
        if instructions is None:
            self.incomplete = True
            return UNKNOWN
        if code.address not in self._seen:
            self.limits.codes -= 1
            self._seen.add(code.address)
        if self._depth >= MAX_DEPTH or self.limits.codes < 0:
            self.incomplete = True
            return UNKNOWN
        self._results[key] = UNKNOWN  # while it runs: recursion
        self._depth += 1
        run = Run(self, code, shape, instructions, variables, function.namespace, None)
        self.evaluate(run)
        self._depth -= 1
        self._results[key] = run.result
        if times > most:
            known = self._merged_results.get(code.address, UNKNOWN)
            self._merged_results[code.address] = either(known, run.result)
        return run.result
