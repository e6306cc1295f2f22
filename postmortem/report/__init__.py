"""Renderers: a diagnosis in, text out. Each format is a module; this table finds them."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import Callable, Dict, NamedTuple, Sequence, Tuple

from .. import runners
from ..evidence import Evidence
from ..findings import Diagnosis
from .result import NothingToShow, Result

__all__ = ["FORMATS", "Format", "NothingToShow", "Result", "format_for", "format_named", "render"]

One = Callable[[Evidence, Diagnosis, bool, int], str]
Many = Callable[[Sequence[Result], bool, int], str]


class Format(NamedTuple):
    """A report format.

    ``render(evidence, diagnosis, color, width)`` returns the whole report; formats may ignore the last two arguments.
    ``render_many`` does the same for the results of several targets. Both may raise NothingToShow.
    """

    name: str
    suffix: str  # of files; "": for streams only
    render: One
    render_many: Many
    also: Tuple[str, ...] = ()  # other suffixes of the same format
    kept: bool = True  # True: written into each bundle

    @property
    def suffixes(self) -> Tuple[str, ...]:
        """Return every file suffix of the format."""
        return tuple(filter(None, (self.suffix, *self.also)))


# Renderers are imported on use: checking a format's name should not load all of them.
def _plain(module: str, printed: Callable[[str], str] = str) -> Tuple[One, Many]:
    """Return the renderers of a module with ``render(evidence, diagnosis)`` and ``render_many(results)``.

    ``printed`` is applied to the whole text, because names that are harmless alone may together be a command to a CI
    runner. JSON is escaped by its own module.
    """

    def one(evidence: Evidence, diagnosis: Diagnosis, _color: bool, _width: int) -> str:
        return printed(import_module(module, __package__).render(evidence, diagnosis))

    def many(results: Sequence[Result], _color: bool, _width: int) -> str:
        return printed(import_module(module, __package__).render_many(results))

    return one, many


def _text(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from .text import textreport  # noqa: PLC0415

    return runners.defused(textreport.render(evidence, diagnosis, color=color, width=width))


def _text_many(results: Sequence[Result], color: bool, width: int) -> str:
    from .text import textreport  # noqa: PLC0415

    return runners.defused(textreport.render_many(results, color=color, width=width))


FORMATS: Dict[str, Format] = {
    "text": Format("text", ".txt", _text, _text_many),
    "json": Format("json", ".json", *_plain(".machine.json_report")),
    "markdown": Format("markdown", ".md", *_plain(".text.markdown", runners.defused)),
    "html": Format("html", ".html", *_plain(".html.page", runners.inside)),
    "sarif": Format("sarif", ".sarif", *_plain(".machine.sarif"), also=(".sarif.json",), kept=False),
    "junit": Format("junit", ".xml", *_plain(".machine.junit", runners.defused), kept=False),
    "speedscope": Format("speedscope", ".speedscope.json", *_plain(".machine.speedscope"), kept=False),
    "collapsed": Format(
        "collapsed", ".collapsed", *_plain(".machine.collapsed", runners.defused), also=(".folded",), kept=False
    ),
    "github": Format("github", "", *_plain(".machine.github", runners.inside), kept=False),
}


def format_named(name: str) -> Format:
    """Return the format of a name; raise ValueError, listing the formats, if unknown."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"no format {name!r}; there are: {', '.join(FORMATS)}") from None


def format_for(path: str) -> Format:
    """Return the format with the longest suffix that matches a file's name.

    Raises ValueError, listing the suffixes, if none does.
    """
    name = PurePath(path).name
    fitting = {suffix: known for known in FORMATS.values() for suffix in known.suffixes if name.endswith(suffix)}
    longest = max(fitting, key=len, default="")
    if longest and name != longest:  # `.json` alone is a hidden file without a suffix
        return fitting[longest]
    ways = ", ".join(f"{' or '.join(known.suffixes)} ({known.name})" for known in FORMATS.values() if known.suffix)
    raise ValueError(f"no format for the suffix of {path!r}; there are: {ways}")


def render(name: str, evidence: Evidence, diagnosis: Diagnosis, *, color: bool = False, width: int = 80) -> str:
    """Render a report in the named format.

    Raises ValueError for an unknown name, and NothingToShow if the evidence has nothing for the format.
    """
    return format_named(name).render(evidence, diagnosis, color, width)
