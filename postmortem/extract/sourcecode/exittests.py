"""What the tests of a loop read: which variables decide whether it goes round once more.

Only the source is read; the values are looked up by ``waits/polling.py``.
"""

from __future__ import annotations

import ast
from typing import FrozenSet, Iterator, List, Literal, NamedTuple, Set, Tuple

from .callsites import dotted
from .rounds import Loop

#: A test depends on whether a value is true, on a number or object that is compared, or on what a container has in it.
Role = Literal["truth", "compared", "contents"]
#: Functions whose result depends on what is in their argument alone.
_OF_CONTENTS = frozenset(("len", "any", "all", "sum", "max", "min", "sorted", "set", "list", "tuple", "bool"))
#: Methods that look at a container.
_LOOKS = frozenset(("get", "keys", "values", "items", "count", "copy", "issuperset", "issubset"))


class Read(NamedTuple):
    """A variable that a test reads: its dotted name, and of what in it the test depends."""

    path: Tuple[str, ...]
    role: Role


def reads(loop: Loop) -> List[Read]:
    """Return the variables that the loop's condition and the conditions in it read, in order, each once."""
    tests = [node.test for node in ast.walk(loop) if isinstance(node, (ast.While, ast.If))]
    return list(dict.fromkeys(read for test in tests for read in _reads(test, "truth")))


def _reads(node: ast.expr, role: Role) -> Iterator[Read]:
    """Yield the variables that an expression reads; those of calls that are not known are left out."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _reads(value, role)
    elif isinstance(node, ast.UnaryOp):
        yield from _reads(node.operand, role)
    elif isinstance(node, ast.NamedExpr):
        yield from _reads(node.value, role)
    elif isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BinOp):
        yield from _reads(node.left, "compared")
        yield from _reads(node.right, "compared")
    elif isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.Subscript):
        yield from _reads(node.value, "contents")
    else:
        path = dotted(node)
        if path:
            yield Read(path, role)


def _compared(node: ast.Compare) -> Iterator[Read]:
    """Yield what a comparison reads: of ``x in items`` only the items."""
    if not isinstance(node.ops[0], (ast.In, ast.NotIn)):
        yield from _reads(node.left, "compared")
    for operator, side in zip(node.ops, node.comparators):
        yield from _reads(side, "contents" if isinstance(operator, (ast.In, ast.NotIn)) else "compared")


def _called(node: ast.Call) -> Iterator[Read]:
    func = node.func
    if isinstance(func, ast.Name) and func.id in _OF_CONTENTS and len(node.args) == 1:
        yield from _reads(node.args[0], "contents")
    elif isinstance(func, ast.Attribute) and func.attr in _LOOKS:
        yield from _reads(func.value, "contents")


def gives(loop: Loop) -> Tuple[FrozenSet[str], FrozenSet[str]]:
    """Return the last names of what a loop itself sets, and of what it calls a method of or sets an item of."""
    sets: Set[str] = set()
    changes: Set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            sets.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            sets.add(node.attr)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changes.update(dotted(node.value)[-1:])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _LOOKS:
            changes.update(dotted(node.func.value)[-1:])
    return frozenset(sets), frozenset(changes)
