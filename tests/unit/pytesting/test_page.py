"""The memory that pytest's process and its watchdog share."""

from __future__ import annotations

import os

import pytest

from postmortem.pytesting import page
from postmortem.pytesting.start import _memory


@pytest.fixture
def shared() -> page.Page:
    descriptor = _memory()
    try:
        return page.Page(descriptor)
    finally:
        os.close(descriptor)


def test_a_phase_is_read_as_it_was_written(shared: page.Page) -> None:
    """Its kind is in the low bits of the serial number."""
    shared.doubles[page.START], shared.doubles[page.LIMITS + page.TEARDOWN] = 12.5, 3.0
    shared.words[page.SERIAL] = 5 * page.ONE_MORE + page.TEARDOWN
    phase = shared.phase()
    assert phase is not None
    assert (phase.start, phase.limit, phase.kind) == (12.5, 3.0, "teardown")


def test_between_phases_there_is_no_limit(shared: page.Page) -> None:
    """Nor is there one for what a debugger has stopped."""
    shared.doubles[page.LIMITS + page.CALL] = 3.0
    shared.words[page.SERIAL] = page.ONE_MORE + page.CALL
    assert [phase.limit for phase in [shared.phase()] if phase] == [3.0]
    shared.words[page.DEBUGGED] = page.ONE_MORE + page.CALL
    assert [phase.limit for phase in [shared.phase()] if phase] == [0.0]
    shared.words[page.SERIAL] |= page.IDLE
    assert [(phase.limit, phase.kind) for phase in [shared.phase()] if phase] == [(0.0, "?")]


def test_names_and_answers_fit(shared: page.Page) -> None:
    """What is too long is cut, and never runs into what lies behind."""
    shared.answer(8, b"answer")
    shared.name("test_ü" * 10_000)
    assert shared.node().startswith("test_ütest_ü")
    assert shared.answered() == b"answer"
    shared.name("b.py::test")
    assert shared.node() == "b.py::test"
    shared.answer(16, b"x" * 2 * page.SIZE)
    assert len(shared.answered()) == page.ANSWER_MOST


def test_the_words_do_not_overlap() -> None:
    """Each has one index, and the process's lie apart from the watchdog's."""
    process = (page.START, page.SERIAL, page.NODE_SIZE, page.ENDED, page.DEBUGGED, page.STATUS, page.LEAST)
    watchdog = (page.WATCHDOG, page.STRUCK, page.ANSWERED, page.ANSWER_SIZE, page.ORDER)
    assert len({*process, *watchdog}) == len(process) + len(watchdog)
    assert max(process) < min(watchdog)
    assert max(watchdog) < page.LIMITS and (page.LIMITS + len(page.KINDS)) * 8 < 1024


def test_a_forked_child_writes_elsewhere(shared: page.Page) -> None:
    """After `detach` nothing reaches the memory."""
    words = shared.words
    shared.detach()
    shared.words[page.SERIAL] = 8
    shared.name("child")
    assert words[page.SERIAL] == 0
