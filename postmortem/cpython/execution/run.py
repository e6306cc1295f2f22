"""Evaluates the instructions of one code object, over a stack and variables of values.

Each instruction is looked at once, or twice where paths meet. What an instruction gives is known from its kind: loads,
stores, calls and what builds containers are followed, all others by their effect on the stack.

Sources of the effects: Python/ceval.c of 3.8-3.10, Python/bytecodes.c of 3.11-3.15.
"""

from __future__ import annotations

import builtins
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from ..objects.code import Code
from .functions import Shape
from .incalls import CallsInC
from .instructions import Instruction
from .lookup import Place
from .stack import MOST_NESTED, Stack, nesting, pop, pop1, popped, take, top
from .values import MOST_ITEMS, PLAIN, UNKNOWN, Value, either, one_of

_PASSES = 2
#: Values that an exception pushes up to 3.10.
_RAISED = 6


class Run(Place):
    """The evaluation of one code object.

    ``live``: the instructions whose effects are noted; None for all. The others only tell what variables hold.
    """

    def __init__(
        self,
        machine: CallsInC,
        code: Code,
        shape: Shape,
        instructions: Dict[int, Instruction],
        variables: Dict[str, Value],
        namespace: int,
        live: Optional[Set[int]],
    ) -> None:
        self.machine = machine
        super().__init__(code)
        self.result = UNKNOWN
        self._shape = shape
        self._instructions = instructions
        self._variables = variables
        self._namespace = namespace
        self._live = live
        self._named: Sequence[str] = ()
        self._entries: Dict[int, Stack] = {}
        self._version = machine.heap.objects.layout.version
        self._again = False
        self._done: Set[int] = set()
        self._loaded: Set[str] = set()

    def names(self) -> Set[str]:
        """Return the names of the instructions that can run."""
        return {each.name for at, each in self._instructions.items() if self._live is None or at in self._live}

    @property
    def is_live(self) -> bool:
        """Whether the current instruction can run."""
        return self._live is None or self.at in self._live

    def first(self) -> Value:
        """Return the first parameter, usually self."""
        names = self._shape.names
        return self._variables.get(names[0], UNKNOWN) if names else UNKNOWN

    def run(self) -> None:
        """Evaluate all instructions; twice where a loop's end stores what its beginning loads, or paths meet."""
        for _ in range(_PASSES):
            self._again = False
            self._once()
            if not self._again or self.machine.limits.steps <= 0:
                return

    def _once(self) -> None:
        waiting: List[Tuple[int, Stack]] = [(0, [])]
        done = self._done = set()
        instructions, entries, step = self._instructions, self._entries, self.machine.limits.step
        while waiting:
            at, stack = waiting.pop()
            self._enter(at, stack)
            if at in done:
                continue
            following: Optional[int] = at
            stack = list(entries[at])
            while following is not None and following not in done:
                each = instructions.get(following)
                if each is None:
                    break
                if not step():
                    self.machine.incomplete = True
                    return
                done.add(following)
                self.at = following
                if each.handler is not None and each.handler not in entries:
                    waiting.append((each.handler, []))
                operation = _OPERATIONS.get(each.name)
                if operation is not None:  # none of these jumps
                    operation(self, stack, each.argument)
                else:
                    stack, jumped = self._jump(each, stack)
                    if each.target is not None:
                        waiting.append((each.target, jumped))
                following = each.following
                if following is not None and following in entries:
                    self._enter(following, stack)
                    stack = list(entries[following])

    def _enter(self, at: int, stack: Stack) -> None:
        """Merge a stack with those with which an instruction was reached before."""
        known = self._entries.get(at)
        if known is None:
            self._entries[at] = list(stack)
        elif len(known) == len(stack) and known != stack:
            merged = [
                one if other is None else other if one is None else either(one, other)
                for one, other in zip(known, stack)
            ]
            if merged != known:
                self._entries[at] = merged
                self._again = self._again or at in self._done

    # ------------------------------------------------------------------ instructions

    def _jump(self, each: Instruction, stack: Stack) -> Tuple[Stack, Stack]:
        """Evaluate an instruction whose jump changes the stack, or that is known by its effect alone."""
        name = each.name
        jump = _JUMPS.get(name)
        if jump is not None:
            return jump(self, stack)
        if name.startswith("POP_JUMP"):
            self.machine.operate((pop1(stack),), self)
        elif name.startswith(("BINARY", "INPLACE")):
            self._add(stack)
        elif name.startswith("UNARY"):
            self.machine.operate((pop1(stack),), self)
            stack.append(PLAIN)
        elif not name.startswith(("JUMP", "RESUME")) and name not in _NOTHING:
            taken, given = _EFFECTS.get(name, (len(stack), 0))
            pop(stack, taken)
            stack.extend([UNKNOWN] * given)
        return stack, list(stack)

    def _iterate(self, stack: Stack) -> Tuple[Stack, Stack]:
        over = stack[-2:-1] if self._version >= (3, 15) else stack[-1:]
        there = list(stack)
        stack.append(self.machine.items(over[0] or UNKNOWN) if over else UNKNOWN)
        if self._version >= (3, 12):
            there.append(UNKNOWN)
        else:
            pop(there)
        return stack, there

    def _send(self, stack: Stack) -> Tuple[Stack, Stack]:
        """Continue an awaited coroutine, which gives what its call returned."""
        pop(stack)
        there = list(stack)
        index = 2 if self._version >= (3, 15) else 1
        received = there[-index] if len(there) >= index else UNKNOWN
        stack.append(UNKNOWN)
        if self._version >= (3, 12):
            there.append(received)
        return stack, there

    def _jump_or_pop(self, stack: Stack) -> Tuple[Stack, Stack]:
        there = list(stack)
        pop(stack)
        return stack, there

    def _jump_unless_matched(self, stack: Stack) -> Tuple[Stack, Stack]:
        pop(stack, 2)
        return stack, list(stack)

    def _set_up(self, stack: Stack) -> Tuple[Stack, Stack]:
        return stack, [*stack, *[UNKNOWN] * _RAISED]

    def _set_up_with(self, stack: Stack) -> Tuple[Stack, Stack]:
        there = [*stack, *[UNKNOWN] * _RAISED]
        self._with(stack, 0)
        return stack, there

    def _call_finally(self, stack: Stack) -> Tuple[Stack, Stack]:
        return stack, [*stack, UNKNOWN]

    # variables

    def _load_constant(self, stack: Stack, argument: int) -> None:
        constants = self._shape.constants
        stack.append(self.machine.functions.constant(constants[argument]) if argument < len(constants) else UNKNOWN)

    def _return_constant(self, stack: Stack, argument: int) -> None:
        self._load_constant(stack, argument)
        self._return(stack, 0)

    def _plain(self, stack: Stack, argument: int) -> None:
        stack.append(PLAIN)

    def _name_at(self, index: int, cell: bool = False) -> str:
        index += self._shape.plain if cell else 0
        return self._shape.names[index] if index < len(self._shape.names) else "?"

    def _variable(self, name: str) -> Value:
        self._loaded.add(name)
        return self._variables.get(name) or frozenset((("name", name, self.code.address),))

    def _set(self, name: str, value: Value) -> None:
        known = self._variables.get(name, UNKNOWN)
        if known and not self.is_live:
            return  # memory has what it holds now
        self.machine.overwrite(known, value, self)
        new = either(known, value) if known else value
        if new != known:
            self._variables[name] = new
            self._again = self._again or name in self._loaded

    def _load_fast(self, stack: Stack, argument: int) -> None:
        stack.append(self._variable(self._name_at(argument)))

    def _load_two(self, stack: Stack, argument: int) -> None:
        stack.append(self._variable(self._name_at(argument >> 4)))
        stack.append(self._variable(self._name_at(argument & 15)))

    def _store_fast(self, stack: Stack, argument: int) -> None:
        self._set(self._name_at(argument), pop1(stack))

    def _store_load(self, stack: Stack, argument: int) -> None:
        self._set(self._name_at(argument >> 4), pop1(stack))
        stack.append(self._variable(self._name_at(argument & 15)))

    def _store_two(self, stack: Stack, argument: int) -> None:
        self._set(self._name_at(argument >> 4), pop1(stack))
        self._set(self._name_at(argument & 15), pop1(stack))

    def _load_cell(self, stack: Stack, argument: int) -> None:
        stack.append(self._variable(self._name_at(argument, True)))

    def _store_cell(self, stack: Stack, argument: int) -> None:
        self._set(self._name_at(argument, True), pop1(stack))

    def _load_cell_from(self, stack: Stack, argument: int) -> None:
        pop(stack)
        self._load_cell(stack, argument)

    def _used(self, index: int) -> str:
        return self._shape.used[index] if index < len(self._shape.used) else "?"

    def _global(self, name: str) -> Value:
        found = self.machine.heap.value(self.machine.heap.namespace(self._namespace).get(name))
        stored = self.machine.globals.get((self._namespace, name), UNKNOWN)
        if found or stored:
            return either(found, stored)
        return frozenset((("builtin", name),)) if name in _BUILTINS else frozenset((("name", name),))

    def _load_global(self, stack: Stack, argument: int) -> None:
        if self._version < (3, 11):
            stack.append(self._global(self._used(argument)))
            return
        found = self._global(self._used(argument >> 1))
        if not argument & 1:
            stack.append(found)
        else:
            stack.extend((None, found) if self._version < (3, 13) else (found, None))

    def _load_name(self, stack: Stack, argument: int) -> None:
        name = self._used(argument)
        stack.append(self._variables.get(name) or self._global(name))

    def _load_name_from(self, stack: Stack, argument: int) -> None:
        pop(stack)
        self._load_name(stack, argument)

    def _store_global(self, stack: Stack, argument: int) -> None:
        key, value = (self._namespace, self._used(argument)), pop1(stack)
        self.machine.overwrite(self._global(key[1]), value, self)
        self.machine.note_stored(key[1], frozenset((("obj", self._namespace),)), self)
        self.machine.globals[key] = either(self.machine.globals.get(key, UNKNOWN), value)

    def _import(self, stack: Stack, argument: int) -> None:
        pop(stack, 2)
        name = self._used(argument)
        namespace = self.machine.library.modules.get(name)
        stack.append(frozenset((("ns", namespace) if namespace else ("name", name),)))

    def _import_from(self, stack: Stack, argument: int) -> None:
        stack.append(self.machine.attribute(top(stack), self._used(argument), self))

    # attributes and items

    def _load_attribute(self, stack: Stack, argument: int) -> None:
        owner = pop1(stack)
        if self._version < (3, 12):
            stack.append(self.machine.attribute(owner, self._used(argument), self))
            return
        stack.append(self.machine.attribute(owner, self._used(argument >> 1), self))
        if argument & 1:
            stack.append(None)

    def _load_method(self, stack: Stack, argument: int) -> None:
        stack.append(self.machine.attribute(pop1(stack), self._used(argument), self))
        stack.append(None)

    def _load_super(self, stack: Stack, argument: int) -> None:
        bound = pop1(stack)
        pop(stack, 2)
        value = one_of(("super", self.code.address, atom) for atom in bound if atom[0] in ("obj", "inst"))
        stack.append(self.machine.attribute(value, self._used(argument >> 2), self))
        if argument & 1:
            stack.append(None)

    def _store_attribute(self, stack: Stack, argument: int) -> None:
        owner, value = pop1(stack), pop1(stack)
        if self.is_live:
            self.machine.store_attribute(owner, self._used(argument), value, self)

    def _subscript(self, stack: Stack, argument: int) -> None:
        key, container = pop1(stack), pop1(stack)
        self.machine.operate((container, key), self)
        stack.append(self.machine.item(container, key))

    def _binary(self, stack: Stack, argument: int) -> None:
        if argument == _NB_SUBSCR:
            return self._subscript(stack, argument)
        return self._add(stack)

    def _add(self, stack: Stack) -> None:
        """Push the sum of two lists; a text that is put together is not known."""
        right, left = pop1(stack), pop1(stack)
        self.machine.operate((left, right), self)
        self.machine.note_changed(left, self)  # in place, perhaps
        both = left | right
        stack.append(one_of(atom for atom in both if atom[0] != "str") or PLAIN)

    def _slice(self, stack: Stack, argument: int) -> None:
        pop(stack, 2)

    def _store_subscript(self, stack: Stack, argument: int) -> None:
        pop(stack)
        container, value = pop1(stack), pop1(stack)
        self.machine.note_changed(container, self)
        if self.is_live:
            self.machine.put(container, value)

    def _delete_subscript(self, stack: Stack, argument: int) -> None:
        pop(stack)
        self.machine.note_changed(pop1(stack), self)

    def _store_slice(self, stack: Stack, argument: int) -> None:
        pop(stack, 2)
        self.machine.note_changed(pop1(stack), self)
        pop(stack)

    def _compare(self, stack: Stack, argument: int) -> None:
        self.machine.operate((pop1(stack), pop1(stack)), self)
        stack.append(PLAIN)

    # building

    def _build(self, stack: Stack, argument: int) -> None:
        stack.append(self.machine.made(("new", self.code.address, self.at), take(stack, argument)))

    def _build_tuple(self, stack: Stack, argument: int) -> None:
        parts = take(stack, argument)
        if len(parts) > MOST_ITEMS or nesting(parts) > MOST_NESTED:
            stack.append(frozenset((("many", UNKNOWN),)))
        else:
            stack.append(frozenset((("tuple", tuple(parts)),)))

    def _build_map(self, stack: Stack, argument: int) -> None:
        parts = take(stack, 2 * argument)
        keys, values = parts[::2], parts[1::2]
        stack.append(self._mapping(keys, values))

    def _build_constant_map(self, stack: Stack, argument: int) -> None:
        names = self.machine.positions(pop1(stack))
        stack.append(self._mapping(names, take(stack, argument)))

    def _mapping(self, keys: Sequence[Value], values: Sequence[Value]) -> Value:
        texts = [next((atom[1] for atom in key if atom[0] == "str"), None) for key in keys]
        if values and all(texts) and len(values) <= MOST_ITEMS and nesting(values) <= MOST_NESTED:
            return frozenset((("map", tuple(zip(texts, values))),))
        return self.machine.made(("new", self.code.address, self.at), values)

    def _build_unpacked(self, stack: Stack, argument: int) -> None:
        parts = [part for value in take(stack, argument) for part in self.machine.positions(value) or [UNKNOWN]]
        stack.append(frozenset((("tuple", tuple(parts[:MOST_ITEMS])),)))

    def _build_mapping_unpacked(self, stack: Stack, argument: int) -> None:
        stack.append(either(*take(stack, argument)))

    def _extend(self, stack: Stack, argument: int) -> None:
        value = pop1(stack)
        if 0 < argument <= len(stack):
            container = stack[-argument] or UNKNOWN
            if any(atom[0] == "map" for atom in container | value):
                stack[-argument] = either(container, value)
            else:
                self.machine.extend(container, value)

    def _append(self, stack: Stack, argument: int) -> None:
        value = pop1(stack)
        if 0 < argument <= len(stack):
            self.machine.put(stack[-argument] or UNKNOWN, value)

    def _append_pair(self, stack: Stack, argument: int) -> None:
        value = pop1(stack)
        pop(stack)
        if 0 < argument <= len(stack):
            self.machine.put(stack[-argument] or UNKNOWN, value)

    def _to_tuple(self, stack: Stack, argument: int) -> None:
        value = pop1(stack)
        parts = self.machine.positions(value)
        stack.append(either(value, frozenset((("tuple", tuple(parts)),))) if parts and nesting(parts) <= 3 else value)

    def _intrinsic(self, stack: Stack, argument: int) -> None:
        if argument == _LIST_TO_TUPLE:
            self._to_tuple(stack, argument)

    def _unpack(self, stack: Stack, argument: int) -> None:
        stack.extend(reversed(self.machine.spread(pop1(stack), min(argument, MOST_ITEMS))))

    def _unpack_rest(self, stack: Stack, argument: int) -> None:
        each = self.machine.items(pop1(stack))
        stack.extend([each] * min((argument & 0xFF) + 1 + (argument >> 8), MOST_ITEMS))

    def _make_function(self, stack: Stack, argument: int) -> None:
        if self._version < (3, 11):
            pop(stack)  # the name
        code = pop1(stack)
        closure: Sequence[Value] = ()
        if self._version < (3, 13):
            closure = self.machine.positions(pop1(stack)) if argument & 8 else ()
            pop(stack, bin(argument & 7).count("1"))
        stack.append(self._function_of(code, closure))

    def _function_of(self, code: Value, closure: Sequence[Value]) -> Value:
        if nesting(closure) > MOST_NESTED:
            closure = [UNKNOWN] * len(closure)
        return one_of(("code", atom[1], tuple(closure), self._namespace) for atom in code if atom[0] == "code")

    def _set_function(self, stack: Stack, argument: int) -> None:
        function, value = pop1(stack), pop1(stack)
        stack.append(self._function_of(function, self.machine.positions(value)) if argument == 8 else function)

    # calls

    def _callee(self, stack: Stack) -> Tuple[Value, List[Value]]:
        """Take the two slots of a callable off the stack: one of them may be empty, or the second is ``self``."""
        second, first = popped(stack), popped(stack)
        if first is None:
            return second or UNKNOWN, []
        return (first, []) if second is None else (first, [second])

    def _call(self, stack: Stack, argument: int) -> None:
        given = take(stack, argument)
        names, self._named = self._named, ()
        called, bound = self._callee(stack)
        self._finish(stack, called, [*bound, *given], names)

    def _call_method(self, stack: Stack, argument: int) -> None:
        given = take(stack, argument)
        called, bound = self._callee(stack)
        self._finish(stack, called, [*bound, *given], ())

    def _call_named(self, stack: Stack, argument: int) -> None:
        names = self._texts(pop1(stack))
        given = take(stack, argument)
        called, bound = self._callee(stack)
        self._finish(stack, called, [*bound, *given], names)

    def _call_function(self, stack: Stack, argument: int) -> None:
        given = take(stack, argument)
        self._finish(stack, pop1(stack), given, ())

    def _call_function_named(self, stack: Stack, argument: int) -> None:
        names = self._texts(pop1(stack))
        given = take(stack, argument)
        self._finish(stack, pop1(stack), given, names)

    def _call_unpacked(self, stack: Stack, argument: int) -> None:
        named: Dict[str, Value] = {}
        if argument & 1 or self._version >= (3, 14):
            for atom in pop1(stack):
                if atom[0] == "map":
                    named.update((name, value) for name, value in atom[1] if isinstance(name, str))
        given = self.machine.positions(pop1(stack))
        called, bound = self._callee(stack) if self._version >= (3, 11) else (pop1(stack), [])
        stack.append(self.machine.call(called, [*bound, *given], named, self))

    def _finish(self, stack: Stack, called: Value, given: List[Value], names: Sequence[str]) -> None:
        named: Dict[str, Value] = {}
        if names and len(names) <= len(given):
            named = dict(zip(names, given[len(given) - len(names) :]))
            given = given[: len(given) - len(names)]
        stack.append(self.machine.call(called, given, named, self))

    def _texts(self, value: Value) -> List[str]:
        parts = self.machine.positions(value)
        return [next((str(atom[1]) for atom in part if atom[0] == "str"), "?") for part in parts]

    def _keyword_names(self, stack: Stack, argument: int) -> None:
        constants = self._shape.constants
        if argument < len(constants):
            self._named = self._texts(self.machine.heap.value(constants[argument]))

    def _with(self, stack: Stack, argument: int) -> None:
        manager = pop1(stack)
        self._managed(stack, manager, "__exit__", "__enter__")

    def _async_with(self, stack: Stack, argument: int) -> None:
        manager = pop1(stack)
        self._managed(stack, manager, "__aexit__", "__aenter__")

    def _managed(self, stack: Stack, manager: Value, leave: str, enter: str) -> None:
        left = self.machine.special(manager, leave, self)
        self.machine.call(left or PLAIN, [], {}, self)
        stack.append(left or PLAIN)
        entered = self.machine.special(manager, enter, self)
        result = self.machine.call(entered, [], {}, self) if entered else UNKNOWN
        stack.append(result or manager)

    def _load_special(self, stack: Stack, argument: int) -> None:
        manager = pop1(stack)
        name = ("__enter__", "__exit__", "__aenter__", "__aexit__")[argument & 3]
        found = self.machine.special(manager, name, self)
        if not found:
            found = one_of(("cmethod", name, atom) for atom in manager) or PLAIN
        stack.extend((found, None))

    def _return(self, stack: Stack, argument: int) -> None:
        self.result = either(self.result, pop1(stack))

    def _yield(self, stack: Stack, argument: int) -> None:
        value = pop1(stack)
        self.result = either(self.result, frozenset((("many", value),)) if value else UNKNOWN)
        stack.append(UNKNOWN)

    def _yield_from(self, stack: Stack, argument: int) -> None:
        pop(stack)  # the receiver's own result stays in its place

    def _next_of(self, stack: Stack, argument: int) -> None:
        stack.append(self.machine.items(top(stack)))

    def _end_send(self, stack: Stack, argument: int) -> None:
        value = popped(stack)
        pop(stack, 2 if self._version >= (3, 15) else 1)
        stack.append(value)

    def _get_iterator(self, stack: Stack, argument: int) -> None:
        if self._version >= (3, 15):
            stack.append(UNKNOWN)

    def _pop_iterator(self, stack: Stack, argument: int) -> None:
        pop(stack, 2 if self._version >= (3, 15) else 1)

    def _end_for(self, stack: Stack, argument: int) -> None:
        pop(stack, 2 if self._version == (3, 12) else 1)

    def _pop_except(self, stack: Stack, argument: int) -> None:
        pop(stack, 1 if self._version >= (3, 11) else 3)

    def _end_async_for(self, stack: Stack, argument: int) -> None:
        pop(stack, 2 if self._version >= (3, 11) else 7)

    # shuffling

    def _push_null(self, stack: Stack, argument: int) -> None:
        stack.append(None)

    def _copy(self, stack: Stack, argument: int) -> None:
        stack.append(stack[-argument] if 0 < argument <= len(stack) else UNKNOWN)

    def _swap(self, stack: Stack, argument: int) -> None:
        if 1 < argument <= len(stack):
            stack[-1], stack[-argument] = stack[-argument], stack[-1]

    def _duplicate(self, stack: Stack, argument: int) -> None:
        stack.append(stack[-1] if stack else UNKNOWN)

    def _duplicate_two(self, stack: Stack, argument: int) -> None:
        stack.extend(stack[-2:])

    def _rotate(self, stack: Stack, argument: int) -> None:
        if 1 < argument <= len(stack):
            stack.insert(len(stack) - argument, stack.pop())

    def _format(self, stack: Stack, argument: int) -> None:
        pop(stack, 2 if argument & 4 else 1)
        stack.append(PLAIN)

    def _pops(self, stack: Stack, argument: int) -> None:
        pop(stack, argument)
        stack.append(PLAIN)


