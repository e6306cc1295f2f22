"""Calls in a function that ran before the current line, and those still to run, from its syntax.

Nothing is evaluated. Calls are ordered by line, and by column where known (``Span``, 3.11+). A `finally` or `except`
around the line is still to run.
"""

from __future__ import annotations

import ast
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Module]
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
#: Names of functions that make tasks of coroutines, or greenlets of calls.
_SPAWNS = frozenset((
    "create_task", "ensure_future", "gather", "wait", "as_completed", "run_coroutine_threadsafe", "start_soon", "spawn",
))  # fmt: skip
#: co_name of a module's code.
MODULE = "<module>"
_END = 1 << 30


class CallSite(NamedTuple):
    """A call of a method or function."""

    line: int
    column: int
    path: Tuple[str, ...]  # object of the method: ("self", "_lock"); () for a plain function
    name: str  # of the method or function
    arguments: Tuple[Tuple[str, ...], ...] = ()  # dotted names of positional arguments, () for anything else
    end: int = 0  # line of its last character
    bare: bool = True  # called without any argument
    end_column: int = 0  # behind its last character


class Span(NamedTuple):
    """The expression that a frame evaluates.

    (line, column) of its first character, and behind its last one; columns in bytes of UTF-8, as in ``ast`` and
    CPython's line tables.
    """

    start: Tuple[int, int]
    end: Tuple[int, int]

    def is_behind(self, other: Span) -> bool:
        """Return whether the other expression is evaluated before this one: it ends before this one, or is part of it."""
        return other.end <= self.start or (self.start <= other.start and other.end <= self.end and other != self)


class Source(NamedTuple):
    """A parsed file."""

    functions: Tuple[Function, ...]  # the module is the last one
    owners: Dict[int, str]  # id of a function's node → name of the method's class


def parse(texts: Optional[List[str]]) -> Source:
    """Return a file's functions; empty without lines or if they are not valid Python."""
    if texts is None:
        return Source((), {})
    try:
        tree = ast.parse("\n".join(texts), filename="")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Source((), {})
    functions: List[Function] = []
    owners: Dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.append(node)
        elif isinstance(node, ast.ClassDef):
            owners.update((id(child), node.name) for child in node.body if isinstance(child, _DEFINITIONS))
    return Source((*functions, tree), owners)


def function_at(source: Source, name: str, line: int) -> Optional[Function]:
    """Return the innermost function with this name around a line; None if there is none."""
    if name == MODULE:
        return source.functions[-1] if source.functions else None
    around = [f for f in source.functions if not isinstance(f, ast.Module) and f.name == name and _holds(f, line)]
    return max(around, key=lambda f: f.lineno, default=None)


def function_from(source: Source, name: str, first: int) -> Optional[Function]:
    """Return the function with this name whose code begins at a line.

    That is its `def` or its first decorator (co_firstlineno).
    """
    for function in source.functions:
        if isinstance(function, ast.Module) or function.name != name:
            continue
        begins = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        if begins <= first <= function.lineno:
            return function
    return None


def parameters(function: Function) -> Tuple[str, ...]:
    """Return the names of positional parameters."""
    if isinstance(function, ast.Module):
        return ()
    arguments = function.args
    return tuple(a.arg for a in (*getattr(arguments, "posonlyargs", ()), *arguments.args))


