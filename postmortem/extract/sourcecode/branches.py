"""Conditions that decide whether a line is reached, from syntax.

If processes of the same program stand at different lines, such a condition was true in one and false in another.
"""

from __future__ import annotations

import ast
import sys
from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

from ...evidence import Process

_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_MOST = 8


def of_ranks(processes: Iterable[Process]) -> Dict[str, Set[int]]:
    """Return file → lines of main threads, of processes that run the same program.

    Processes whose program runs only once are left out.
    """
    groups: Dict[Tuple[object, ...], List[Process]] = {}
    for process in processes:
        main = next((t for t in process.threads if t.is_main), None)
        if main is not None and main.python:
            groups.setdefault((process.exe, main.python[-1].file), []).append(process)
    found: Dict[str, Set[int]] = {}
    for group in groups.values():
        for process in group if len(group) > 1 else ():
            for thread in process.threads:
                for frame in thread.python if thread.is_main else ():
                    if frame.line is not None:
                        found.setdefault(frame.file, set()).add(frame.line)
    return found


def deciding(tree: ast.Module, lines: Iterable[int]) -> Dict[int, Tuple[int, ...]]:
    """Return line → lines of the `if` and `while` statements that it depends on, nearest first.

    These enclose the line, or precede it in the same function and leave that or a loop.
    """
    wanted = sorted(set(lines))
    found: Dict[int, Tuple[int, ...]] = {}
    for function in _functions(tree):
        first, last = getattr(function, "lineno", 0), getattr(function, "end_lineno", None) or sys.maxsize
        for line in wanted:
            if first <= line <= last:
                conditions = sorted(_conditions(function, line), reverse=True)[:_MOST]
                if conditions:
                    found[line] = tuple(conditions)  # inner functions come later and are more precise
    return found


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module, then its functions, outer ones first."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _conditions(function: ast.AST, line: int) -> Iterator[int]:
    waiting: List[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, (ast.If, ast.While)) and node.lineno < line:
            around = line <= (getattr(node, "end_lineno", None) or node.lineno)
            if around or (isinstance(node, ast.If) and _leaves(node)):
                yield node.lineno
        waiting.extend(ast.iter_child_nodes(node))


def _leaves(node: ast.If) -> bool:
    return any(isinstance(inner, _LEAVES) for statement in node.body for inner in _within(statement))


def _within(statement: ast.AST) -> Iterator[ast.AST]:
    waiting: List[Optional[ast.AST]] = [statement]
    while waiting:
        node = waiting.pop()
        if node is None or isinstance(node, _FUNCTIONS):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))