#: NB_SUBSCR of BINARY_OP (Include/opcode.h, 3.14); INTRINSIC_LIST_TO_TUPLE (Include/internal/pycore_intrinsics.h).
_NB_SUBSCR, _LIST_TO_TUPLE = 26, 6
_BUILTINS: FrozenSet[str] = frozenset(dir(builtins))
_NOTHING = frozenset((
    "NOP", "CACHE", "MAKE_CELL", "COPY_FREE_VARS", "SETUP_ANNOTATIONS", "NOT_TAKEN", "EXTENDED_ARG", "POP_BLOCK",
    "GET_AWAITABLE", "GET_YIELD_FROM_ITER", "GET_AITER", "PRECALL", "TO_BOOL", "ASYNC_GEN_WRAP", "DELETE_FAST",
    "DELETE_DEREF", "DELETE_NAME", "DELETE_GLOBAL", "CONVERT_VALUE", "EXIT_INIT_CHECK", "RESUME",
))  # fmt: skip
#: Slots taken and given by instructions whose results reach nothing.
_EFFECTS: Dict[str, Tuple[int, int]] = {
    "POP_TOP": (1, 0), "DELETE_ATTR": (1, 0), "CALL_INTRINSIC_2": (2, 1),
    "PRINT_EXPR": (1, 0), "IMPORT_STAR": (1, 0), "PUSH_EXC_INFO": (0, 1), "CHECK_EXC_MATCH": (1, 1),
    "CHECK_EG_MATCH": (2, 2), "WITH_EXCEPT_START": (0, 1), "WITH_CLEANUP_START": (0, 2), "WITH_CLEANUP_FINISH": (3, 0),
    "BEGIN_FINALLY": (0, 1), "END_FINALLY": (1, 0), "POP_FINALLY": (1, 0), "CLEANUP_THROW": (3, 2), "GET_LEN": (0, 1),
    "MATCH_MAPPING": (0, 1), "MATCH_SEQUENCE": (0, 1), "MATCH_KEYS": (0, 1), "MATCH_CLASS": (3, 1), "GEN_START": (1, 0),
    "FORMAT_SIMPLE": (1, 1), "FORMAT_WITH_SPEC": (2, 1), "RETURN_GENERATOR": (0, 1), "LOAD_BUILD_CLASS": (0, 1),
    "LOAD_LOCALS": (0, 1), "RAISE_VARARGS": (0, 0), "RERAISE": (0, 0), "COPY_DICT_WITHOUT_KEYS": (1, 1),
}  # fmt: skip
_JUMPS: Dict[str, Callable[[Run, Stack], Tuple[Stack, Stack]]] = {
    "FOR_ITER": Run._iterate, "SEND": Run._send, "JUMP_IF_FALSE_OR_POP": Run._jump_or_pop,
    "JUMP_IF_TRUE_OR_POP": Run._jump_or_pop, "JUMP_IF_NOT_EXC_MATCH": Run._jump_unless_matched,
    "SETUP_FINALLY": Run._set_up, "SETUP_ASYNC_WITH": Run._set_up, "SETUP_WITH": Run._set_up_with,
    "CALL_FINALLY": Run._call_finally,
}  # fmt: skip
_Operation = Callable[[Run, Stack, int], None]


