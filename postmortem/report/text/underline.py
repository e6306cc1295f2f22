"""Marks under a source line that show its current expression, in the style of Python's own tracebacks.

``~`` marks the expression; ``^`` its active part: an operator, or the brackets of a call or subscript; without such a
part, ``^`` marks all of it. Nothing is drawn if the expression is the whole line.
"""

from __future__ import annotations

import ast
import warnings
from typing import Callable, NamedTuple, Optional, Tuple

from .. import escape


class Span(NamedTuple):
    """The position of an expression. Columns are bytes of the line's UTF-8, from 0; lines count from 1."""

    line: Optional[int]
    end_line: Optional[int]
    column: Optional[int]
    end_column: Optional[int]


def marks(text: str, span: Span, shown: Callable[[str], str]) -> str:
    """Return the line of marks for a source line, "" if there are none.

    ``shown`` maps a beginning of the line to its printed form: without the common indentation, tabs widened, escaped.
    """
    found = _characters(text, span)
    if found is None:
        return ""
    start, end = found
    inner = _at_work(text[start:end])
    at = [escape.columns(shown(text[:position])) for position in (start, end)]
    drawn = " " * at[0] + ("~" if inner else "^") * (at[1] - at[0])
    if inner:
        first, last = (escape.columns(shown(text[: start + position])) for position in inner)
        drawn = drawn[:first] + "^" * (last - first) + drawn[last:]
    return drawn


def _characters(text: str, span: Span) -> Optional[Tuple[int, int]]:
    """Return the span in characters of the line; None if unknown, or if it is the whole line."""
    if span.column is None or span.line is None:
        return None
    raw = text.encode("utf-8", "backslashreplace")
    stop = len(raw)
    if span.end_line == span.line:
        if span.end_column is None:
            return None
        stop = span.end_column
    if not 0 <= span.column < stop <= len(raw):
        return None  # the source has changed since
    start, end = (len(raw[:position].decode("utf-8", "replace")) for position in (span.column, stop))
    end = len(text[:end].rstrip())
    code = text.split("#", maxsplit=1)[0] if "'" not in text and '"' not in text else text
    return (start, end) if start < end and text[start:end] != code.strip() else None


def _at_work(segment: str) -> Optional[Tuple[int, int]]:
    """Return the active part of an expression, in characters: the operator, or the brackets with their content."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the program's code are not ours to show
            tree = ast.parse(f"({segment})", filename="")  # await is valid outside functions for the parser
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    body = tree.body[0] if tree.body else None
    node = body.value if isinstance(body, ast.Expr) else None
    while isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.BinOp):
        left, right = _end(node.left, segment), _begin(node.right, segment)
        between = segment[left:right]
        operator = between.strip(" ()\t\\")
        at = left + between.find(operator)
        return (at, at + len(operator)) if operator and "#" not in operator else None
    if isinstance(node, (ast.Call, ast.Subscript)):
        first = _end(node.func if isinstance(node, ast.Call) else node.value, segment)
        return first, _end(node, segment)
    return None


def _begin(node: ast.expr, segment: str) -> int:
    """Return a node's start in characters; ast counts bytes, including the bracket added before the segment."""
    return len(segment.encode()[: node.col_offset - 1].decode("utf-8", "replace"))


def _end(node: ast.expr, segment: str) -> int:
    """Return a node's end in characters."""
    return len(segment.encode()[: (node.end_col_offset or 1) - 1].decode("utf-8", "replace"))
