"""The hooks of every test: what begins, and when. They cost each test of everybody's suite, so there are few of them, and
each does next to nothing.

A report tells that a phase is over, and so that the next one begins: the body has no hook of its own. Plain functions, with
no more arguments than they use: pluggy looks up each by its name.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import pytest

from . import page
from .limits import Limit
from .page import CALL, IDLE, LIMITS, SERIAL, START, STRUCK, TEARDOWN

_SETUP, _TEARDOWN = "setup", "teardown"
_KIND = ~IDLE


class Beats:
    """``limit_of(item)`` is asked when it may be another one than before; ``struck(item, call)`` makes the report of a phase
    that took too long, or None."""

    def __init__(
        self, shared: page.Page, limit_of: Callable[[Any], Limit], struck: Callable[[Any, Any], Any]
    ) -> None:
        now = time.monotonic  # kept here: what freezes a test's time replaces names in modules
        parent: object = None
        one_clock = False

        def look_up(item: Any) -> None:
            nonlocal parent, one_clock
            limit = limit_of(item)
            parent = None if item.own_markers else item.parent
            one_clock = limit.scope == "item"
            for kind, seconds in enumerate(limit.phases):
                shared.doubles[LIMITS + kind] = seconds

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(item: Any) -> None:
            if item.parent is not parent or item.own_markers:
                look_up(item)
            shared.name(item.nodeid)
            shared.doubles[START] = now()
            words = shared.words
            words[SERIAL] = (words[SERIAL] | IDLE) + 1

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_teardown() -> None:
            if not one_clock:
                shared.doubles[START] = now()
            words = shared.words
            words[SERIAL] = words[SERIAL] & _KIND | TEARDOWN

        # not first: pytest's part for unittest has to take a test's own failure out of its list before
        def pytest_runtest_makereport(item: Any, call: Any) -> Any:
            words = shared.words
            serial = words[SERIAL]
            report = struck(item, call) if words[STRUCK] == serial else None
            when = call.when
            if when == _SETUP:
                if not one_clock:
                    shared.doubles[START] = now()
                words[SERIAL] = serial & _KIND | CALL
            elif when == _TEARDOWN:
                words[SERIAL] = serial | IDLE
            return report

        self.pytest_runtest_setup = pytest_runtest_setup
        self.pytest_runtest_teardown = pytest_runtest_teardown
        self.pytest_runtest_makereport = pytest_runtest_makereport
