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
_LockCall = Tuple[int, Tuple[str, ...], str]  # line, what, "acquire" | "release"


class Acquire(NamedTuple):
    line: int
    path: Tuple[str, ...]  # ("self", "_lock")


class Acquires:
    """Answers for frames; every source file is parsed once, every place in it looked at once: threads are many,
    the lines where they stand are few."""

    def __init__(self, frames: Frames, lines: Lines) -> None:
        self._frames = frames
        self._lines = lines
        self._functions: Dict[str, List[_Function]] = {}
        self._calls: Dict[Tuple[int, int], List[_LockCall]] = {}

    def of(self, frame: Frame) -> Iterator[Tuple[int, int]]:
        """(line, address) of what the function of a frame has acquired, and not released, before its current line."""
        for acquire in still_held(self._calls_before(frame)):
            address = self._resolve(frame, acquire.path)
            if address is not None:
                yield acquire.line, address

    def released(self, frame: Frame) -> Iterator[int]:
        """Addresses of what the function of a frame has released before its current line, whatever came after."""
        for _line, path, name in self._calls_before(frame):
            address = self._resolve(frame, path) if name == "release" else None
            if address is not None:
                yield address

    def _calls_before(self, frame: Frame) -> List[_LockCall]:
        line = frame.line
        if line is None:
            return []
        place = (frame.code.address, line)
        if place not in self._calls:
            function = self._function(frame, line)
            self._calls[place] = sorted(lock_calls(function, line)) if function is not None else []
        return self._calls[place]

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


def still_held(calls: List[_LockCall]) -> List[Acquire]:
    """The acquires among the calls that have run, in their order, without those that a release has undone."""
    held: List[Acquire] = []
    for number, path, name in calls:
        if name == "acquire":
            held.append(Acquire(number, path))
        else:
            held = [a for a in held if a.path != path]
    return held


def lock_calls(function: _Function, line: int) -> Iterator[_LockCall]:
    """The calls before a line that have run. A release in the `finally` or `except` of a `try` around the line has not
    run yet."""
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
