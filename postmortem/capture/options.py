"""The command line of ``postmortem capture``: one table, for the parser here and for the help.

Parsed by hand, importing nothing that costs time: the command must start as fast as without postmortem (click alone
takes longer to import than everything before the spawn).
"""

# pathlib would take half of the time before the command's start:
# ruff: noqa: PTH122

from __future__ import annotations

import os

from ..errors import UsageError
from ..foreign.numbers import is_decimal

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    try:  # the module that `signal` wraps in enumerations, which take milliseconds
        import _signal as signal
    except ImportError:
        import signal

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: Number of descendants up to which --pid captures them without --tree. Measured with a Python program in each, on two
#: processors: one costs a pause of 1.5 ms, 2 to 5 MB of the bundle and 0.15 s of the diagnosis, so that a hundred of
#: them are stopped for 0.2 s, and two hundred exceed the default --budget.
MOST_DESCENDANTS = 100
CORE_MODES = ("auto", "sparse", "python", "full", "none")
_COLUMNS = 100
_MOST_TIMES = 1000
_LONGEST_NUMBER = 12
_SHOWN = 60  # characters shown of a wrong value
_HINT = "see postmortem capture --help"


class Option:
    """One row of the table; ``metavar`` is empty for a flag, ``convert`` raises ValueError with the reason."""

    __slots__ = ("convert", "help", "long", "metavar", "multiple", "name", "short")

    def __init__(
        self,
        short: str,
        long: str,
        metavar: str,
        help: str,
        convert: Callable[[str], object] = str,
        multiple: bool = False,
    ) -> None:
        self.short, self.long, self.metavar, self.help = short, long, metavar, help
        self.convert, self.multiple = convert, multiple
        self.name = long[2:].replace("-", "_")


class Options:
    """The options as given; durations in seconds."""

    def __init__(self) -> None:
        self.timeout: float | None = None  # None: not given; 0: no limit, as in timeout(1)
        self.stall: float | None = None
        self.on_signal: int | None = None
        self.repeat = 1
        self.every: float | None = None
        self.on_timeout = "end"
        self.on_cancel = "pass"
        self.output: str | None = None
        self.kill_after = 5.0  # 0: never KILL, as in timeout(1)
        self.signal = 15
        self.foreground = False
        self.pid: int | None = None
        self.tree = False
        self.observe = 1.0
        self.core = "auto"
        self.budget = 30.0
        self.locals = False
        self.format: str | None = None
        self.report: list[str] = []
        self.command: list[str] = []
        self.help = False
        self.given: set[str] = set()  # names of the options that were given

    @property
    def numbered(self) -> bool:
        """Whether there can be several bundles, so that each has a number."""
        return self.repeat > 1 or self.on_signal is not None


def duration(text: str) -> float:
    """Convert a decimal with an optional suffix s, m, h or d to seconds. Raises ValueError."""
    unit = _UNITS.get(text[-1:])
    number = text[:-1] if unit else text
    if not number or number.strip("0123456789.") or number.count(".") > 1 or number == ".":
        raise ValueError("expected a decimal number, optionally followed by s, m, h or d")
    return float(number) * (unit or 1.0)


def some_time(text: str) -> float:
    """Convert a duration greater than 0. Raises ValueError."""
    seconds = duration(text)
    if not seconds:
        raise ValueError("expected more than 0")
    return seconds


def signal_number(text: str) -> int:
    """Return the number of TERM, SIGTERM, term, 15, RTMIN+3 or RTMAX-3. Raises ValueError."""
    number = _whole(text)
    if number < 0:
        name, sign, offset = text.upper().replace("-", "+-").partition("+")
        name = name if name.startswith("SIG") else f"SIG{name}"
        number = 0 if "_" in name else getattr(signal, name, 0)
        if sign:
            number = _real_time(number, offset)
    if not isinstance(number, int) or not 0 < number < signal.NSIG:
        raise ValueError("expected a signal name or number")
    return int(number)


def _real_time(base: object, offset: str) -> int:
    """Return the number of RTMIN+n or RTMAX-n; 0 if invalid."""
    lowest, highest = int(signal.SIGRTMIN), int(signal.SIGRTMAX)
    distance = _whole(offset.lstrip("-"))
    if distance < 0 or base != (highest if offset.startswith("-") else lowest):
        return 0
    number = highest - distance if offset.startswith("-") else lowest + distance
    return number if lowest <= number <= highest else 0


def _whole(text: str) -> int:
    """Parse a decimal integer of at most 12 digits; -1 if invalid."""
    return int(text) if is_decimal(text) and len(text) <= _LONGEST_NUMBER else -1


def some_text(text: str) -> str:
    """Return a text that is not empty. Raises ValueError."""
    if not text:
        raise ValueError("expected a name")
    return text


