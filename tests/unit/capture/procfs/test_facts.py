"""What /proc says about a process, asked of this one."""

from __future__ import annotations

import os
import signal

from postmortem.capture.procfs import facts, parsers


def test_signals_that_a_process_catches_and_ignores() -> None:
    """Bit N-1 stands for signal N, in either set."""
    caught = signal.signal(signal.SIGUSR1, lambda *_: None)
    ignored = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        known = facts.process_json(os.getpid())
    finally:
        signal.signal(signal.SIGUSR1, caught)
        signal.signal(signal.SIGUSR2, ignored)
    assert known["signals_caught"] >> (signal.SIGUSR1 - 1) & 1
    assert not known["signals_caught"] >> (signal.SIGUSR2 - 1) & 1
    assert known["signals_ignored"] >> (signal.SIGUSR2 - 1) & 1


def test_the_working_directory() -> None:
    """As the kernel has it; a report's files are named from there."""
    assert facts.process_json(os.getpid())["cwd"] == os.getcwd()


def test_the_controlling_terminal() -> None:
    """Its device number and the group in its foreground; 0 and -1 without one."""
    line = b"17 (a) S 1 4 5 34819 99 4194304 1 0 0 0 11 12 0 0 20 7 1 0 999 0 0\n"
    stat = parsers.parse_stat(line)
    assert (stat.terminal, stat.foreground) == (34819, 99)
