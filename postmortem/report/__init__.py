"""Renderers: a diagnosis in, text out. One format a file; this table is how the others find them."""

from __future__ import annotations

from pathlib import PurePath
from typing import Callable, Dict, NamedTuple, Sequence, Tuple

from ..evidence import Evidence
from ..findings import Diagnosis

Result = Tuple[str, Evidence, Diagnosis]  # the target as the user named it, and what was found


class NothingToShow(Exception):
    """The evidence has nothing of what a format is about; the sentence says what is missing, and how to get it."""


class Format(NamedTuple):
    """``render(evidence, diagnosis, color, width)`` gives the whole report; formats may ignore the last two.

    ``render_many`` does the same for the results of several targets. Both may raise NothingToShow.
    """

    name: str
    suffix: str  # of files; "": it is for streams alone
    render: Callable[[Evidence, Diagnosis, bool, int], str]
    render_many: Callable[[Sequence[Result], bool, int], str]
    also: Tuple[str, ...] = ()  # other suffixes that mean it
    kept: bool = True  # is it written into each bundle?

    @property
    def suffixes(self) -> Tuple[str, ...]:
        return tuple(filter(None, (self.suffix, *self.also)))


# A renderer is imported when it renders: whoever only checks a format's name should not wait for all of them.
def _text(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import text  # noqa: PLC0415

    return text.render(evidence, diagnosis, color=color, width=width)


def _text_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import text  # noqa: PLC0415

    return text.render_many(results, color=color, width=width)


def _json(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import json_report  # noqa: PLC0415

    return json_report.render(evidence, diagnosis)


def _json_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import json_report  # noqa: PLC0415

    return json_report.render_many([(evidence, diagnosis) for _, evidence, diagnosis in results])


def _markdown(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import markdown  # noqa: PLC0415

    return markdown.render(evidence, diagnosis)


def _markdown_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import markdown  # noqa: PLC0415

    return markdown.render_many(results)


def _html(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from .html import page  # noqa: PLC0415

    return page.render(evidence, diagnosis)


def _html_many(results: Sequence[Result], color: bool, width: int) -> str:
    from .html import page  # noqa: PLC0415

    return page.render_many(results)


def _sarif(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import sarif  # noqa: PLC0415

    return sarif.render(evidence, diagnosis)


def _sarif_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import sarif  # noqa: PLC0415

    return sarif.render_many(results)


def _junit(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import junit  # noqa: PLC0415

    return junit.render(evidence, diagnosis)


def _junit_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import junit  # noqa: PLC0415

    return junit.render_many(results)


def _speedscope(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import speedscope  # noqa: PLC0415

    return speedscope.render(evidence)


def _speedscope_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import speedscope  # noqa: PLC0415

    return speedscope.render_many(results)


def _collapsed(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import collapsed  # noqa: PLC0415

    return collapsed.render(evidence)


def _collapsed_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import collapsed  # noqa: PLC0415

    return collapsed.render_many(results)


def _github(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import github  # noqa: PLC0415

    return github.render(evidence, diagnosis)


def _github_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import github  # noqa: PLC0415

    return github.render_many(results)


FORMATS: Dict[str, Format] = {
    "text": Format("text", ".txt", _text, _text_many),
    "json": Format("json", ".json", _json, _json_many),
    "markdown": Format("markdown", ".md", _markdown, _markdown_many),
    "html": Format("html", ".html", _html, _html_many),
    "sarif": Format("sarif", ".sarif", _sarif, _sarif_many, also=(".sarif.json",), kept=False),
    "junit": Format("junit", ".xml", _junit, _junit_many, kept=False),
    "speedscope": Format("speedscope", ".speedscope.json", _speedscope, _speedscope_many, kept=False),
    "collapsed": Format("collapsed", ".collapsed", _collapsed, _collapsed_many, also=(".folded",), kept=False),
    "github": Format("github", "", _github, _github_many, kept=False),
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
