"""HTML that is escaped where it is made: every string is text, unless it is ``Markup``."""

from __future__ import annotations

import re
from html import escape as _escaped
from typing import Iterable, List, Optional, Union

from .. import escape

_LONG = 600  # characters of a paragraph that stand there at once
#: Of one text from a diagnosed program, in the whole page.
MOST = 20_000
_VOID = frozenset(("meta", "br", "hr", "link"))
_INLINE = re.compile(r"(`[^`\n]{1,300}`|https?://[^\s<>\"'`]{1,500}[^\s<>\"'`.,;:)\]])")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Union[str, Markup, None]


def text(value: str) -> Markup:
    """As text of an element or value of an attribute. What is not printable becomes a visible escape."""
    return Markup(_escaped(visible(value)))


def visible(value: str) -> str:
    """Without marks that reverse the reading direction, terminal sequences, lone surrogates; bounded."""
    if len(value) > MOST:
        value = f"{value[:MOST]}… ({len(value):,} characters in all)"
    return escape.clean(value)


def el(name: str, *children: Child, **attributes: Union[str, int, bool, None]) -> Markup:
    """An element. ``class_`` and ``data_x`` stand for the attributes ``class`` and ``data-x``; False and None leave one out."""
    parts: List[str] = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = key.rstrip("_").replace("_", "-")
        parts.append(spelled if value is True else f'{spelled}="{text(str(value))}"')
    if name in _VOID:
        return Markup(f"<{' '.join(parts)}>")
    return Markup(f"<{' '.join(parts)}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    return Markup("".join(c if isinstance(c, Markup) else text(c) for c in children if c is not None))


def name(value: str) -> Markup:
    """A name that the program chose: its reading direction stays inside of it."""
    return el("bdi", value if len(value) <= _LONG else f"{value[:_LONG]}…", title=value if len(value) > _LONG else None)


def prose(value: str) -> Markup:
    """A sentence: what stands in backticks as code, addresses as links."""
    parts: List[Child] = []
    for number, piece in enumerate(_INLINE.split(value)):
        if number % 2 == 0:
            parts.append(piece)
        elif piece.startswith("`"):
            parts.append(el("code", piece[1:-1]))
        else:
            parts.append(link(piece))
    return join(parts)


def link(address: str) -> Markup:
    """Only the web's: a reference is a string like any other, and may have been made to run something."""
    if not address.startswith(("https://", "http://")):
        return name(address)
    return el("a", address, href=address, rel="noreferrer noopener")


def block(tag: str, value: str, class_: Optional[str] = None) -> Markup:
    """A sentence in a block of its own; of a very long one the rest opens on request."""
    if len(value) <= _LONG:
        return el(tag, el("bdi", prose(value)), class_=class_)
    whole = el("details", el("summary", f"All {len(value):,} characters"), el("p", el("bdi", value)), class_="long")
    if tag in ("li", "dd", "div"):
        return el(tag, el("bdi", f"{value[:_LONG]}…"), whole, class_=class_)
    return join((el(tag, el("bdi", f"{value[:_LONG]}…"), class_=class_), whole))