def spawned_calls(function: Function) -> Iterator[ast.Call]:
    """Yield the calls whose results, coroutines mostly, are passed on to become tasks of their own."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _name_of(node) in _SPAWNS:
            yield from (one for one in node.args if isinstance(one, ast.Call))


def _name_of(call: ast.Call) -> Optional[str]:
    """Return the last name of what a call calls."""
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None


def calls_before(function: Function, line: int = _END, span: Optional[Span] = None) -> List[CallSite]:
    """Return the calls that ran before a line, in order; without a line, all calls.

    ``span``: the expression evaluated there; calls of the same line may precede it.
    """
    return sorted(_before(function, line, span))


def _before(function: Function, line: int, span: Optional[Span]) -> Iterator[CallSite]:
    def inside(node: ast.AST) -> Iterable[ast.AST]:
        """Return the children that ran; of a `try` that is not finished only the body."""
        if isinstance(node, ast.Try) and any(_holds(child, line) for child in node.body):
            return node.body
        return ast.iter_child_nodes(node)

    for call, awaited in _calls(function, inside):
        if _is_over(call, span, awaited) if span else call.lineno < line:
            yield from _site(call)


def _calls(
    function: Function, inside: Callable[[ast.AST], Iterable[ast.AST]] = ast.iter_child_nodes
) -> Iterator[Tuple[ast.Call, Dict[int, Span]]]:
    """Yield each call of a function, without nested definitions, with the spans of awaited calls so far."""
    waiting: List[ast.AST] = list(function.body)
    awaited: Dict[int, Span] = {}
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            continue
        _note_awaited(node, awaited)
        if isinstance(node, ast.Call):
            yield node, awaited
        waiting.extend(inside(node))


def _note_awaited(node: ast.AST, awaited: Dict[int, Span]) -> None:
    """Note an awaited call: its coroutine has run only when the await is complete.

    Generators that Twisted and Tornado run as coroutines await what they yield.
    """
    if isinstance(node, (ast.Await, ast.YieldFrom)) or (isinstance(node, ast.Yield) and _acquires(node.value)):
        assert node.value is not None
        awaited[id(node.value)] = _span(node)


def _acquires(node: Optional[ast.expr]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "acquire"


def _is_over(node: ast.expr, span: Span, awaited: Dict[int, Span]) -> bool:
    return span.is_behind(awaited.get(id(node)) or _span(node))


def _span(node: ast.expr) -> Span:
    return Span((node.lineno, node.col_offset), (_end(node), _end_column(node)))


def calls_from(function: Function, line: int, span: Optional[Span] = None) -> List[CallSite]:
    """Return the calls of a line, which run now, and those behind it, in order.

    An `else` or `except` of a finished `try`, and a branch not taken, count as still to run.
    """
    found: List[CallSite] = []
    for call, awaited in _calls(function):
        if _end(call) >= line and not (span and _is_over(call, span, awaited)):
            found.extend(_site(call))
    return sorted(found)


def with_paths(function: Function) -> Set[Tuple[str, ...]]:
    """Return the dotted names that `with` statements enter."""
    found: Set[Tuple[str, ...]] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            found.update(dotted(item.context_expr) for item in node.items)
    return found - {()}


def with_calls(function: Function) -> Iterator[ast.Call]:
    """Yield the calls in the items of a function's `with` statements."""
    for node in ast.walk(function):
        for item in node.items if isinstance(node, (ast.With, ast.AsyncWith)) else ():
            yield from (inner for inner in ast.walk(item.context_expr) if isinstance(inner, ast.Call))


def _site(node: ast.Call) -> Iterator[CallSite]:
    arguments, bare = tuple(dotted(a) for a in node.args), not node.args and not node.keywords
    last = (arguments, _end(node), bare, _end_column(node))
    if isinstance(node.func, ast.Attribute):
        path = dotted(node.func.value)
        if path:
            yield CallSite(node.lineno, node.col_offset, path, node.func.attr, *last)
    elif isinstance(node.func, ast.Name):
        yield CallSite(node.lineno, node.col_offset, (), node.func.id, *last)


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= _end(node)


def _end(node: Union[ast.stmt, ast.expr]) -> int:
    return getattr(node, "end_lineno", None) or node.lineno


def _end_column(node: ast.expr) -> int:
    return getattr(node, "end_col_offset", None) or node.col_offset


def named_methods(function: Function, name: str) -> Set[Tuple[str, ...]]:
    """Return the objects whose method is named without being called directly, as dotted names.

    Examples: ``undo(lock.release)``, ``lambda: lock.release()``.
    """
    called: Set[int] = set()
    waiting: List[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            called.add(id(node.func))
        if not isinstance(node, _DEFINITIONS):
            waiting.extend(ast.iter_child_nodes(node))
    loose = (n for n in ast.walk(function) if isinstance(n, ast.Attribute) and n.attr == name and id(n) not in called)
    return {dotted(node.value) for node in loose} - {()}


def dotted(node: ast.AST) -> Tuple[str, ...]:
    """Return ("self", "lock") for ``self.lock``; () for anything but names and attributes."""
    names: List[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()
