"""The rounds of a loop in which code pauses: which of them come back to the pause, what they ask, what else they do.

Nothing is run. The loop's statements are followed from its beginning, with the values that names have in memory, as far
as these decide a condition; of the others both sides are taken. A question about an object (``future.done()``) has the
answer that the object's state gives. So a *round* is a way through the loop that comes to the pause and then begins anew.

- A round is *quiet* if it only asks, pauses, reads clocks and writes messages: code that goes round so waits for an answer.
- What else leads out of the loop: a clock or a counter (``limited``), or a variable that other code may change (``open``).
"""

from __future__ import annotations

import ast
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
)

from .callsites import Function, Span, dotted

Loop = Union[ast.While, ast.For, ast.AsyncFor]
_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_WITHOUT_EFFECT = (ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, *_DEFINITIONS)
_COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp)
#: Most ways that are followed through one loop, statements visited, items asked, and calls followed into functions.
_MOST_WAYS, _MOST_STEPS, _MOST_ITEMS, _DEPTH = 48, 1_500, 16, 3
#: What an exception of an unfulfilled wait may be caught as, besides every exception.
_CATCHES_ALL = frozenset(("", "Exception", "BaseException"))
_TIMED_OUT = frozenset(("Empty", "Full", "TimeoutError", "Timeout", "timeout", "TimeoutExpired", "OSError", "error"))
#: Methods that raise when their time is over; the others return something that is false.
_RAISES = frozenset(
    (
        "wait_for",
        "get",
        "put",
        "result",
        "exception",
        "communicate",
        "recv",
        "recv_into",
        "recvfrom",
        "accept",
        "read",
        "readline",
    )
)
#: Functions without an effect on others: builtins, clocks, pauses.
_PLAIN = frozenset((
    "abs", "bool", "bytes", "callable", "dict", "divmod", "enumerate", "float", "format", "frozenset", "getattr", "hasattr",
    "hash", "id", "int", "isinstance", "issubclass", "iter", "len", "list", "max", "min", "range", "repr", "reversed", "round",
    "set", "sorted", "str", "sum", "super", "tuple", "type", "vars", "zip",
))  # fmt: skip
_CLOCKS = frozenset(
    ("time", "monotonic", "perf_counter", "monotonic_ns", "time_ns", "perf_counter_ns", "process_time", "now", "utcnow")
)
_PAUSES = frozenset(("sleep", "usleep", "pause"))
#: Methods of values that change nothing but these, and of loggers; looks at the file system.
_OF_VALUES = frozenset((
    "append", "clear", "copy", "count", "discard", "endswith", "extend", "format", "get", "isoformat", "items", "join", "keys",
    "lower", "remove", "startswith", "strip", "total_seconds", "upper", "values", "uniform", "random", "randint", "exists",
    "is_file", "is_dir", "isfile", "isdir", "getpid", "get_ident", "current_thread", "current_task", "get_running_loop",
    "access", "stat", "fileno", "getmtime", "cancelled", "timedelta",
))  # fmt: skip
_MESSAGES = frozenset(
    ("debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "write", "flush")
)
_EXCEPTIONS = ("Error", "Exception", "Timeout", "Expired", "Empty", "Full", "Interrupt", "Exit", "Warning")
#: Iterables without an end.
_ENDLESS = frozenset(("count", "repeat", "cycle"))


class Constant(NamedTuple):
    """A value that is known itself."""

    value: object


class Thing(NamedTuple):
    """An object in memory."""

    address: int


#: None: unknown.
Value = Union[Constant, Thing, None]


class Question(NamedTuple):
    """Answer of an object's method as long as the awaited state has not come.

    ``raises``: the exception instead of an answer.
    """

    answer: Value = None
    raises: Optional[str] = None


class Memory(Protocol):
    """Objects in memory, as the loops of the source name them; methods never raise."""

    def attribute(self, thing: int, name: str) -> Optional[int]:
        """Return what an object itself has by that name, or its class without a function; None if unknown."""

    def method(self, thing: int, name: str) -> Optional[Tuple[int, bool]]:
        """Return the function that a class has by that name, and whether it is a property's; None for others."""

    def constant(self, thing: int) -> Optional[Constant]:
        """Return the value of None, a bool, a number, or (its emptiness) a container; None for others."""

    def items(self, thing: int) -> Optional[Sequence[int]]:
        """Return the items of a container; None if unknown."""

    def question(
        self, thing: int, method: str, words: Mapping[str, Value], positional: Sequence[Value]
    ) -> Optional[Question]:
        """Return what an object answers that has not come to its end; None if it has, or for other methods."""

    def function(
        self, callee: Optional[int]
    ) -> Optional[Tuple[Function, Callable[[str], Optional[int]], Optional[int]]]:
        """Return the source of a Python function, its globals by name, and the object that it is bound to."""


class Asked(NamedTuple):
    """A question about an object.

    - ``any``: one of several, of which any is enough
    - ``all``: one of several, of which all are needed
    """

    thing: int
    method: str
    any: bool = False
    all: bool = False


class Rounds(NamedTuple):
    """The quiet rounds of a loop.

    - ``asked``: by any of them, in order
    - ``limited``: whether a clock or a counter ends the loop
    - ``open``: whether a variable that other code may change ends it
    - ``spoke``: whether they write messages
    - ``works``: whether there are other rounds, which may do work
    - ``length_s``: of the pause, if it is a sleep of known length
    """

    asked: Tuple[Asked, ...]
    limited: bool
    open: bool
    spoke: bool
    works: bool
    length_s: Optional[float] = None


class _Way(NamedTuple):
    """A way through statements up to some point."""

    names: Tuple[Tuple[str, Value], ...] = ()
    asked: Tuple[Asked, ...] = ()
    paused: bool = False
    worked: bool = False
    spoke: bool = False
    doubts: FrozenSet[str] = frozenset()  # clock, flag
    supposed: bool = False  # takes a branch that the values in memory do not take
    raised: Optional[str] = None  # the exception being raised; "*": a time limit's, whatever its class

    def named(self, name: str, value: Value) -> _Way:
        return self._replace(names=(*(n for n in self.names if n[0] != name), (name, value)))


_NEXT, _AGAIN, _LEAVES, _RAISE = "next", "again", "leaves", "raise"
Ends = List[Tuple[str, _Way]]


class TooMany(Exception):
    """The loop has more ways than are followed."""


def loops_around(function: Function, span: Optional[Span], line: int) -> List[Loop]:
    """Return the loops whose repeated part contains a place, the innermost first, without those of nested functions."""
    found: List[Loop] = []
    for loop in _loops(function.body):
        parts: List[ast.AST] = [*loop.body, *([loop.test] if isinstance(loop, ast.While) else [])]
        if any(_holds(part, span, line) for part in parts):
            found.append(loop)
    return found[::-1]


def _loops(body: Sequence[ast.AST]) -> Iterator[Loop]:
    waiting = list(body)[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            continue
        if isinstance(node, _LOOPS):
            yield node
        waiting += list(ast.iter_child_nodes(node))[::-1]


def _holds(node: ast.AST, span: Optional[Span], line: int) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
    if not first <= line <= last:
        return False
    if span is None:
        return True
    return (first, getattr(node, "col_offset", 0)) <= span.start and span.end <= (
        last,
        getattr(node, "end_col_offset", 0),
    )


def is_harmless(function: Function) -> bool:
    """Return whether all calls of a function only ask, pause, read clocks or write messages, by their names."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(node, ast.Call) and not _is_plain(node):
            return False
    return True


def _is_plain(call: ast.Call) -> bool:
    name = _called(call)
    known = name in _PLAIN or name in _CLOCKS or name in _PAUSES or name in _OF_VALUES or name in _MESSAGES
    return known or name.endswith(_EXCEPTIONS)


def _called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


class Follower:
    """Follows the ways through the loops of one function.

    - ``named``: a name of the function → object
    - ``span`` and ``line``: the expression in which the code pauses
    - ``local``: whether a name is a variable of the function alone
    - ``raises``: whether the pause ends with an exception when its time is over; None: as its name says
    - ``runs``: the code is between two pauses: it pauses where the loop sleeps
    """

    def __init__(
        self,
        memory: Memory,
        named: Callable[[str], Optional[int]],
        local: Callable[[str], bool],
        span: Optional[Span],
        line: int,
        raises: Optional[bool] = None,
        runs: bool = False,
    ) -> None:
        self._memory = memory
        self._raises = raises
        self._runs = runs
        self._named = named
        self._is_local = local
        self._span, self._line = span, line
        self._steps = 0
        self._depth = 0
        self._stored: FrozenSet[str] = frozenset()
        self._pause: Optional[ast.AST] = None
        self._fragile = False
        self._statements: Sequence[Tuple[Any, Callable[[Any, _Way], Ends]]] = (
            (ast.Continue, lambda _node, way: [(_AGAIN, way)]),
            (ast.Break, lambda _node, way: [(_LEAVES, way)]),
            (ast.Return, self._return),
            (ast.Raise, self._raise),
            (ast.If, self._if),
            (ast.Try, self._try),
            ((ast.With, ast.AsyncWith), self._with),
            (_LOOPS, self._inner),
            ((ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Delete), self._simple),
        )
        self._expressions: Sequence[Tuple[Any, Callable[[Any, _Way], List[Tuple[Value, _Way]]]]] = (
            (ast.Constant, lambda node, way: [(Constant(node.value), way)]),
            (ast.Name, lambda node, way: [(self._name(node.id, way), way)]),
            (ast.Attribute, self._attributes),
            (ast.Call, self._call),
            (ast.Await, lambda node, way: self._values(node.value, way)),
            (ast.NamedExpr, self._assigned),
            (ast.BoolOp, self._truths),
            (ast.UnaryOp, self._unary),
            (ast.Compare, self._compare),
            (_COMPREHENSIONS, lambda node, way: self._comprehension(node, way, None)),
            ((ast.Yield, ast.YieldFrom), lambda _node, way: [(None, way._replace(worked=True))]),
            (_DEFINITIONS, lambda _node, way: [(None, way)]),
        )

    def rounds(self, loop: Loop) -> Optional[Rounds]:
        """Return the quiet rounds of a loop; None if there is none, or too much to follow."""
        ends = self._followed(loop, lambda: self._once(loop, _Way()))
        again = [way for end, way in ends if end == _AGAIN and way.paused and not way.supposed]
        quiet = [way for way in again if not way.worked]
        if not quiet:
            return None
        leaves = [way for end, way in ends if end != _AGAIN]
        limited = any("clock" in way.doubts for way in leaves)
        return Rounds(
            tuple(dict.fromkeys(asked for way in quiet for asked in way.asked)),
            limited,
            any("clock" not in way.doubts for way in leaves),
            any(way.spoke for way in quiet),
            len(quiet) < len(again),
            self._length(),
        )

    def merely_pauses(self, function: Function) -> bool:
        """Return whether a function without a loop around its pause does nothing else of effect, by the values that it has."""
        body = ast.Module(list(function.body), [])
        ends = self._followed(body, lambda: self._block(function.body, _Way()))
        ways = [way for _end, way in ends if way.paused and not way.supposed]
        return bool(ways) and not any(way.worked for way in ways)

    def _followed(self, code: ast.AST, follow: Callable[[], Ends]) -> Ends:
        """Return how the ways through code with a pause end; none if it has no pause, or too many ways."""
        self._steps = 0
        self._stored = frozenset(
            node.id for node in ast.walk(code) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        self._pause = self._pausing(code)
        if self._pause is None:
            return []
        try:
            return follow()
        except (TooMany, RecursionError):
            return []

    def _length(self) -> Optional[float]:
        """Return the seconds for which the loop sleeps, if its call says so."""
        call = self._pause
        argument = call.args[0] if isinstance(call, ast.Call) and call.args else None
        value: object = argument.value if isinstance(argument, ast.Constant) else None
        if isinstance(argument, ast.Name):
            found = self._named(argument.id)
            constant = self._memory.constant(found) if found is not None else None
            value = constant.value if constant is not None else None
        return float(value) if isinstance(value, (int, float)) and value >= 0 else None

    def _pausing(self, code: ast.AST) -> Optional[ast.AST]:
        """Return the call in which the code pauses: the one at the place, else of its line one that pauses by its name."""
        found: List[ast.Call] = []
        awaited: List[ast.Call] = []  # asynchronous code pauses nowhere else
        waiting: List[ast.AST] = [code]
        while waiting:
            node = waiting.pop()
            if isinstance(node, _DEFINITIONS):
                continue
            if isinstance(node, ast.Call) and self._runs and _called(node) in _PAUSES and node.args:
                return node
            if isinstance(node, ast.Call) and _holds(node, None, self._line):
                found.append(node)
            if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
                if self._is_at(node):
                    return node.value
                if self._span is None and _holds(node, None, self._line):
                    awaited.append(node.value)
            waiting += ast.iter_child_nodes(node)
        if self._runs:
            return None
        exact = [node for node in found if self._is_at(node)]
        if exact:
            return exact[0]
        ways = _PAUSES | _RAISES | {"wait", "join", "select", "acquire", "poll", "wait_for", "communicate"}
        named = [node for node in found if _called(node) in ways] if self._span is None else []
        return (awaited or named or found or [None])[-1]  # type: ignore[list-item]

    def _is_at(self, node: ast.expr) -> bool:
        if self._span is None:
            return False
        start = (node.lineno, node.col_offset)
        return (start, (node.end_lineno or 0, node.end_col_offset or 0)) == (self._span.start, self._span.end)

    # ------------------------------------------------------------------ statements

    def _once(self, loop: Loop, way: _Way) -> Ends:
        """Return how a round of the loop may end."""
        ends: Ends = []
        if isinstance(loop, ast.While):
            begins = []
            for truth, each in self._decided(loop.test, way):
                if truth:
                    begins.append(each)
                else:
                    ends += [(_RAISE if each.raised else _LEAVES, each)]
        else:
            endless = isinstance(loop.iter, ast.Call) and _called(loop.iter) in _ENDLESS
            begins = [way]
            if not endless and not isinstance(loop, ast.AsyncFor):
                ends.append((_LEAVES, way._replace(doubts=way.doubts | {"clock"})))
        for begin in begins:
            for end, after in self._block(loop.body, begin):
                ends.append((_AGAIN if end == _NEXT else end, after))
        return ends

    def _block(self, body: Sequence[ast.stmt], way: _Way) -> Ends:
        ends: Ends = [(_NEXT, way)]
        for statement in body:
            following: Ends = []
            for end, each in ends:
                following += self._statement(statement, each) if end == _NEXT else [(end, each)]
            ends = list(dict.fromkeys(following))
            if len(ends) > _MOST_WAYS:
                raise TooMany
        return ends

    def _statement(self, node: ast.stmt, way: _Way) -> Ends:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooMany
        if isinstance(node, _WITHOUT_EFFECT):
            return [(_NEXT, way)]
        for kind, follow in self._statements:
            if isinstance(node, kind):
                return follow(node, way)
        return [(_NEXT, way._replace(worked=True))]

    def _return(self, node: ast.Return, way: _Way) -> Ends:
        return [(_RAISE if each.raised else _LEAVES, each) for _value, each in self._values(node.value, way)]

    @staticmethod
    def _raise(node: ast.Raise, way: _Way) -> Ends:
        name = dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)[-1:] if node.exc else ()
        return [(_RAISE, way._replace(raised=name[0] if name else "?"))]

    def _simple(self, node: ast.stmt, way: _Way) -> Ends:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assert):
            value = node.test
        ends: Ends = []
        for found, each in self._values(value, way):
            if each.raised:
                ends.append((_RAISE, each))
                continue
            bound = each
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets if not isinstance(node, (ast.Expr, ast.Assert)) else ():
                if isinstance(target, ast.Name):
                    bound = bound.named(target.id, None if isinstance(node, ast.AugAssign) else found)
                elif isinstance(target, (ast.Tuple, ast.List)) and target.elts and isinstance(target.elts[0], ast.Name):
                    # what came within the time: nothing
                    bound = bound.named(target.elts[0].id, found if self._is_pause(value) else None)
            ends.append((_NEXT, bound))
        return ends

    def _if(self, node: ast.If, way: _Way) -> Ends:
        ends: Ends = []
        for truth, each in self._decided(node.test, way):
            if each.raised:
                ends.append((_RAISE, each))
            else:
                ends += self._block(node.body if truth else node.orelse, each)
        return ends

    def _with(self, node: Union[ast.With, ast.AsyncWith], way: _Way) -> Ends:
        """Follow a ``with``: a lock around a question is not work; what another manager does is."""
        ways = [way]
        for item in node.items:
            ways = [
                each if isinstance(item.context_expr, (ast.Name, ast.Attribute)) else after
                for each in ways
                for _value, after in self._values(item.context_expr, each)
            ]
        return [end for each in ways for end in self._block(node.body, each)]

    def _try(self, node: ast.Try, way: _Way) -> Ends:
        ends: Ends = []
        for end, each in self._block(node.body, way):
            if end == _NEXT:
                ends += self._block(node.orelse, each)
            elif end == _RAISE:
                ends += self._handled(node, each)
            else:
                ends.append((end, each))
        if not node.finalbody:
            return ends
        done: Ends = []
        for end, each in ends:
            for last, after in self._block(node.finalbody, each._replace(raised=None)):
                done.append((end, after._replace(raised=each.raised)) if last == _NEXT else (last, after))
        return done

    def _handled(self, node: ast.Try, way: _Way) -> Ends:
        raised = way.raised or "?"
        for handler in node.handlers:
            caught = _caught(handler.type)
            known = caught & (_CATCHES_ALL | {raised})
            if known or (raised == "*" and caught & _TIMED_OUT):
                return self._block(handler.body, way._replace(raised=None))
        return [(_RAISE, way)]

    def _inner(self, node: Loop, way: _Way) -> Ends:
        """Follow a loop within the loop: as often as there are items, as far as these are known; else once, or not at all."""
        if isinstance(node, ast.While):
            ends: Ends = []
            for truth, each in self._decided(node.test, way):
                ends += (
                    self._block(node.body, each)
                    if truth and not each.raised
                    else [(_RAISE if each.raised else _NEXT, each)]
                )
            return [(_NEXT if end in (_AGAIN, _LEAVES) else end, each) for end, each in ends]
        found: Ends = []
        for value, begin in self._values(node.iter, way):
            items = self._memory.items(value.address) if isinstance(value, Thing) else None
            several: Sequence[Value] = [None] if items is None else [Thing(item) for item in items[:_MOST_ITEMS]]
            current: Ends = [(_NEXT, begin)]
            for item in several:
                following: Ends = []
                for end, each in current:
                    if end != _NEXT:
                        following.append((end, each))
                        continue
                    bound = each.named(node.target.id, item) if isinstance(node.target, ast.Name) else each
                    for last, after in self._block(node.body, bound):
                        following.append((_NEXT if last == _AGAIN else last, after))
                current = list(dict.fromkeys(following))
                if len(current) > _MOST_WAYS:
                    raise TooMany
            # `break` of the inner loop, and what leaves the function, are not told apart: neither is quiet
            found += [(_NEXT, each._replace(worked=True)) if end == _LEAVES else (end, each) for end, each in current]
        return found

    # ------------------------------------------------------------------ expressions

    def _decided(self, node: ast.expr, way: _Way) -> List[Tuple[bool, _Way]]:
        """Return the truth of a condition, once or for both sides, with the ways that lead there."""
        found: List[Tuple[bool, _Way]] = []
        if isinstance(node, ast.BoolOp):
            return self._joined(isinstance(node.op, ast.And), node.values, way)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return [(not truth, each) for truth, each in self._decided(node.operand, way)]
        before, self._fragile = self._fragile, False
        for value, each in self._values(node, way):
            truth = self._truth(value)
            if each.raised:
                found.append((False, each))
            elif truth is None:
                doubtful = each._replace(doubts=each.doubts | {"clock" if _is_timely(node) else "flag"})
                found += [(True, doubtful), (False, doubtful)]
            else:
                found.append((truth, each))
                if self._fragile or isinstance(value, Thing):
                    found.append((not truth, each._replace(doubts=each.doubts | {"flag"}, supposed=True)))
        self._fragile = before
        return found

    def _joined(self, all_: bool, nodes: Sequence[ast.expr], way: _Way) -> List[Tuple[bool, _Way]]:
        going, found = [way], []
        for node in nodes:
            following: List[_Way] = []
            for each in going:
                for truth, after in self._decided(node, each):
                    if truth == all_ and not after.raised:
                        following.append(after)
                    else:
                        found.append((truth, after))
            going = following
        return found + [(all_, each) for each in going]

    def _truth(self, value: Value) -> Optional[bool]:
        constant = self._memory.constant(value.address) if isinstance(value, Thing) else value
        return bool(constant.value) if constant is not None else None

    def _values(self, node: Optional[ast.expr], way: _Way) -> List[Tuple[Value, _Way]]:
        """Return what an expression may be, with the ways that lead there."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooMany
        if node is None:
            return [(Constant(None), way)]
        for kind, evaluate in self._expressions:
            if isinstance(node, kind):
                return evaluate(node, way)
        ways = [way]
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                ways = [after for each in ways for _value, after in self._values(child, each)]
        return [(None, each) for each in ways]

    def _assigned(self, node: ast.NamedExpr, way: _Way) -> List[Tuple[Value, _Way]]:
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        return [(value, each.named(name, value)) for value, each in self._values(node.value, way)]

    def _unary(self, node: ast.UnaryOp, way: _Way) -> List[Tuple[Value, _Way]]:
        if isinstance(node.op, ast.Not):
            return self._truths(node, way)
        number = node.operand.value if isinstance(node.operand, ast.Constant) else None
        negative = isinstance(node.op, ast.USub) and isinstance(number, (int, float))
        return [
            (Constant(-number) if negative and isinstance(number, (int, float)) else None, each)
            for _value, each in self._values(node.operand, way)
        ]

    def _truths(self, node: ast.expr, way: _Way) -> List[Tuple[Value, _Way]]:
        return [(Constant(truth), each) for truth, each in self._decided(node, way)]

    def _name(self, name: str, way: _Way) -> Value:
        for known, value in way.names:
            if known == name:
                return value
        found = self._named(name)
        if found is None:
            return None
        constant = self._memory.constant(found)
        if constant is not None and name in self._stored and isinstance(constant.value, (int, float)):
            return None  # a counter, or what an earlier round has found
        if _is_scalar(constant) and not self._is_local(name):
            self._fragile = True
        return Thing(found)

    def _attributes(self, node: ast.Attribute, way: _Way) -> List[Tuple[Value, _Way]]:
        return [found for value, each in self._values(node.value, way) for found in self._attribute(node, value, each)]

    def _attribute(self, node: ast.Attribute, value: Value, way: _Way) -> List[Tuple[Value, _Way]]:
        if not isinstance(value, Thing):
            return [(None, way)]
        asked = self._asked(value.address, node.attr, {}, (), way, True)
        if asked:
            return asked
        found = self._memory.attribute(value.address, node.attr)
        method = self._memory.method(value.address, node.attr) if found is None else None
        if found is None and method is not None and method[1]:
            known = self._memory.function(method[0])
            return self._within(known, [value], way) if known is not None else [(None, way)]
        if found is None:
            return [(None, way)]
        if _is_scalar(self._memory.constant(found)):
            self._fragile = True
        return [(Thing(found), way)]

    def _compare(self, node: ast.Compare, way: _Way) -> List[Tuple[Value, _Way]]:
        found: List[Tuple[Value, _Way]] = []
        if len(node.ops) != 1:
            ways = [way]
            for operand in (node.left, *node.comparators):
                ways = [after for each in ways for _value, after in self._values(operand, each)]
            known = [self._plain(self._values(operand, way)) for operand in (node.left, *node.comparators)]
            for op, one, other in zip(node.ops, known, known[1:]):
                if one is not None and other is not None and _compared(op, one.value, other.value) is False:
                    return [(Constant(False), each) for each in ways]
            return [(None, each) for each in ways]
        for left, middle in self._values(node.left, way):
            for right, after in self._values(node.comparators[0], middle):
                one, other = self._plain([(left, way)]), self._plain([(right, way)])
                truth = (
                    _compared(node.ops[0], one.value, other.value) if one is not None and other is not None else None
                )
                if truth is None and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                    truth = self._same(left, right, isinstance(node.ops[0], ast.Is))
                found.append((Constant(truth) if truth is not None else None, after))
        return found

    def _plain(self, values: List[Tuple[Value, _Way]]) -> Optional[Constant]:
        value = values[0][0] if len(values) == 1 else None
        if isinstance(value, Thing):
            constant = self._memory.constant(value.address)
            return constant if constant is not None and not isinstance(constant.value, tuple) else None
        return value

    def _same(self, one: Value, other: Value, is_: bool) -> Optional[bool]:
        """Return whether an object that is no constant is None: it is not."""
        for left, right in ((one, other), (other, one)):
            if isinstance(left, Thing) and right == Constant(None) and self._memory.constant(left.address) is None:
                return not is_
        return None

    # ------------------------------------------------------------------ calls

    def _call(self, node: ast.Call, way: _Way) -> List[Tuple[Value, _Way]]:
        if self._is_pause(node):
            return self._paused(node, way)
        name = _called(node)
        several = node.args[0] if name in ("any", "all") and len(node.args) == 1 else None
        if isinstance(several, _COMPREHENSIONS):
            return self._comprehension(several, way, name == "all")
        owners: List[Tuple[Value, _Way]] = [(None, way)]
        if isinstance(node.func, ast.Attribute):
            owners = self._values(node.func.value, way)
        found: List[Tuple[Value, _Way]] = []
        for owner, each in owners:
            given: List[Tuple[Tuple[Value, ...], _Way]] = [((), each)]
            for argument in node.args:
                given = [((*values, v), w) for values, after in given for v, w in self._values(argument, after)]
            words: Dict[str, Value] = {}
            for keyword in node.keywords:
                value, _after = self._values(keyword.value, each)[0]
                words[keyword.arg or ""] = value
            for values, after in given[:_MOST_WAYS]:
                found += self._called_with(node, name, owner, values, words, after)
        return found

    def _called_with(
        self, node: ast.Call, name: str, owner: Value, values: Sequence[Value], words: Mapping[str, Value], way: _Way
    ) -> List[Tuple[Value, _Way]]:
        if isinstance(owner, Thing):
            asked = self._asked(owner.address, name, words, values, way, False)
            if asked:
                return asked
            method = self._memory.method(owner.address, name)
            callee = method[0] if method is not None else self._memory.attribute(owner.address, name)
            bound: List[Value] = [owner] if method is not None else []
        else:
            callee = self._named(name) if isinstance(node.func, ast.Name) else None
            bound = []
        known = self._memory.function(callee)
        if known is not None and name not in _MESSAGES and name not in _PAUSES:
            bound = [Thing(known[2])] if known[2] is not None else bound
            return self._within(known, [*bound, *values], way)
        if name == "len" and len(values) == 1 and isinstance(values[0], Thing):
            items = self._memory.items(values[0].address)
            return [(Constant(len(items)) if items is not None and len(items) < _MOST_ITEMS else None, way)]
        if name == "bool" and len(values) == 1:
            truth = self._truth(values[0])
            return [(Constant(truth) if truth is not None else None, way)]
        if not _is_plain(node):
            return [(None, way._replace(worked=True))]
        if name in _MESSAGES:
            way = way._replace(spoke=True)
        same = values[0] if name in ("list", "tuple", "set", "sorted", "iter") and values else None
        return [(same, way)]

    def _within(
        self, known: Tuple[Function, Callable[[str], Optional[int]], Optional[int]], values: Sequence[Value], way: _Way
    ) -> List[Tuple[Value, _Way]]:
        """Return what a function gives that only returns an expression; else whether it is harmless."""
        function, named, _bound = known
        body = [each for each in function.body if not _is_text(each)]
        if isinstance(function, (ast.AsyncFunctionDef, ast.Module)) or self._depth >= _DEPTH:
            return [(None, way._replace(worked=True))]
        if len(body) != 1 or not isinstance(body[0], ast.Return):
            return [(None, way if is_harmless(function) else way._replace(worked=True))]
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        before = self._named, self._is_local, self._stored
        inside = way._replace(names=tuple(zip(names, values)))
        self._named, self._is_local, self._stored = named, lambda _name: False, frozenset()
        self._depth += 1
        try:
            return [(v, each._replace(names=way.names)) for v, each in self._values(body[0].value, inside)]
        finally:
            self._depth -= 1
            self._named, self._is_local, self._stored = before

    def _asked(
        self,
        thing: int,
        method: str,
        words: Mapping[str, Value],
        values: Sequence[Value],
        way: _Way,
        as_attribute: bool,
    ) -> List[Tuple[Value, _Way]]:
        name = f".{method}" if as_attribute else method
        question = self._memory.question(thing, name, words, values)
        if question is None:
            return []
        asked = way._replace(asked=(*way.asked, Asked(thing, method)))
        return [(question.answer, asked._replace(raised=question.raises))]

    def _comprehension(
        self, node: Union[ast.GeneratorExp, ast.ListComp, ast.SetComp], way: _Way, all_: Optional[bool]
    ) -> List[Tuple[Value, _Way]]:
        """Return the truth of `any` and `all` over a comprehension, or its emptiness."""
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            return [(None, way._replace(worked=not is_harmless(ast.Module([ast.Expr(node)], [])) or way.worked))]
        generator = node.generators[0]
        found: List[Tuple[Value, _Way]] = []
        for value, begin in self._values(generator.iter, way):
            items = self._memory.items(value.address) if isinstance(value, Thing) else None
            current, truths = begin, []
            for item in (items or ())[:_MOST_ITEMS]:
                bound = current.named(
                    generator.target.id if isinstance(generator.target, ast.Name) else "", Thing(item)
                )
                tests: List[ast.expr] = [*generator.ifs, *([node.elt] if all_ is not None else [])]
                truth: Optional[bool] = True
                for test in tests:
                    answers = self._values(test, bound)
                    answer, bound = answers[0]
                    one = self._truth(answer) if len(answers) == 1 else None
                    truth = None if one is None else one if truth is True else truth
                    if one is False:
                        truth = False
                        break
                truths.append(truth)
                current = bound
            if items is None:
                found.append(
                    (None, begin._replace(worked=begin.worked or not is_harmless(ast.Module([ast.Expr(node)], []))))
                )
                continue
            current = current._replace(names=begin.names)
            new = current.asked[len(begin.asked) :]
            if all_ is not None and len(new) > 1:
                # what is awaited of all is awaited together: all(done), any(alive); any(done) is not
                ends = all_ is not (True in truths)
                current = current._replace(asked=(*begin.asked, *(a._replace(any=not ends, all=ends) for a in new)))
            if all_ is None:
                some: Optional[bool] = True in truths or (None if None in truths else False)
                found.append((Constant((0,) if some else ()) if some is not None else None, current))
            elif all_:
                found.append(
                    (Constant(False) if False in truths else None if None in truths else Constant(True), current)
                )
            else:
                found.append(
                    (Constant(True) if True in truths else None if None in truths else Constant(False), current)
                )
        return found

    # ------------------------------------------------------------------ the pause

    def _is_pause(self, node: Optional[ast.AST]) -> bool:
        return node is self._pause or (isinstance(node, ast.Await) and node.value is self._pause)

    def _paused(self, node: ast.Call, way: _Way) -> List[Tuple[Value, _Way]]:
        """Return what a pause gives when its time is over."""
        way = way._replace(paused=True)
        name = _called(node)
        raises = self._raises if self._raises is not None else name in _RAISES
        if raises:
            return [(None, way._replace(raised="*"))]
        return [(Constant(()) if name in ("select", "poll", "wait") else Constant(None), way)]


def _caught(node: Optional[ast.expr]) -> FrozenSet[str]:
    if node is None:
        return frozenset(("",))
    each = node.elts if isinstance(node, ast.Tuple) else [node]
    return frozenset(name[-1] for name in map(dotted, each) if name)


def _is_scalar(constant: Optional[Constant]) -> bool:
    return constant is not None and not isinstance(constant.value, tuple)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_timely(node: ast.expr) -> bool:
    """Return whether a condition compares sizes or reads a clock: it ends a loop by time or count."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Compare) and any(
            isinstance(op, (ast.Lt, ast.Gt, ast.LtE, ast.GtE)) for op in inner.ops
        ):
            return True
        if isinstance(inner, ast.Call) and _called(inner) in _CLOCKS:
            return True
    return False


def _compared(op: ast.cmpop, left: object, right: object) -> Optional[bool]:
    """Return the truth of a comparison of known values; None for others."""
    if isinstance(op, (ast.Is, ast.Eq)):
        return left is right or left == right
    if isinstance(op, (ast.IsNot, ast.NotEq)):
        return not (left is right or left == right)
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    if isinstance(op, ast.Lt):
        return left < right
    if isinstance(op, ast.LtE):
        return left <= right
    if isinstance(op, ast.Gt):
        return left > right
    return left >= right if isinstance(op, ast.GtE) else None
