"""Places where a program's sources make, fill or empty something, or keep an exception; from syntax, by name."""

from __future__ import annotations

import ast
from typing import Collection, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ...evidence import PythonFrame
from ...sourcepaths import is_program, is_stdlib
from ..ownership.acquires import Lines

_MOST_FILES, _MOST_PLACES = 40, 8
_FILLS = frozenset((
    "put", "put_nowait", "append", "appendleft", "extend", "add", "send", "send_nowait", "push", "submit", "write",
    "setdefault", "update", "insert",
))  # fmt: skip
_EMPTIES = frozenset(("get", "get_nowait", "pop", "popleft", "receive", "receive_nowait", "read"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_REPEATS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
#: Functions of asyncio, anyio and trio that schedule work on an event loop.
_SPAWNS = frozenset((
    "create_task", "ensure_future", "call_soon", "call_soon_threadsafe", "call_later", "call_at", "start_soon", "gather",
    "run_coroutine_threadsafe", "spawn",
))  # fmt: skip


class Places(NamedTuple):
    """Places that make, fill and empty a thing."""

    made: Tuple[PythonFrame, ...]
    filled: Tuple[PythonFrame, ...]
    emptied: Tuple[PythonFrame, ...]


class Usages:
    """The sources of one process; each file is parsed once."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._trees: Dict[str, Optional[ast.Module]] = {}

    def of(self, name: str, files: Iterable[str]) -> Places:
        """Return the uses of a variable or attribute with this name in these files, without the standard library."""
        found: Dict[str, List[PythonFrame]] = {"made": [], "filled": [], "emptied": []}
        noted: Set[Tuple[str, int]] = set()
        for file in [file for file in files if not is_stdlib(file)][:_MOST_FILES]:
            tree = self.tree(file)
            for node, function in nodes(tree) if tree is not None else ():
                what = _use(node, name)
                line = getattr(node, "lineno", 0)
                if what is not None and (file, line) not in noted and len(found[what]) < _MOST_PLACES:
                    noted.add((file, line))
                    found[what].append(PythonFrame(file, line, function))
        return Places(tuple(found["made"]), tuple(found["filled"]), tuple(found["emptied"]))

    def making(self, cls: str, files: Iterable[str]) -> Tuple[PythonFrame, ...]:
        """Return the places that make objects of a class with this name."""
        found: List[PythonFrame] = []
        for file in [file for file in dict.fromkeys(files) if is_program(file)][:_MOST_FILES]:
            tree = self.tree(file)
            for node, function in nodes(tree) if tree is not None else ():
                if isinstance(node, ast.Call) and _is_called(node.func, cls):
                    found.append(PythonFrame(file, node.lineno, function))
        return tuple(dict.fromkeys(found))[:_MOST_PLACES]

    def applying(
        self, name: Optional[str], operations: Collection[str], files: Iterable[str]
    ) -> Tuple[PythonFrame, ...]:
        """Return the places in plain functions, which any thread may call, that call one of these methods.

        ``name``: of the variable or attribute whose method it is; None for any.
        """
        found: List[PythonFrame] = []
        for file in [file for file in dict.fromkeys(files) if is_program(file)][:_MOST_FILES]:
            tree = self.tree(file)
            for call, function in _plain_calls(tree) if tree is not None else ():
                func = call.func
                if (
                    isinstance(func, ast.Attribute)
                    and func.attr in operations
                    and (name is None or _is_called(func.value, name))
                ):
                    found.append(PythonFrame(file, call.lineno, function))
        return tuple(dict.fromkeys(found))[:_MOST_PLACES]

    def spawning(self, files: Iterable[str]) -> Tuple[PythonFrame, ...]:
        """Return the places that make tasks or callbacks in a loop or comprehension."""
        found: List[PythonFrame] = []
        for file in [file for file in dict.fromkeys(files) if is_program(file)][:_MOST_FILES]:
            tree = self.tree(file)
            for node, function in nodes(tree) if tree is not None else ():
                if isinstance(node, _REPEATS) or _is_of_many(node):
                    found += [PythonFrame(file, line, function) for line in _spawns(node)]
        return tuple(dict.fromkeys(found))[:_MOST_PLACES]

    def handlers(self, file: str, line: int) -> Tuple[PythonFrame, ...]:
        """Return the places where the `except` clauses around a line keep the exception.

        They assign it, or pass it as an argument.
        """
        tree = self.tree(file)
        around: List[Tuple[ast.Try, str]] = []
        for node, function in nodes(tree) if tree is not None else ():
            if isinstance(node, ast.Try) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0):
                around.append((node, function))
        found = []
        for node, function in around[-2:]:
            for handler in node.handlers:
                lines = sorted({kept.lineno for kept in _keeping(handler)})
                found += [PythonFrame(file, number, function) for number in lines]
        return tuple(found[:_MOST_PLACES])

    def lines(self, file: str) -> List[str]:
        """Return a file's lines; empty if unavailable."""
        return self._lines(file) or []

    def tree(self, file: str) -> Optional[ast.Module]:
        """Return a file's syntax tree; None if unavailable or invalid."""
        if file not in self._trees:
            self._trees[file] = _parsed(self._lines(file))
        return self._trees[file]


def _plain_calls(tree: ast.Module) -> Iterator[Tuple[ast.Call, str]]:
    """Yield each call outside of coroutines with the name of its function."""
    waiting: List[Tuple[ast.AST, str]] = [(tree, "<module>")]
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Call):
            yield node, function
        waiting.extend((child, function) for child in reversed(list(ast.iter_child_nodes(node))))


def _spawns(repeated: ast.AST) -> Iterator[int]:
    """Yield lines of a loop or of a ``gather(*[…])`` that make a task or callback."""
    for node in ast.walk(repeated):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name in _SPAWNS:
                yield node.lineno


def _is_of_many(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(isinstance(argument, ast.Starred) for argument in node.args)


def _parsed(texts: Optional[List[str]]) -> Optional[ast.Module]:
    try:
        return ast.parse("\n".join(texts), filename="") if texts else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def last_name(way: str) -> str:
    """Return the last name of a path: ``jobs`` for ``Intake.jobs[…]``."""
    return way.replace("[…]", "").rsplit(".", 1)[-1]


def nodes(tree: ast.Module) -> Iterator[Tuple[ast.AST, str]]:
    """Yield each node with the name of its function or class, outer ones first."""
    waiting: List[Tuple[ast.AST, str]] = [(tree, "<module>")]
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            function = node.name
        yield node, function
        waiting.extend((child, function) for child in reversed(list(ast.iter_child_nodes(node))))


def _use(node: ast.AST, name: str) -> Optional[str]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Subscript) and _is_called(target, name) for target in targets):
            return "filled"
        made = isinstance(node.value, (ast.Call, ast.List, ast.Dict, ast.Set))
        return "made" if made and any(_is_called(target, name) for target in targets) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_called(node.func.value, name):
        return "filled" if node.func.attr in _FILLS else "emptied" if node.func.attr in _EMPTIES else None
    return None


def _is_called(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Subscript):
        node = node.value
    found = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
    return found == name


def _keeping(handler: ast.ExceptHandler) -> Iterator[ast.stmt]:
    """Yield the statements of an `except` clause that store its exception."""
    if handler.name is None:
        return
    for statement in ast.walk(handler):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            if _mentions(statement.value, handler.name):
                yield statement
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            keeps = isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS | {"set_exception"}
            if keeps and any(_mentions(argument, handler.name) for argument in call.args):
                yield statement


def _mentions(node: ast.AST, name: str) -> bool:
    """Return whether an expression keeps the exception: a tuple with it does, ``str(exc)`` does not."""
    if isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "type", "format")
        return not plain and any(_mentions(argument, name) for argument in node.args)
    if isinstance(node, ast.Attribute):
        return node.attr == "__traceback__" and _mentions(node.value, name)
    if isinstance(node, ast.JoinedStr):
        return False
    return (isinstance(node, ast.Name) and node.id == name) or any(
        _mentions(child, name) for child in ast.iter_child_nodes(node)
    )
