"""Source lines around a place, as far as the evidence contains them, coloured by Pygments on request."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ...evidence import Evidence
from ...findings import Culprit
from .. import escape
from .page import Page
from .underline import Span, marks

_CONTEXT = 1  # lines before and after, if available


def source_lines(evidence: Evidence, file: str, line: Optional[int], known: Optional[str]) -> List[Tuple[int, str]]:
    """Return (line number, text) of a place and its neighbours.

    ``known``: the text of the line itself, used if the evidence lacks it.
    """
    if line is None:
        return []
    held = evidence.sources.get(file, {})
    middle = held.get(line, known)
    if middle is None:
        return []
    around = range(line - _CONTEXT, line + _CONTEXT + 1)
    texts = {**held, line: middle}
    return [
        (number, texts[number]) for number in around if number in texts and (number == line or texts[number].strip())
    ]


def of_culprit(evidence: Evidence, culprit: Culprit) -> Tuple[List[Tuple[int, str]], Span]:
    """Return the source lines of a place to change, and the span of its current expression."""
    lines = source_lines(evidence, culprit.file, culprit.line, culprit.source)
    return lines, Span(culprit.line, culprit.end_line, culprit.column, culprit.end_column)


def show(page: Page, lines: List[Tuple[int, str]], marked: int, indent: int, span: Optional[Span] = None) -> None:
    """Print numbered source lines without their common indentation.

    The marked line is preceded by ``>``; marks under it show its current expression.
    """
    if not lines:
        return
    texts = [text.rstrip("\r\n").expandtabs(4) for _, text in lines]
    common = min((len(text) - len(text.lstrip(" ")) for text in texts if text.strip()), default=0)
    digits = max(len(str(number)) for number, _ in lines)
    room = page.width - indent - digits - 4

    def printed(beginning: str) -> str:
        return escape.clean(beginning.expandtabs(4)[common:])

    for (number, raw), text in zip(lines, texts):
        shown = escape.cut(escape.clean(text[common:]), room)
        mark = page.style(">", "red", "bold") if number == marked else " "
        gutter = page.style(f"{number:>{digits}}", "dim")
        page.rendered(f"{mark} {gutter}  {_colored(shown) if page.color else shown}", indent)
        if number == marked and span is not None:
            under = marks(raw.rstrip("\r\n"), span, printed)[:room]
            if under.strip():
                page.rendered(page.style(f"{' ' * (digits + 4)}{under}", "red"), indent)


def _colored(code: str) -> str:
    # Imported here: Pygments takes some 30 ms, and CI logs have no colour.
    from pygments import highlight  # noqa: PLC0415
    from pygments.formatters.terminal import TerminalFormatter  # noqa: PLC0415
    from pygments.lexers.python import PythonLexer  # noqa: PLC0415

    return highlight(code, PythonLexer(stripnl=False, ensurenl=False), TerminalFormatter()).rstrip("\n")
