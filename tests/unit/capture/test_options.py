"""The hand-written command line of ``capture``."""

from __future__ import annotations

import signal
from typing import List

import pytest

from postmortem import report
from postmortem.capture.options import FORMATS, TABLE, Options, duration, formats_known, help_text, parse
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
        (["--pid", "12", "--stall", "1"], "--stall is for a command"),
        (["--pid", "12", "--on-signal", "USR1"], "--on-signal is for a command"),
        (["--stall", "0", "x"], "more than 0"),
        (["--on-signal", "KILL", "x"], "cannot be waited for"),
        (["--on-signal", "CHLD", "x"], "cannot be waited for"),
        (["--on-timeout", "kill", "-t1", "x"], "end, leave"),
        (["--core", "some", "-t1", "x"], "auto, sparse"),
        (["--budget", "0", "-t1", "x"], "more than 0"),
        (["--repeat", "3", "-t1", "x"], "--every"),
        (["--every", "3", "-t1", "x"], "--repeat"),
        (["--repeat", "0", "--every", "1", "-t1", "x"], "from 1 to"),
        (["--repeat", "1" * 5000, "--every", "1", "-t1", "x"], "from 1 to"),
        (["-s", "NOPE", "-t1", "x"], "signal"),
        (["-s", "Signals", "-t1", "x"], "signal"),
        (["-s", "99", "-t1", "x"], "signal"),
        (["-s", "_unblock", "-t1", "x"], "signal"),
        (["-s", "RTMAX+1", "-t1", "x"], "signal"),
        (["-s", "RTMIN-1", "-t1", "x"], "signal"),
        (["-s", "RTMIN+99", "-t1", "x"], "signal"),
        (["-s", "TERM+1", "-t1", "x"], "signal"),
        (["-s", "١٥", "-t1", "x"], "signal"),
        (["--pid", "٣٣"], "process id"),
        (["--pid", "1" * 5000], "process id"),
        (["--repeat", "²", "--every", "1", "-t1", "x"], "from 1 to"),
        (["--pid", "12", "--on-timeout", "leave"], "--on-timeout is for a command"),
        (["--pid", "12", "-k", "5"], "-k is for a command"),
        (["--signal", "TERM", "--pid", "12"], "-s is for a command"),
        (["--pid", "12", "--foreground"], "--foreground is for a command"),
        (["--tree", "-t", "1", "x"], "--tree is for --pid"),
        (["-o", "", "-t1", "x"], "a name"),
        (["--format=", "-t1", "x"], "a name"),
        (["--report", "", "-t1", "x"], "a name"),
    ],
)
def test_wrong_usage_says_what_and_where_to_look(words: List[str], part: str) -> None:
    """One sentence about the fault, one hint."""
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert part in str(caught.value)
    assert caught.value.next


def test_a_wrong_value_is_cut() -> None:
    """An error is a line, not a page."""
    for words in (["-t", "x" * 5000, "x"], ["--" + "x" * 5000, "x"]):
        with pytest.raises(UsageError) as caught:
            parse(words)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "number"),
    [("RTMIN", signal.SIGRTMIN), ("sigrtmin+3", signal.SIGRTMIN + 3), ("RTMAX-1", signal.SIGRTMAX - 1)],
)
def test_real_time_signals(text: str, number: int) -> None:
    """As kill(1) and timeout(1) name them."""
    assert parse(["-t1", "-s", text, "x"]).signal == number


def test_formats_are_the_reports_own() -> None:
    """The table is a copy, for what cannot wait for the original."""
    assert {name: known.suffix for name, known in report.FORMATS.items()} == FORMATS


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("-t1 x", True),
        ("-t1 -f json --report a.json --report b/c.txt x", True),
        ("-t1 -f pdf x", False),
        ("-t1 --report a.json --report b.pdf x", False),
        ("-t1 --report b/.json x", False),
    ],
)
def test_which_formats_are_known(words: str, known: bool) -> None:
    """As a report's file has it: a dot at the beginning starts no suffix."""
    assert formats_known(parse(words.split())) is known


def test_help_is_asked_for_anywhere_among_the_options() -> None:
    """Not among the command's own words."""
    assert parse(["-t1", "--help"]).help
    assert parse(["--pid", "1", "-h"]).help
    assert not parse(["-t1", "x", "--help"]).help


def test_every_row_of_the_table_has_its_place_and_its_help() -> None:
    """The parser's table is the help's table; none sets an attribute that Options does not declare."""
    declared = vars(Options())
    text = help_text()
    for option in TABLE:
        assert option.name in declared
        assert option.long in text
        assert option.help in " ".join(text.split())  # wherever it is folded
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("words", [["--stall", "10m", "x"], ["--on-signal", "USR1", "x"], ["--pid", "1"]])
def test_a_deadline_is_not_the_only_reason_to_capture(words: List[str]) -> None:
    """-t may be left out where something else triggers."""
    assert parse(words).timeout is None


def test_what_the_triggers_are_given() -> None:
    """Durations in seconds, signals by number, and the values of those that were not given."""
    words = "-t 5m --stall 30 --on-signal usr2 --repeat 3 --every 2s --on-timeout leave --budget 1m x"
    options = parse(words.split())
    given = (options.stall, options.on_signal, options.repeat, options.every, options.on_timeout, options.budget)
    assert given == (30.0, signal.SIGUSR2, 3, 2.0, "leave", 60.0)
    bare = parse(["-t1", "x"])
    assert (bare.stall, bare.on_signal, bare.repeat, bare.every) == (None, None, 1, None)
    assert (bare.on_timeout, bare.budget, bare.core) == ("end", 30.0, "auto")


@pytest.mark.parametrize(
    ("words", "numbered"),
    [("-t1 x", False), ("--stall 3 x", False), ("--on-signal USR1 x", True), ("--pid 1 --repeat 2 --every 1", True)],
)
def test_bundles_are_numbered_where_there_can_be_several(words: str, numbered: bool) -> None:
    """Then -o DIR names the folder of DIR/1, DIR/2, …"""
    assert parse(words.split()).numbered is numbered
