"""Redaction of source lines that contain secrets.

Only string literals and comments are masked, with a ``*`` for each byte: columns, and with them the marks under the
running expression, stay correct. A literal is a secret by the name before it (``password = "X"``, ``token="X"``,
``{"api_key": "X"}``, ``environ.get("TOKEN", "X")``), also at the end of the line before, or by its content.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List, Sequence

from .secrets import MASK, is_secret, secrets_in

_LITERAL = re.compile(
    r"(?P<prefix>(?<!\w)[rRbBuUfF]{1,2}|)(?P<quote>\"\"\"|'''|\"|')"
    r"(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P<end>(?P=quote)|$)|(?P<comment>\#.*)",
    re.S,
)
#: The name that a literal right after this text belongs to.
_NAME = re.compile(
    r"(?:(?P<quoted>\w{1,100})[\"']\s{0,9}\]?\s{0,9}(?:==?|!=|:|,|\bin)"
    r"|(?P<bare>\w{1,100})\s{0,9}(?:==?|!=|:=|\(|\bin|:\s{0,9}[\w.\[\], |]{1,80}=))[\s(\[\\]{0,40}$"
)
_PLACEHOLDER = re.compile(r"[%{$<\\*]")
_BEFORE = 200


def _nobody(secret: str) -> None:
    """Ignore a secret."""


def masked_lines(lines: Sequence[str], seen: Callable[[str], None] = _nobody) -> List[str]:
    """Mask consecutive lines, each keeping its length in UTF-8 bytes.

    ``seen`` is called with secrets recognised by their form; not with literals, which may be ordinary words.
    """
    result, before = [], ""
    for line in lines:
        result.append(_masked_line(line, before, seen))
        before = line
    return result


def masked_sources(sources: Dict[str, Dict[int, str]]) -> Dict[str, Dict[int, str]]:
    """Mask file → line number → text; return the same object when there is nothing to mask."""
    changed: Dict[str, Dict[int, str]] = {}
    for file, lines in sources.items():
        shown = {n: _masked_line(text, lines.get(n - 1, ""), _nobody) for n, text in lines.items()}
        if shown != lines:
            changed[file] = shown
    return {**sources, **changed} if changed else sources


def _masked_line(line: str, before: str, seen: Callable[[str], None]) -> str:
    if '"' not in line and "'" not in line and "#" not in line:
        return line
    parts, at = [], 0
    for literal in _LITERAL.finditer(line):
        if literal["comment"] is not None:
            first, last = literal.span("comment")
            named = False
        else:
            first, last = literal.span("text")
            named = _is_named(line[: literal.start()], before)
        text = line[first:last]
        parts += [line[at:first], _starred(text, named, "f" in (literal["prefix"] or "").lower(), seen)]
        at = last
    return "".join([*parts, line[at:]])


def _is_named(text: str, before: str) -> bool:
    """Return whether a secret's name precedes a literal; for one that begins a line, at the end of the line before."""
    found = _NAME.search((text if text.strip() else before.rstrip())[-_BEFORE:])
    return found is not None and is_secret(found["quoted"] or found["bare"])


def _starred(text: str, named: bool, is_format: bool, seen: Callable[[str], None]) -> str:
    if named and not is_secret_name(text):
        return (
            re.sub(r"\{[^{}]*\}|[^{]+|\{", lambda m: m[0] if m[0][0] == "{" else _stars(m[0]), text)
            if is_format
            else _stars(text)
        )
    parts, at = [], 0
    for first, last in secrets_in(text):
        secret = text[first:last]
        hidden = not _PLACEHOLDER.match(secret)
        parts += [text[at:first], _stars(secret) if hidden else secret]
        at = last
        if hidden:
            seen(secret)
    return "".join([*parts, text[at:]])


def is_secret_name(text: str) -> bool:
    """Return whether a text is itself a secret's name, not its value: ``("password", "token")``."""
    return text.isidentifier() and is_secret(text)


def _stars(text: str) -> str:
    return text if text == MASK else "*" * len(text.encode("utf-8", "backslashreplace"))
