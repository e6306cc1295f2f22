"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import click

from .. import publish
from ..capture.options import FORMATS_LISTED, SUFFIXES_LISTED

FORMAT = click.option("-f", "--format", "format_", metavar="FORMAT", default="text", help=f"{FORMATS_LISTED}.")
REPORTS = click.option(
    "--report",
    "reports",
    metavar="FILE",
    multiple=True,
    help=f"Also write the report to FILE; its suffix sets the format: {SUFFIXES_LISTED}. Repeatable.",
)
COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour in the report; auto: on a terminal, unless NO_COLOR is set.",
)
EXE = click.option("--exe", type=click.Path(path_type=Path), help="The program that dumped core, if it has moved.")
SYSROOT = click.option(
    "--sysroot", type=click.Path(path_type=Path), help="A folder with the libraries of the core's machine."
)
LOCALS = click.option(
    "--locals",
    "with_locals",
    is_flag=True,
    help="Also show local variables and exception messages; values with names of secrets are masked.",
)
STRIP = click.option(
    "--strip", is_flag=True, help="Write a copy of the bundle to share, without cores and secrets, and print its path."
)
SCHEMA = click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=publish.print_schema,
    help="Print the JSON Schema of report.json, and nothing else.",
)
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE.zip",
    help="Where --strip writes; must not exist yet. Default: beside BUNDLE.",
)
_SINCE = click.option("--since", metavar="TIME", help="coredumpctl: no cores older than TIME, in journalctl's syntax.")
_DIRECTORY = click.option(
    "-D", "--directory", type=click.Path(path_type=Path), help="coredumpctl: search the journal in this folder."
)


def JOURNAL(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that select where coredumpctl: targets are searched."""
    return _SINCE(_DIRECTORY(command))