def _rotating(count: int) -> _Operation:
    return lambda run, stack, argument: run._rotate(stack, count)


_OPERATIONS: Dict[str, _Operation] = {
    "LOAD_CONST": Run._load_constant, "RETURN_CONST": Run._return_constant, "LOAD_SMALL_INT": Run._plain,
    "LOAD_COMMON_CONSTANT": Run._plain, "LOAD_ASSERTION_ERROR": Run._plain,
    "LOAD_FAST": Run._load_fast, "LOAD_FAST_CHECK": Run._load_fast, "LOAD_FAST_AND_CLEAR": Run._load_fast,
    "LOAD_FAST_BORROW": Run._load_fast, "LOAD_FAST_LOAD_FAST": Run._load_two,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": Run._load_two, "STORE_FAST": Run._store_fast,
    "STORE_FAST_MAYBE_NULL": Run._store_fast, "STORE_FAST_LOAD_FAST": Run._store_load,
    "STORE_FAST_STORE_FAST": Run._store_two,
    "LOAD_DEREF": Run._load_cell, "LOAD_CLASSDEREF": Run._load_cell, "LOAD_CLOSURE": Run._load_cell,
    "LOAD_FROM_DICT_OR_DEREF": Run._load_cell_from, "STORE_DEREF": Run._store_cell,
    "LOAD_GLOBAL": Run._load_global, "LOAD_NAME": Run._load_name, "LOAD_FROM_DICT_OR_GLOBALS": Run._load_name_from,
    "STORE_GLOBAL": Run._store_global, "STORE_NAME": Run._store_global,
    "IMPORT_NAME": Run._import, "IMPORT_FROM": Run._import_from,
    "LOAD_ATTR": Run._load_attribute, "LOAD_METHOD": Run._load_method, "LOAD_SUPER_ATTR": Run._load_super,
    "STORE_ATTR": Run._store_attribute, "BINARY_SUBSCR": Run._subscript, "BINARY_OP": Run._binary,
    "BINARY_SLICE": Run._slice, "STORE_SUBSCR": Run._store_subscript,
    "DELETE_SUBSCR": Run._delete_subscript, "STORE_SLICE": Run._store_slice, "COMPARE_OP": Run._compare,
    "IS_OP": Run._compare, "CONTAINS_OP": Run._compare,
    "BUILD_LIST": Run._build, "BUILD_SET": Run._build, "BUILD_TUPLE": Run._build_tuple, "BUILD_MAP": Run._build_map,
    "BUILD_CONST_KEY_MAP": Run._build_constant_map, "BUILD_STRING": Run._pops, "BUILD_SLICE": Run._pops,
    "BUILD_LIST_UNPACK": Run._build_unpacked, "BUILD_TUPLE_UNPACK": Run._build_unpacked,
    "BUILD_SET_UNPACK": Run._build_unpacked, "BUILD_TUPLE_UNPACK_WITH_CALL": Run._build_unpacked,
    "BUILD_MAP_UNPACK": Run._build_mapping_unpacked, "BUILD_MAP_UNPACK_WITH_CALL": Run._build_mapping_unpacked,
    "LIST_EXTEND": Run._extend, "SET_UPDATE": Run._extend, "DICT_UPDATE": Run._extend, "DICT_MERGE": Run._extend,
    "LIST_APPEND": Run._append, "SET_ADD": Run._append, "MAP_ADD": Run._append_pair,
    "LIST_TO_TUPLE": Run._to_tuple, "CALL_INTRINSIC_1": Run._intrinsic,
    "UNPACK_SEQUENCE": Run._unpack, "UNPACK_EX": Run._unpack_rest,
    "MAKE_FUNCTION": Run._make_function, "SET_FUNCTION_ATTRIBUTE": Run._set_function,
    "CALL": Run._call, "CALL_METHOD": Run._call_method, "CALL_KW": Run._call_named,
    "CALL_FUNCTION": Run._call_function, "CALL_FUNCTION_KW": Run._call_function_named,
    "CALL_FUNCTION_EX": Run._call_unpacked, "KW_NAMES": Run._keyword_names,
    "BEFORE_WITH": Run._with, "BEFORE_ASYNC_WITH": Run._async_with, "LOAD_SPECIAL": Run._load_special,
    "RETURN_VALUE": Run._return, "YIELD_VALUE": Run._yield, "YIELD_FROM": Run._yield_from,
    "GET_ANEXT": Run._next_of, "END_SEND": Run._end_send, "GET_ITER": Run._get_iterator,
    "POP_ITER": Run._pop_iterator, "END_FOR": Run._end_for, "POP_EXCEPT": Run._pop_except,
    "END_ASYNC_FOR": Run._end_async_for, "PUSH_NULL": Run._push_null, "COPY": Run._copy, "SWAP": Run._swap,
    "DUP_TOP": Run._duplicate, "DUP_TOP_TWO": Run._duplicate_two, "ROT_TWO": _rotating(2), "ROT_THREE": _rotating(3),
    "ROT_FOUR": _rotating(4), "ROT_N": Run._rotate, "FORMAT_VALUE": Run._format,
}  # fmt: skip
