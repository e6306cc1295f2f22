"""What a capture says while it goes: lines in a pipe, one line that is drawn over on a terminal, nothing where nobody is."""

from __future__ import annotations

import io
import os
import pty
import select
from typing import Iterator, TextIO, Tuple

import pytest

from postmortem.narration import Narration


@pytest.fixture
def terminal() -> Iterator[Tuple[int, TextIO]]:
    """The other end of a terminal, and the stream that is one."""
    master, slave = pty.openpty()
    with open(slave, "w") as stream:
        yield master, stream
    os.close(master)


def _shown(master: int) -> str:
    """All that was written: a terminal passes it on piece by piece."""
    shown = b""
    while select.select([master], [], [], 0.1)[0]:
        shown += os.read(master, 65536)
    return shown.decode().replace("\r\n", "\n")


def test_in_a_pipe_each_step_is_a_line() -> None:
    """Plain text, without a control character; progress that is no step is left out."""
    stream = io.StringIO()
    narration = Narration(stream)
    narration.step("watching 3 processes for 1 s")
    narration.draw("reading core 1 of 3")
    narration.say("done")
    narration.clear()
    assert stream.getvalue() == "postmortem: watching 3 processes for 1 s\npostmortem: done\n"


def test_on_a_terminal_one_line_is_drawn_over(terminal: Tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without colours; what is to stay is written on a line of its own, and nothing of the progress is left."""
    monkeypatch.setenv("TERM", "xterm")
    master, stream = terminal
    narration = Narration(stream)
    narration.step("watching")
    narration.draw("stopped")
    narration.say("done")
    wipe = "\r\x1b[2K"
    assert _shown(master) == f"{wipe}postmortem: watching{wipe}postmortem: stopped{wipe}postmortem: done\n"


def test_the_report_begins_where_the_drawn_line_was(
    terminal: Tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is wiped off once, and the stream is still a terminal to whoever renders."""
    monkeypatch.setenv("TERM", "xterm")
    master, stream = terminal
    narration = Narration(stream)
    narration.step("analysing")
    report = narration.report
    assert report.isatty()
    report.write("Verdict\n")
    report.write("more\n")
    report.flush()
    assert _shown(master).endswith("postmortem: analysing\r\x1b[2KVerdict\nmore\n")


def test_while_the_command_writes_nothing_is_drawn(
    terminal: Tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is drawn over would take the command's own along."""
    monkeypatch.setenv("TERM", "xterm")
    master, stream = terminal
    narration = Narration(stream)
    narration.draws = False
    narration.step("watching")
    narration.say("SIGUSR1")
    assert _shown(master) == "postmortem: SIGUSR1\n"


def test_a_terminal_that_understands_nothing_gets_lines(
    terminal: Tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM=dumb: no escape sequences."""
    monkeypatch.setenv("TERM", "dumb")
    master, stream = terminal
    Narration(stream).step("watching")
    assert _shown(master) == "postmortem: watching\n"


def test_a_long_step_stays_on_one_line(terminal: Tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut to the width, and what would move the cursor is not sent: a wrapped line could not be drawn over."""
    monkeypatch.setenv("TERM", "xterm")
    master, stream = terminal
    Narration(stream).step("analysing " + "\x1b[31m" + "x" * 500)
    line = _shown(master).split("\r\x1b[2K")[1]
    assert "\x1b" not in line
    assert line.endswith("x…")
    assert len(line) < 80


class _Gone(io.StringIO):
    def flush(self) -> None:
        raise BrokenPipeError(32, "gone")


@pytest.mark.parametrize("stream", [None, _Gone()])
def test_nobody_listens(stream: TextIO) -> None:
    """A closed stderr, or a reader that has gone: nothing fails, and a report can still be written, to nowhere."""
    narration = Narration(stream)
    narration.say("one")
    narration.step("two")
    narration.report.write("three")


def test_a_stream_that_was_closed() -> None:
    """Neither."""
    stream = io.StringIO()
    stream.close()
    Narration(stream).say("one")
