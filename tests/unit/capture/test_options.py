"""The hand-written command line of ``capture``."""

from __future__ import annotations

import signal
from typing import List

import pytest

from postmortem.capture.options import TABLE, Options, duration, help_text, parse
from postmortem.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2", 2.0), ("0.5", 0.5), (".5", 0.5), ("3s", 3.0), ("2m", 120.0), ("1.5h", 5400.0), ("1d", 86400.0)],
)
def test_durations(text: str, seconds: float) -> None:
    """A decimal, with timeout(1)'s suffixes."""
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1", "1e3", "nan", "inf", "1_0", "1 s", "1.2.3", ".", "٣"])
def test_what_is_no_duration(text: str) -> None:
    """Nothing that float() takes beyond a plain decimal."""
    with pytest.raises(ValueError, match="decimal"):
        duration(text)


@pytest.mark.parametrize(
    "words",
    [
        ["-t", "2", "-s", "INT", "--", "a", "-t"],
        ["-t2", "-sINT", "a", "-t"],
        ["--timeout=2", "--signal=sigint", "a", "-t"],
        ["--timeout", "2s", "--signal", "2", "--", "a", "-t"],
    ],
)
def test_the_same_in_all_its_spellings(words: List[str]) -> None:
    """Attached, with an equals sign, apart; and the command's own options stay the command's."""
    options = parse(words)
    assert (options.timeout, options.signal, options.command) == (2.0, signal.SIGINT, ["a", "-t"])


def test_repeated_reports_and_a_flag() -> None:
    """--report adds up, other options take the last value, a flag takes none."""
    options = parse(["-t1", "-t3", "--report", "a.json", "--report=b.html", "--foreground", "x"])
    assert (options.timeout, options.report, options.foreground) == (3.0, ["a.json", "b.html"], True)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--", "x"], "how long"),
        (["-t", "1"], "no command"),
        (["-t"], "needs a value"),
        (["-t", "soon", "x"], "'soon'"),
        (["--nope", "x"], "--nope"),
        (["--foreground=yes", "-t1", "x"], "takes no value"),
        (["--pid", "0"], "process id"),
        (["--pid", "12", "x"], "not both"),
        (["--pid", "12", "-t", "1"], "-t is for a command"),
        (["-s", "NOPE", "-t1", "x"], "signal"),
        (["-s", "Signals", "-t1", "x"], "signal"),
        (["-s", "99", "-t1", "x"], "signal"),
    ],
)
def test_wrong_usage_says_what_and_where_to_look(words: List[str], part: str) -> None:
    """One sentence about the fault, one hint."""
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert part in str(caught.value)
    assert caught.value.next


def test_every_row_of_the_table_has_its_place_and_its_help() -> None:
    """The parser's table is the help's table; none sets an attribute that Options does not declare."""
    declared = vars(Options())
    text = help_text()
    for option in TABLE:
        assert option.name in declared
        assert option.long in text
        assert option.help in text
    assert max(map(len, text.splitlines())) <= 110