def demand_signal(text: str) -> int:
    """Return a signal that a process can wait for and that postmortem does not use itself. Raises ValueError."""
    number = signal_number(text)
    taken = "KILL STOP CHLD TSTP TTIN TTOU CONT SEGV BUS FPE ILL TRAP SYS ABRT"
    if number in {getattr(signal, f"SIG{name}") for name in taken.split()}:
        raise ValueError("this signal cannot be waited for; USR1, USR2, QUIT and HUP can")
    return number


def process_id(text: str) -> int:
    """Parse a process id. Raises ValueError."""
    if not 0 < _whole(text) < 1 << 31:
        raise ValueError("expected a process id")
    return _whole(text)


def times(text: str) -> int:
    """Parse a number of repetitions, from 1 to 1000. Raises ValueError."""
    if not 0 < _whole(text) <= _MOST_TIMES:
        raise ValueError(f"expected a number from 1 to {_MOST_TIMES}")
    return _whole(text)


def one_of(*words: str) -> Callable[[str], str]:
    """Return a converter that accepts only these words."""

    def convert(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return text

    return convert


#: The formats of report.FORMATS with their suffixes, repeated here since that import takes long.
FORMATS = {
    "text": ".txt", "json": ".json", "markdown": ".md", "html": ".html", "sarif": ".sarif", "junit": ".xml",
    "speedscope": ".speedscope.json", "collapsed": ".collapsed", "github": "",
}  # fmt: skip
FORMATS_LISTED = f"text (default), {', '.join([*FORMATS][1:-1])} or github (annotations)"
SUFFIXES_LISTED = ", ".join(filter(None, FORMATS.values()))


def formats_known(options: Options) -> bool:
    """Return whether --format and the suffix of each --report are known."""
    suffixes = [os.path.splitext(name)[1] for name in options.report]
    return options.format in (None, *FORMATS) and all(suffix and suffix in FORMATS.values() for suffix in suffixes)


TABLE = (
    Option("-t", "--timeout", "DURATION", "How long COMMAND may run: a decimal number, with s, m, h or d.", duration),
    Option(
        "",
        "--stall",
        "DURATION",
        "Also capture when nothing was written, or fetched from storage, and less than 0.5 % of a core used for this long.",
        some_time,
    ),
    Option(
        "",
        "--on-signal",
        "SIGNAL",
        "Capture when postmortem gets SIGNAL, instead of passing it on; COMMAND keeps running.",
        demand_signal,
    ),
    Option("", "--repeat", "N", "Capture N times, as a series; needs --every.", times),
    Option("", "--every", "DURATION", "Time between the starts of two captures of a series.", some_time),
    Option(
        "",
        "--on-timeout",
        "WHAT",
        "What to do with COMMAND after the capture: end it (default), or leave it running.",
        one_of("end", "leave"),
    ),
    Option(
        "",
        "--on-cancel",
        "WHAT",
        "What INT, TERM, HUP or QUIT to postmortem does before any capture: pass it on (default), or capture first, within"
        " 6 s, then end COMMAND with it.",
        one_of("pass", "capture"),
    ),
    Option(
        "-o",
        "--output",
        "DIR",
        "The bundle's directory; it must be empty or not exist yet. With --repeat or"
        " --on-signal the bundles are DIR/1, DIR/2, …",
        some_text,
    ),
    Option(
        "-k", "--kill-after", "DURATION", "Send KILL if COMMAND still runs this long after the signal [5].", duration
    ),
    Option(
        "-s",
        "--signal",
        "SIGNAL",
        "The signal that ends COMMAND after the capture: a name or number [TERM].",
        signal_number,
    ),
    Option("", "--foreground", "", "Keep COMMAND in this process group, and do not end its children."),
    Option("", "--pid", "PID", "Capture a process that is already running, and leave it running.", process_id),
    Option(
        "",
        "--tree",
        "",
        f"With --pid: also capture its descendants if there are more than {MOST_DESCENDANTS}, or if PID is 1.",
    ),
    Option("", "--observe", "SECONDS", "How long to watch before anything is stopped [1].", duration),
    Option(
        "",
        "--core",
        "MODE",
        "How much memory to keep: sparse, python, full or none; auto (default) decides by size.",
        one_of(*CORE_MODES),
    ),
    Option("", "--budget", "DURATION", "Time allowed from a deadline to the verdict [30].", some_time),
    Option("", "--locals", "", "Also show local variables; what looks like a secret is masked."),
    Option("-f", "--format", "FORMAT", f"Format of the report on stderr: {FORMATS_LISTED}.", some_text),
    Option(
        "",
        "--report",
        "FILE",
        f"Also write the report to FILE; its suffix sets the format: {SUFFIXES_LISTED}. Repeatable.",
        some_text,
        multiple=True,
    ),
)
_WHEN = ("timeout", "stall", "on_signal")
_FOR_A_COMMAND = (*_WHEN, "on_timeout", "on_cancel", "kill_after", "signal", "foreground")
_BY_FLAG = {flag: option for option in TABLE for flag in (option.short, option.long) if flag}


def parse(argv: list[str]) -> Options:
    """Parse the words after ``capture``. Raises UsageError with one sentence and a hint."""
    options = Options()
    position = 0
    while position < len(argv):
        word = argv[position]
        if word == "--":
            position += 1
            break
        if not word.startswith("-") or word == "-":
            break
        if word in ("-h", "--help"):
            options.help = True
            return options
        position = _take(options, argv, position)
    options.command = argv[position:]
    _check(options)
    return options


def _take(options: Options, argv: list[str], position: int) -> int:
    """Read the option at ``position``; return the position of the next word."""
    word = argv[position]
    if word.startswith("--"):
        flag, equals, rest = word.partition("=")
        attached = rest if equals else None
    else:
        flag, attached = word[:2], word[2:] or None
    option = _BY_FLAG.get(flag)
    if option is None:
        raise UsageError(f"capture has no option {flag[:_SHOWN]}", _HINT)
    if not option.metavar:
        if attached is not None:
            raise UsageError(f"{flag} takes no value", _HINT)
        setattr(options, option.name, True)
        options.given.add(option.name)
        return position + 1
    if attached is None:
        position += 1
        if position >= len(argv):
            raise UsageError(f"{flag} needs a value ({option.metavar})", _HINT)
        attached = argv[position]
    try:
        value = option.convert(attached)
    except ValueError as exc:
        shown = repr(attached if len(attached) <= _SHOWN else attached[:_SHOWN] + "…")
        raise UsageError(f"{flag} {shown}: {exc}", _HINT) from None
    options.given.add(option.name)
    if option.multiple:
        getattr(options, option.name).append(value)
    else:
        setattr(options, option.name, value)
    return position + 1


def _check(options: Options) -> None:
    if options.repeat > 1 and options.every is None:
        raise UsageError("--repeat needs --every: the time from one capture to the next", _HINT)
    if options.repeat == 1 and options.every is not None:
        raise UsageError("--every needs --repeat with more than 1", _HINT)
    if options.pid is not None:
        _check_pid(options)
        return
    example = "write postmortem capture -t SECONDS -- COMMAND"
    if not options.command:
        raise UsageError("no command to run and no --pid", example)
    if options.tree:
        raise UsageError("--tree is for --pid; a command is captured with all its descendants", _HINT)
    if options.timeout is None and options.stall is None and options.on_signal is None:
        raise UsageError("a time limit is missing: how long may the command run?", example)


def _check_pid(options: Options) -> None:
    if options.command:
        raise UsageError("either --pid or a command, not both", _HINT)
    for option in TABLE:
        if option.name in _FOR_A_COMMAND and option.name in options.given:
            why = "captures at once" if option.name in _WHEN else "leaves the process running"
            raise UsageError(f"{option.short or option.long} is for a command; --pid {why}", _HINT)


def help_text() -> str:
    """Return the output of ``postmortem capture --help``."""
    rows = []
    for option in TABLE:
        flags = ", ".join(flag for flag in (option.short, option.long) if flag)
        rows.append((f"{flags} {option.metavar}".rstrip(), option.help))
    width = max(len(left) for left, _right in rows)
    lines = [line for left, right in rows for line in _row(left, right, width)]
    return "\n".join(
        (
            "Usage: postmortem capture -t DURATION [OPTIONS] [--] COMMAND [ARGS]...",
            "       postmortem capture --pid PID [OPTIONS]",
            "",
            "  Run a command; when it does not end in time, say why, and end it.",
            "",
            "  The command keeps its standard streams, terminal, working directory and",
            "  environment. If it ends in time, postmortem prints nothing and exits with its",
            "  status.",
            "",
            "Options:",
            *lines,
            "",
            "Exit status: the command's own (128+N for signal N); 124 when its time was up; 125 when",
            "postmortem failed; 126 or 127 when the command could not be run or found; with --pid, 0.",
        )
    )


def _row(left: str, right: str, width: int) -> list[str]:
    """Format one option with its wrapped help."""
    import textwrap  # noqa: PLC0415 - only for --help, where time does not matter

    first, *others = textwrap.wrap(right, max(_COLUMNS - width - 4, 30))
    return [f"  {left:<{width}}  {first}", *(f"  {'':<{width}}  {line}" for line in others)]
