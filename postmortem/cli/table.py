"""Every command with its options, in one form: for shell completion and for the manual pages.

``capture`` has a table of its own (capture/options.py), the others have click's, which is inspected without importing
click.
"""

from __future__ import annotations

import inspect
from typing import Any, Dict, NamedTuple, Tuple

from ..capture.options import CORE_MODES, TABLE
from ..report import FORMATS

_HELP = "Show the help and exit."
#: Values of capture's options to offer; options with a metavar of _FILES offer files.
_CHOICES: Dict[str, Tuple[str, ...]] = {
    "--core": CORE_MODES,
    "--on-timeout": ("end", "leave"),
    "--signal": ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"),
    "--on-signal": ("USR1", "USR2", "HUP", "QUIT"),
    "--format": tuple(FORMATS),
}
_FILES = ("FILE", "DIR", "PATH", "TARGET", "BUNDLE")


class Option(NamedTuple):
    """An option. ``metavar`` is "" for a flag. ``choices``: its possible values, () if they cannot be listed."""

    flags: Tuple[str, ...]
    metavar: str
    help: str
    choices: Tuple[str, ...] = ()

    @property
    def takes_file(self) -> bool:
        """Return whether the value is a file."""
        return any(word in self.metavar for word in _FILES)


class Command(NamedTuple):
    """A command with its options and arguments."""

    name: str
    usage: Tuple[str, ...]  # one line for each form, without the program's name
    help: str  # paragraphs, the first a single sentence
    options: Tuple[Option, ...]
    arguments: Tuple[str, ...]  # their metavars

    @property
    def summary(self) -> str:
        """Return the first paragraph of the help."""
        return self.help.split("\n\n")[0].replace("\n", " ")


def table(group: Any) -> Dict[str, Command]:
    """Return all commands by name. ``group``: click's group of them."""
    return {name: _capture(found) if name == "capture" else _command(found) for name, found in group.commands.items()}


def _capture(found: Any) -> Command:
    options = []
    for option in TABLE:
        flags = tuple(flag for flag in (option.short, option.long) if flag)
        options.append(Option(flags, option.metavar, option.help, _CHOICES.get(option.long, ())))
    options.append(Option(("-h", "--help"), "", _HELP))
    usage = ("capture -t DURATION [OPTIONS] [--] COMMAND [ARGS]...", "capture --pid PID [OPTIONS]")
    return Command("capture", usage, inspect.cleandoc(found.help or ""), tuple(options), ("COMMAND",))


def _command(found: Any) -> Command:
    options, arguments = [], []
    helps = tuple(found.context_settings.get("help_option_names", ("-h", "--help")))
    for param in found.params:
        if param.param_type_name == "argument":
            arguments.append(_argument(param))
        elif not param.hidden:
            choices = tuple(getattr(param.type, "choices", ()))
            name = next((flag for flag in param.opts if flag.startswith("--")), param.opts[0])
            choices = choices or (_CHOICES["--format"] if name == "--format" else ())
            metavar = "" if param.is_flag else param.metavar or ("|".join(choices) or _metavar(param))
            options.append(Option(tuple(param.opts), metavar, param.help or "", choices))
    options.append(Option(helps, "", _HELP))
    arguments = [argument for argument in arguments if argument]
    usage = (" ".join([found.name, "[OPTIONS]", *arguments]),)
    return Command(found.name, usage, inspect.cleandoc(found.help or ""), tuple(options), tuple(arguments))


def _argument(param: Any) -> str:
    name = str(param.name).upper() if param.metavar is None else str(param.metavar)
    return name if param.required or param.metavar is not None else f"[{name}]"


def _metavar(param: Any) -> str:
    name = str(param.type.name)
    return {"path": "PATH", "integer": "N"}.get(name, name.upper())
