"""Writes man/: the manual pages, one for postmortem and one for each command, from the tables that the commands are made of.

    python -m tools.man

A test compares the folder with what this would write (tests/unit/test_man.py); the wheel installs it below share/man.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Dict, List, Sequence

from postmortem import __version__
from postmortem.cli import commands
from postmortem.cli.table import Command, table

from . import folders

FOLDER = Path(__file__).resolve().parents[1] / "man"
#: Pages are dated by the release that they are of.
_RELEASED = "2026-11-22"
_WHAT = "says what a hung or crashed Python program waits for"
_STATUS = {
    "capture": (
        ("the command's own", "it ended in time; 128+N: signal N ended it"),
        ("124", "the timeout or a stall struck; the diagnosis is on stderr, the bundle written"),
        ("125", "postmortem itself failed, or was called wrongly"),
        ("126, 127", "the command cannot be run, or was not found"),
        ("0", "with --pid: a bundle was written"),
    ),
    "doctor": (("0", "everything needed is there"), ("1", "something is missing")),
    "": (("0", "done: every target was analysed"), ("1", "a target could not be analysed"), ("2", "wrong usage")),
}
_EXAMPLES = {
    "capture": ("postmortem capture -t 10m -- python -m pytest", "postmortem capture --stall 1m -o hang -- python train.py",
                "postmortem capture --pid 4711"),
    "analyze": ("postmortem analyze core.4711", "postmortem analyze -f json --report hang.txt postmortem-pytest-*/"),
    "report": ("postmortem report hang --report hang.json", "postmortem report hang --strip -o hang.zip"),
    "patterns": ("postmortem patterns gil-thrash",),
    "debug": ("postmortem debug core.4711 -ex pm-threads --batch",),
    "completion": ('eval "$(postmortem completion bash)"',),
    "demo": ("postmortem demo",),
    "doctor": ("postmortem doctor",),
}  # fmt: skip
_ENVIRONMENT = (
    ("NO_COLOR", "No colour, also on a terminal."),
    ("TMPDIR", "Where bundles go that cannot be written where they belong, and where archives are unpacked."),
    ("POSTMORTEM_GDB", "The gdb to use."),
    ("POSTMORTEM_PYSPY", "The py-spy to use."),
    (
        "POSTMORTEM_PYTHON",
        "In a gdb that was started by hand and has sourced the script of `postmortem debug --print-script`: the interpreter"
        " that has postmortem.",
    ),
    (
        "POSTMORTEM_MAX_UNPACKED",
        "How many bytes a core may unpack to; else 2 GB and a thousand times its compressed size.",
    ),
    ("POSTMORTEM_DEBUG", "Set to 1: a defect of postmortem shows its traceback."),
)
_FILES = (
    ("postmortem-NAME-TIME-PID/", "A bundle, mode 0700: manifest.json, evidence.json, report.json, report.html, raw/. Its cores"
     " hold memory of the program, secrets included."),
)  # fmt: skip


def wanted() -> Dict[str, str]:
    """File name → its text."""
    known = table(commands.commands)
    pages = {f"postmortem-{name}.1": _page(command) for name, command in known.items()}
    return {"postmortem.1": _overview(known), **pages}


def _overview(known: Dict[str, Command]) -> str:
    lines = [
        *_head("postmortem", _WHAT),
        ".SH SYNOPSIS",
        r".B postmortem",
        r"\fICOMMAND\fR [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
    ]
    lines += [_text(commands.commands.help or ""), ".SH COMMANDS"]
    for command in known.values():
        lines += [".TP", rf".BR postmortem\-{_text(command.name)} (1)", _text(command.summary)]
    lines += [
        ".SH OPTIONS",
        ".TP",
        r"\fB\-h\fR, \fB\-\-help\fR",
        "Show the help and exit.",
        ".TP",
        r"\fB\-\-version\fR",
        "Show the version and exit.",
    ]
    for title, rows in (("ENVIRONMENT", _ENVIRONMENT), ("FILES", _FILES)):
        lines += [f".SH {title}", *(line for name, what in rows for line in (".TP", rf".B {_text(name)}", _text(what)))]
    lines += [
        ".SH EXAMPLES",
        *_code([example for name in ("capture", "analyze", "report") for example in _EXAMPLES[name]]),
    ]
    lines += [
        ".SH SEE ALSO",
        ", ".join(
            rf"\fB{name}\fR({section})"
            for name, section in (("timeout", 1), ("gdb", 1), ("coredumpctl", 1), ("core", 5))
        ),
    ]
    return "\n".join(lines) + "\n"


def _page(command: Command) -> str:
    title = f"postmortem-{command.name}"
    lines = [*_head(title, command.summary[:1].lower() + command.summary[1:].rstrip(".")), ".SH SYNOPSIS"]
    for number, usage in enumerate(command.usage):
        lines += [*([".br"] if number else []), rf".B postmortem {_text(usage)}"]
    lines += [".SH DESCRIPTION", *"\n.PP\n".join(map(_text, command.help.split("\n\n"))).split("\n"), ".SH OPTIONS"]
    for option in command.options:
        flags = ", ".join(rf"\fB{_text(flag)}\fR" for flag in option.flags)
        lines += [".TP", flags + (rf" \fI{_text(option.metavar)}\fR" if option.metavar else ""), _text(option.help)]
    lines.append(".SH EXIT STATUS")
    for status, what in _STATUS.get(command.name, _STATUS[""]):
        lines += [".TP", rf".B {_text(status)}", _text(what)]
    if command.name in _EXAMPLES:
        lines += [".SH EXAMPLES", *_code(_EXAMPLES[command.name])]
    lines += [".SH SEE ALSO", r"\fBpostmortem\fR(1)"]
    return "\n".join(lines) + "\n"


def _head(title: str, what: str) -> List[str]:
    plain = _text(title)
    header = f'.TH {plain.upper()} 1 {_RELEASED} "postmortem {__version__}" "postmortem"'
    return [r".\" Written by tools/man.py; do not edit.", header, ".SH NAME", rf"{plain} \- {_text(what)}"]


def _code(examples: Sequence[str]) -> List[str]:
    return [".nf", *(_text(example) for example in examples), ".fi"]


def _text(text: str) -> str:
    """A paragraph as roff reads it: nothing of it is a request, minus signs can be copied, other characters have names."""
    plain = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-").replace("…", "...").replace("—", r"\(em")
    plain = re.sub(r"[^\x00-\x7f]", lambda m: rf"\[u{ord(m[0]):04X}]", plain)
    plain = plain.replace('"', r"\(dq").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{plain}" if plain.startswith(".") else plain


def present(folder: Path = FOLDER) -> Dict[str, str]:
    return folders.present(folder, "*.1")


def main(folder: Path = FOLDER) -> int:
    return folders.write(folder, "*.1", wanted())


if __name__ == "__main__":
    sys.exit(main())
