"""Renderers: a diagnosis in, text out. One format a file; this table is how the others find them."""

from __future__ import annotations

from pathlib import PurePath
from typing import Callable, Dict, NamedTuple, Sequence, Tuple

from ..evidence import Evidence
from ..findings import Diagnosis

Result = Tuple[str, Evidence, Diagnosis]  # the target as the user named it, and what was found


class Format(NamedTuple):
    """``render(evidence, diagnosis, color, width)`` gives the whole report; formats may ignore the last two.

    ``render_many`` does the same for the results of several targets.
    """

    name: str
    suffix: str
    render: Callable[[Evidence, Diagnosis, bool, int], str]
    render_many: Callable[[Sequence[Result], bool, int], str]


# A renderer is imported when it renders: whoever only checks a format's name should not wait for all of them.
def _text(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import text  # noqa: PLC0415

    return text.render(evidence, diagnosis, color=color, width=width)


def _json(evidence: Evidence, diagnosis: Diagnosis, color: bool, width: int) -> str:
    from . import json_report  # noqa: PLC0415

    return json_report.render(evidence, diagnosis)


def _text_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import text  # noqa: PLC0415

    return text.render_many(results, color=color, width=width)


def _json_many(results: Sequence[Result], color: bool, width: int) -> str:
    from . import json_report  # noqa: PLC0415

    return json_report.render_many([(evidence, diagnosis) for _, evidence, diagnosis in results])


FORMATS: Dict[str, Format] = {
    "text": Format("text", ".txt", _text, _text_many),
    "json": Format("json", ".json", _json, _json_many),
}


def format_named(name: str) -> Format:
    """The format of that name. Raises ValueError with one sentence that lists the ones there are."""
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"no format {name!r}; there are: {', '.join(FORMATS)}") from None


def format_for(path: str) -> Format:
    """The format that follows from a file name's suffix. Raises ValueError as :func:`format_named` does."""
    suffix = PurePath(path).suffix
    for known in FORMATS.values():
        if known.suffix == suffix:
            return known
    ways = ", ".join(f"{known.suffix} ({known.name})" for known in FORMATS.values())
    raise ValueError(f"no format for the suffix of {path!r}; there are: {ways}")


def render(name: str, evidence: Evidence, diagnosis: Diagnosis, *, color: bool = False, width: int = 80) -> str:
    """The report in the named format. Raises ValueError for an unknown name."""
    return format_named(name).render(evidence, diagnosis, color, width)
