"""Marks under a source line that tell which expression of it runs, as Python's own tracebacks draw them.

``~`` stands under the expression; ``^`` under what of it was at work: an operator, the brackets of a call or of a
subscript; without such a part ``^`` stands under all of it. Nothing is drawn where the expression is the whole line.
"""

from __future__ import annotations

import ast
import warnings
from typing import Callable, NamedTuple, Optional, Tuple

from .. import escape


class Span(NamedTuple):
    """Where an expression stands. Columns are bytes of the line's UTF-8, from 0 on; lines count from 1."""

    line: Optional[int]
    end_line: Optional[int]
    column: Optional[int]
    end_column: Optional[int]


def marks(text: str, span: Span, shown: Callable[[str], str]) -> str:
    """The line of marks for a source line, "" where none is to be drawn.

    ``shown`` makes what is printed of the line's beginnings: without the common indentation, tabs widened, escaped.
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
    """The part of the line in characters; None when unknown, or when it is all there is on the line."""
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
    """Of an expression, in characters of it: the operator, or the brackets with what is in them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other people's code
            tree = ast.parse(f"({segment})", filename="")  # awaits stand in functions, but the parser does not mind
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
    """Positions of ast are bytes, and count the bracket that was put before the segment."""
    return len(segment.encode()[: node.col_offset - 1].decode("utf-8", "replace"))


def _end(node: ast.expr, segment: str) -> int:
    return len(segment.encode()[: (node.end_col_offset or 1) - 1].decode("utf-8", "replace"))
