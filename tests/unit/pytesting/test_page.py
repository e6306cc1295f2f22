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


def test_what_began_last_is_under_way(shared: page.Page) -> None:
    """Before anything has begun there is no limit; a phase has its own start and limit."""
    assert [(phase.serial, phase.limit) for phase in [shared.phase()] if phase] == [(0, 0.0)]
    shared.doubles[page.LIMITS + page.TEARDOWN] = 3.0
    for kind, now in ((page.SETUP, 10.5), (page.CALL, 11.5), (page.TEARDOWN, 12.5)):
        shared.begin(kind, now)
    phase = shared.phase()
    assert phase is not None
    assert (phase.start, phase.limit, phase.kind) == (12.5, 3.0, "teardown")
    assert phase.serial == shared.serial != 0
    shared.begin(page.SETUP, 13.5)
    assert [phase.kind for phase in [shared.phase()] if phase] == ["setup"]


def test_phases_may_share_a_clock(shared: page.Page) -> None:
    """It began with the setup; each phase has a serial number of its own all the same."""
    shared.words[page.ONE_CLOCK] = True
    shared.begin(page.SETUP, 10.5)
    first = shared.serial
    shared.begin(page.CALL, 11.5)
    assert [(phase.kind, phase.start) for phase in [shared.phase()] if phase] == [("call", 10.5)]
    assert shared.serial != first


def test_between_phases_there_is_no_limit(shared: page.Page) -> None:
    """Nor is there one for what a debugger has stopped."""
    shared.doubles[page.LIMITS + page.CALL] = 3.0
    shared.begin(page.CALL, 10.5)
    assert [phase.limit for phase in [shared.phase()] if phase] == [3.0]
    shared.words[page.DEBUGGED] = shared.serial
    assert [phase.limit for phase in [shared.phase()] if phase] == [0.0]
    shared.begin(page.IDLE, 11.5)
    assert [(phase.limit, phase.kind) for phase in [shared.phase()] if phase] == [(0.0, "idle")]


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
    process = (page.ONE_CLOCK, page.NAME_SIZE, page.ENDED, page.DEBUGGED, page.STATUS, page.LEAST)
    watchdog = (page.WATCHDOG, page.STRUCK, page.ANSWERED, page.ANSWER_SIZE, page.ORDER)
    assert len({*process, *watchdog}) == len(process) + len(watchdog)
    assert max(process) < min(watchdog)
    assert max(watchdog) < page.LIMITS and page.LIMITS + page.IDLE <= page.STARTS
    assert (page.STARTS + len(page.KINDS)) * 8 <= page._NAME_AT


def test_a_forked_child_writes_elsewhere(shared: page.Page) -> None:
    """After `detach` nothing reaches the memory."""
    words = shared.words
    shared.detach()
    shared.begin(page.CALL, 10.5)
    shared.name("child")
    assert words[page.STARTS + page.CALL] == words[page.NAME_SIZE] == 0
