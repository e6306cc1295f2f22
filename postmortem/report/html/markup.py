"""HTML that is escaped on construction: every string is text, unless it is ``Markup``."""

from __future__ import annotations

import re
from html import escape as _escaped
from typing import Iterable, List, Optional, Union

from .. import escape

_LONG = 600  # characters of a paragraph shown at once
#: Most characters of one text from a diagnosed program, on the whole page.
MOST = 20_000
_VOID = frozenset(("meta", "br", "hr", "link"))
_INLINE = re.compile(r"(`[^`\n]{1,300}`|https?://[^\s<>\"'`]{1,500}[^\s<>\"'`.,;:)\]])")


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


Child = Union[str, Markup, None]


def text(value: str) -> Markup:
    """Escape a string for element text or attribute values; non-printable characters become visible escapes."""
    return Markup(_escaped(visible(value)))


def visible(value: str) -> str:
    """Return printable, bounded text: no direction marks, terminal sequences or lone surrogates."""
    if len(value) > MOST:
        value = f"{value[:MOST]}… ({len(value):,} characters in all)"
    return escape.clean(value)


def el(name: str, *children: Child, **attributes: Union[str, int, bool, None]) -> Markup:
    """Return an element.

    ``class_`` and ``data_x`` are the attributes ``class`` and ``data-x``; None and False omit an attribute.
    """
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
    """Join children into one Markup; strings are escaped."""
    return Markup("".join(c if isinstance(c, Markup) else text(c) for c in children if c is not None))


def name(value: str) -> Markup:
    """Return a name chosen by the program, with its reading direction isolated."""
    return el("bdi", value if len(value) <= _LONG else f"{value[:_LONG]}…", title=value if len(value) > _LONG else None)


def prose(value: str) -> Markup:
    """Return a sentence as HTML: text in backticks as code, web addresses as links."""
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
    """Return a link to a web address; any other reference is returned as text, since it might run something."""
    if not address.startswith(("https://", "http://")):
        return name(address)
    return el("a", address, href=address, rel="noreferrer noopener")


def block(tag: str, value: str, class_: Optional[str] = None) -> Markup:
    """Return a sentence as a block element; the rest of a very long one opens on request."""
    if len(value) <= _LONG:
        return el(tag, el("bdi", prose(value)), class_=class_)
    whole = el("details", el("summary", f"All {len(value):,} characters"), el("p", el("bdi", value)), class_="long")
    if tag in ("li", "dd", "div"):
        return el(tag, el("bdi", f"{value[:_LONG]}…"), whole, class_=class_)
    return join((el(tag, el("bdi", f"{value[:_LONG]}…"), class_=class_), whole))
