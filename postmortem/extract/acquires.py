"""Locks taken by a plain ``x.acquire()`` further up in a function that still runs: read from its source.

Nothing in memory says who called ``acquire``. But when a frame stands at a line of a function whose source, before that
line, acquires a lock that is locked now, and does not release it on the way, that frame is very likely its holder. This
is an inference, and is marked as one.
"""

from __future__ import annotations

import ast
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..cpython.attributes import attribute
from ..cpython.frames import Frame, Frames
from ..cpython.objects import NotThat
from ..memory import Fault

Lines = Callable[[str], Optional[List[str]]]
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Acquire(NamedTuple):
    line: int
    path: Tuple[str, ...]  # ("self", "_lock")


class Acquires:
    """Answers for frames; every source file is parsed once."""

    def __init__(self, frames: Frames, lines: Lines) -> None:
        self._frames = frames
        self._lines = lines
        self._functions: Dict[str, List[_Function]] = {}

    def of(self, frame: Frame) -> Iterator[Tuple[int, int]]:
        """(line, address) of what the function of a frame has acquired, and not released, before its current line."""
        line = frame.line
        function = self._function(frame, line) if line is not None else None
        if function is None or line is None:
            return
        for acquire in still_held(function, line):
            address = self._resolve(frame, acquire.path)
            if address is not None:
                yield acquire.line, address

    def released(self, frame: Frame) -> Iterator[int]:
        """Addresses of what the function of a frame has released before its current line, whatever came after."""
        line = frame.line
        function = self._function(frame, line) if line is not None else None
        if function is None or line is None:
            return
        for _line, path, name in _lock_calls(function, line):
            address = self._resolve(frame, path) if name == "release" else None
            if address is not None:
                yield address

    def _function(self, frame: Frame, line: int) -> Optional[_Function]:
        file = frame.code.filename
        if file not in self._functions:
            self._functions[file] = list(_functions(self._lines(file)))
        around = [
            f for f in self._functions[file]
            if f.name == frame.function and f.lineno <= line <= (getattr(f, "end_lineno", None) or f.lineno)
        ]  # fmt: skip
        return max(around, key=lambda f: f.lineno, default=None)

    def _resolve(self, frame: Frame, path: Tuple[str, ...]) -> Optional[int]:
        """The object that a dotted name means in a frame: a local or a global, then attributes."""
        value = self._frames.local(frame, path[0])
        namespace = self._frames.globals(frame) if value is None else None
        try:
            if namespace:
                value = self._frames.objects.lookup(namespace, path[0])
            for name in path[1:]:
                value = attribute(self._frames.objects, value, name) if value else None
        except (Fault, NotThat):
            return None
        return value


def _functions(texts: Optional[List[str]]) -> Iterator[_Function]:
    if texts is None:
        return
    try:
        tree = ast.parse("\n".join(texts))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def still_held(function: _Function, line: int) -> List[Acquire]:
    """Acquires of a function before a line, without those that a release on the way has undone. A release in the
    `finally` or `except` of a `try` around the line has not run yet."""
    held: List[Acquire] = []
    for number, path, name in sorted(_lock_calls(function, line)):
        if name == "acquire":
            held.append(Acquire(number, path))
        else:
            held = [a for a in held if a.path != path]
    return held


def _lock_calls(function: _Function, line: int) -> Iterator[Tuple[int, Tuple[str, ...], str]]:
    """(line, what, "acquire" | "release") of the calls before a line that have run."""
    waiting: List[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.lineno < line:
            path = _dotted(node.func.value)
            if path and node.func.attr in ("acquire", "release"):
                yield node.lineno, path, node.func.attr
        if isinstance(node, ast.Try) and any(_holds_line(child, line) for child in node.body):
            waiting.extend(node.body)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _holds_line(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (getattr(node, "end_lineno", None) or node.lineno)


def _dotted(node: ast.AST) -> Tuple[str, ...]:
    names: List[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()
