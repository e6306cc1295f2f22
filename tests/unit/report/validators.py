"""Is a report well-formed in its own format? One check a format; a format without one only has to be text."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Hashable, Iterator, Set, Tuple
from xml.etree import ElementTree

import jsonschema
import xmlschema
from markdown_it import MarkdownIt

from postmortem.report.machine import json_report

SCHEMAS = Path(__file__).parent / "schemas"
#: RFC 3986: what a URI reference may consist of.
_URI = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
#: @actions/toolkit reads a command so: its properties up to the first "::".
_COMMAND = re.compile(r"::(error|warning|notice) ([^:\n]*)::([^\r\n]*)")


def check(name: str, text: str) -> None:
    """Raises what the check of that format raises, AssertionError among it."""
    text.encode("utf-8")
    _CHECKS.get(name, _no_format)(text)


@functools.lru_cache(maxsize=None)
def schema(name: str) -> Any:
    """A validator for report.json or one of the published schemas."""
    loaded = json.loads(json_report.schema() if name == "report" else (SCHEMAS / name).read_text("utf-8"))
    kind = jsonschema.validators.validator_for(loaded)
    kind.check_schema(loaded)
    formats = jsonschema.FormatChecker(())
    for uri in ("uri", "uri-reference"):
        formats.checks(uri)(lambda value: not isinstance(value, str) or _URI.fullmatch(value) is not None)
    return kind(loaded, format_checker=formats)


@functools.lru_cache(maxsize=None)
def _junit() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


def markdown_tokens(text: str) -> Iterator[Any]:
    """Every token, inner ones too, as CommonMark with GitHub's tables, strikethrough and autolinks has them."""
    for token in MarkdownIt("gfm-like", {"html": True}).parse(text):
        yield token
        yield from token.children or ()


def _no_format(_text: str) -> None:
    """A format of which being text is all that is asked."""


def _markdown(text: str) -> None:
    assert len(text) < 65_536
    for token in markdown_tokens(text):
        assert token.type not in ("html_inline", "image", "table_open", "hr", "s_open", "blockquote_open"), token
        if token.type == "html_block":
            assert re.fullmatch(
                r"<details>\n<summary>[\w, ]+, with their stacks</summary>|</details>", token.content.strip()
            ), token.content


def _collapsed(text: str) -> None:
    for line in text.splitlines():
        assert re.fullmatch(r"[^;]+(;[^;]+)+ \d+", line), line


def _github(text: str) -> None:
    for line in text.splitlines():
        found = _COMMAND.fullmatch(line)
        assert found, line
        for pair in found.group(2).split(","):
            assert re.fullmatch(r"(file|line|endLine|col|endColumn|title)=[^:,\r\n]+", pair), line


def _junit_check(text: str) -> None:
    ElementTree.fromstring(text.encode("utf-8"))
    _junit().validate(text)


_CHECKS: Dict[str, Callable[[str], None]] = {
    "json": lambda text: schema("report").validate(json.loads(text)),
    "markdown": _markdown,
    "sarif": lambda text: schema("sarif-2.1.0.json").validate(json.loads(text)),
    "junit": _junit_check,
    "speedscope": lambda text: schema("speedscope.json").validate(json.loads(text)),
    "collapsed": _collapsed,
    "github": _github,
}


def thinned(value: Any, constrained: Set[str]) -> Any:
    """The same JSON with one of each shape in every list: to a schema that constrains types, and values of the keys that
    are named, it is valid when the whole is. A report of a thousand alike frames takes seconds else."""
    return _thinned(value, "", constrained)[0]


def _thinned(value: Any, key: str, constrained: Set[str]) -> Tuple[Any, Hashable]:
    """And what its shape is."""
    if isinstance(value, dict):
        found = {name: _thinned(item, name, constrained) for name, item in value.items()}
        return {name: item for name, (item, _) in found.items()}, tuple((name, found[name][1]) for name in found)
    if isinstance(value, list):
        kept = {shape: item for item, shape in (_thinned(item, key, constrained) for item in value)}
        return list(kept.values()), frozenset(kept)
    return value, (type(value).__name__, value if key in constrained else None)


def constrained_keys(schema: Any) -> Set[str]:
    """Names of properties of which a schema says more than the type."""
    found: Set[str] = set()
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            for name, rule in part.get("properties", {}).items():
                if any(word in json.dumps(rule) for word in ('"enum"', '"const"', '"pattern"', '"minimum"')):
                    found.add(name)
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return found
