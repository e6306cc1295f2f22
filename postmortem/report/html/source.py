"""Source lines, tokenised by Pygments at rendering time and coloured by a few CSS classes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, List, Sequence, Tuple

from pygments.lexers.python import PythonLexer
from pygments.token import Token

from ..text.underline import Span, marks
from .markup import Child, Markup, el, join, visible

Piece = Tuple[str, str]  # class ("" for none), text

_CLASSES = (
    (Token.Comment, "c"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "n"),
    (Token.Name.Decorator, "d"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Exception, "b"),
)
_WIDEST = 400  # most characters of a line that is coloured
_END = Markup("\n")
_lexer = PythonLexer(stripnl=False, ensurenl=False)


def pieces(line: str) -> List[Piece]:
    """Return the coloured pieces of a line; neighbours of the same class are merged."""
    shown = visible(line.rstrip("\r\n").expandtabs(4))
    if len(shown) > _WIDEST:
        return [("", shown)]
    return list(_pieces(shown))


@lru_cache(maxsize=4096)
def _pieces(shown: str) -> Sequence[Piece]:
    found: List[Piece] = []
    for token, value in _lexer.get_tokens(shown):
        known = _class(token)
        if found and (found[-1][0] == known or not value.strip()):
            found[-1] = (found[-1][0], found[-1][1] + value)
        elif value:
            found.append((known, value))
    return tuple(found)


def _class(token: Any) -> str:
    return next((known for kind, known in _CLASSES if token in kind), "")


def listing(lines: Sequence[Tuple[int, str]], marked: int, span: Span) -> Markup:
    """Return numbered lines without their common indentation; under the marked line, its current expression."""
    widened = [text.rstrip("\r\n").expandtabs(4) for _number, text in lines]
    common = min((len(text) - len(text.lstrip(" ")) for text in widened if text.strip()), default=0)
    digits = max(len(str(number)) for number, _text in lines)

    def shown(beginning: str) -> str:
        return visible(beginning.expandtabs(4)[common:])

    rows: List[Child] = []
    for (number, raw), text in zip(lines, widened):
        here = number == marked
        code = join(el("span", value, class_=known) if known else value for known, value in pieces(text[common:]))
        gutter = el("span", f"{number:>{digits}}", class_="number")
        rows.append(el("span", gutter, code, _END, class_="line here" if here else "line"))
        under = marks(raw.rstrip("\r\n"), span, shown) if here else ""
        if under.strip():
            rows.append(el("span", el("span", " " * digits, class_="number"), under, _END, class_="line marks"))
    return el(
        "pre",
        el("code", *rows),
        class_="source",
        tabindex="0",
        aria_label=f"source around line {marked}",
        role="region",
    )
