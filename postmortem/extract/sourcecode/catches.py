"""Cancellations in sources: clauses that catch one and do not raise it again, functions that cancel what they await."""

from __future__ import annotations

import ast
from typing import FrozenSet, Iterable, Iterator, List, Optional, Sequence, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Classes whose clauses catch asyncio's CancelledError, by their last name.
_CAUGHT: FrozenSet[str] = frozenset(("BaseException", "CancelledError"))


def swallowing(tree: ast.Module, name: str, line: int) -> List[int]:
    """Return the lines of clauses that catch a cancellation raised at a line, after which its loop goes round again.

    ``name``: of the function. A clause that raises, returns or leaves the loop is left out, and whatever is around one that does.
    """
    function = _function(tree, name, line)
    found: List[int] = []
    if function is None:
        return found
    way = _way(function, line)
    for depth in range(len(way) - 1, -1, -1):
        node: ast.AST = way[depth]
        handler: Optional[ast.ExceptHandler] = None
        if isinstance(node, ast.Try) and any(_holds(child, line) for child in node.body):
            handler = next((one for one in node.handlers if _catches(one.type)), None)
            if any(map(_leaves, node.finalbody)) or (handler is not None and any(map(_leaves, handler.body))):
                break
            if handler is None:
                continue
            at = handler.lineno
        elif isinstance(node, (ast.With, ast.AsyncWith)) and any(map(_suppresses, node.items)):
            at = node.lineno
        else:
            continue
        loop = next((outer for outer in reversed(way[:depth]) if isinstance(outer, _LOOPS)), None)
        if loop is not None and _goes_round(loop, handler):
            found.append(at)
        break
    return found


def cancels_awaited(tree: ast.Module, name: str, line: int) -> bool:
    """Return whether what a function awaits at a line is what it calls ``cancel()`` on in a line before.

    ``name``: of the function. Both are compared as they are written.
    """
    function = _function(tree, name, line)
    nodes = [node for statement in function.body for node in _inside(statement)] if function is not None else []
    awaited = {ast.dump(node.value) for node in nodes if isinstance(node, ast.Await) and _holds(node, line)}
    return any(ast.dump(receiver) in awaited for receiver in _cancelled(nodes, line))


def cancels_items(tree: ast.Module, name: str, line: int) -> bool:
    """Return whether a function calls ``cancel()``, in a line before, on an item of a container: which, is not known."""
    function = _function(tree, name, line)
    nodes = [node for statement in function.body for node in _inside(statement)] if function is not None else []
    return any(isinstance(receiver, ast.Subscript) for receiver in _cancelled(nodes, line))


def _cancelled(nodes: Iterable[ast.AST], line: int) -> Iterator[ast.expr]:
    """Yield the expressions on which ``cancel()`` is called before a line."""
    for node in nodes:
        called = node.func if isinstance(node, ast.Call) and node.lineno < line else None
        if isinstance(called, ast.Attribute) and called.attr == "cancel":
            yield called.value


def _goes_round(loop: ast.AST, handler: Optional[ast.ExceptHandler]) -> bool:
    """Return whether nothing that a clause does ends a loop: it tests nothing, or the clause assigns and sets nothing."""
    if not isinstance(loop, ast.While) or isinstance(loop.test, ast.Constant) or handler is None:
        return True
    return not any(
        isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr))
        or (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "set")
        for statement in handler.body
        for node in _inside(statement)
    )


def _function(tree: ast.Module, name: str, line: int) -> Optional[Function]:
    """Return the innermost function of this name around a line."""
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    around = (one for one in functions if one.name == name and _holds(one, line))
    return max(around, key=lambda one: one.lineno, default=None)


def _way(function: Function, line: int) -> List[ast.AST]:
    """Return the statements around a line, the outermost first."""
    found: List[ast.AST] = []
    nodes: Sequence[ast.AST] = function.body
    while True:
        inside = next((node for node in nodes if not isinstance(node, _DEFINITIONS) and _holds(node, line)), None)
        if inside is None:
            return found
        found.append(inside)
        nodes = list(ast.iter_child_nodes(inside))


def _holds(node: ast.AST, line: int) -> bool:
    first: Optional[int] = getattr(node, "lineno", None)
    if first is None:
        return any(_holds(child, line) for child in ast.iter_child_nodes(node))
    last: Optional[int] = getattr(node, "end_lineno", None)
    return first <= line <= (last or first)


def _catches(kind: Optional[ast.expr]) -> bool:
    """Return whether an `except` of this class, or tuple of classes, catches a cancellation; None: a bare `except`."""
    if kind is None:
        return True
    if isinstance(kind, ast.Tuple):
        return any(map(_catches, kind.elts))
    return getattr(kind, "attr", getattr(kind, "id", "")) in _CAUGHT


def _suppresses(item: ast.withitem) -> bool:
    """Return whether a part of a `with` is ``contextlib.suppress`` of a cancellation."""
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    return getattr(call.func, "attr", getattr(call.func, "id", "")) == "suppress" and any(map(_catches, call.args))


def _leaves(statement: ast.AST) -> bool:
    """Return whether a statement may raise, return or leave the loop around it."""
    return any(isinstance(node, (ast.Raise, ast.Return, ast.Break)) for node in _inside(statement))


def _inside(statement: ast.AST) -> Iterator[ast.AST]:
    waiting: List[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _DEFINITIONS):
            yield node
            waiting.extend(ast.iter_child_nodes(node))
