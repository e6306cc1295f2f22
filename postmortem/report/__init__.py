"""Renderers: a diagnosis in, text out. One format a file; this table is how the others find them."""

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
    """``render(evidence, diagnosis, color, width)`` gives the whole report; formats may ignore the last two.

    ``render_many`` does the same for the results of several targets. Both may raise NothingToShow.
    """

    name: str
    suffix: str  # of files; "": it is for streams alone
    render: One
    render_many: Many
    also: Tuple[str, ...] = ()  # other suffixes that mean it
    kept: bool = True  # is it written into each bundle?

    @property
    def suffixes(self) -> Tuple[str, ...]:
        return tuple(filter(None, (self.suffix, *self.also)))


# A renderer is imported when it renders: whoever only checks a format's name should not wait for all of them.
def _plain(module: str, printed: Callable[[str], str] = str) -> Tuple[One, Many]:
    """The renderers of a module that has ``render(evidence, diagnosis)`` and ``render_many(results)``. ``printed`` sees the
    whole: names that are harmless each may be an order to a CI runner where they meet. JSON sees to that itself."""

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
    """The format of that name. Raises ValueError with one sentence that lists the ones there are."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"no format {name!r}; there are: {', '.join(FORMATS)}") from None


def format_for(path: str) -> Format:
    """The format that follows from the end of a file's name, the longest that fits. Raises ValueError as
    :func:`format_named` does."""
    name = PurePath(path).name
    fitting = {suffix: known for known in FORMATS.values() for suffix in known.suffixes if name.endswith(suffix)}
    longest = max(fitting, key=len, default="")
    if longest and name != longest:  # `.json` alone is a hidden file without a suffix
        return fitting[longest]
    ways = ", ".join(f"{' or '.join(known.suffixes)} ({known.name})" for known in FORMATS.values() if known.suffix)
    raise ValueError(f"no format for the suffix of {path!r}; there are: {ways}")


def render(name: str, evidence: Evidence, diagnosis: Diagnosis, *, color: bool = False, width: int = 80) -> str:
    """The report in the named format. Raises ValueError for an unknown name, NothingToShow as the format does."""
    return format_named(name).render(evidence, diagnosis, color, width)
