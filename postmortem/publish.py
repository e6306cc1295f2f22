"""Output of results to the places that the user named: one stream, and any number of files."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any, List, NamedTuple, Sequence, TextIO, Tuple

from . import report
from .errors import PostmortemError, UsageError
from .foreign.writing import write_file

_WIDEST = 120  # wider prose is hard to read


class Plan(NamedTuple):
    """The outputs: one format on the stream, a file for each ``--report``."""

    format: report.Format
    files: Tuple[Tuple[Path, report.Format], ...]


def plan(format: str, files: Sequence[str]) -> Plan:
    """Check formats before any work is done. Raises UsageError with the known formats."""
    try:
        return Plan(report.format_named(format), tuple((Path(name), report.format_for(name)) for name in files))
    except ValueError as exc:
        raise UsageError(str(exc)) from exc


def print_schema(context: Any, _: object, wanted: bool) -> None:
    """Print the JSON Schema of report.json and end the command; an option's callback."""
    if wanted:
        from .report.machine import json_report  # noqa: PLC0415 - needed before a report is made only here

        _write(sys.stdout, json_report.schema())
        context.exit()


def emit(plan: Plan, results: Sequence[report.Result], stream: TextIO, *, color: str = "auto", many: bool) -> None:
    """Write the reports; ``many``: whether several targets were named, even if only one could be read.

    Raises PostmortemError when a file cannot be written, or a format has nothing to show, after everything else was
    written.
    """
    colored, width = wants_color(stream, color), columns(stream)
    failed: List[str] = []
    if many or results:
        try:
            _write(stream, _rendered(plan.format, results, many, colored, width))
        except report.NothingToShow as exc:
            failed.append(str(exc))
    for path, format in plan.files if many or results else ():
        try:
            write_file(str(path), _rendered(format, results, many, False, 80).encode("utf-8", "backslashreplace"))
        except report.NothingToShow as exc:
            failed.append(f"{str(path)!r} is not written: {exc}")
        except OSError as exc:
            failed.append(f"the report {str(path)!r} could not be written: {exc.strerror or exc}")
    if failed:
        raise PostmortemError("; ".join(failed))


def _rendered(format: report.Format, results: Sequence[report.Result], many: bool, color: bool, width: int) -> str:
    if many:
        return format.render_many(results, color, width)
    _, evidence, diagnosis = results[0]
    return format.render(evidence, diagnosis, color, width)


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # escape what the stream's encoding (LC_ALL=POSIX and the like) cannot express
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def wants_color(stream: TextIO, choice: str = "auto") -> bool:
    """Return whether to use colour: by ``always`` and ``never``, else on terminals, unless NO_COLOR is set or TERM is dumb."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def columns(stream: TextIO) -> int:
    """Return the terminal's width up to 120; 80 without a terminal."""
    return min(_WIDEST, shutil.get_terminal_size((80, 24)).columns) if stream.isatty() else 80
