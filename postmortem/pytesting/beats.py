"""What begins, and when, for each phase of each test. It costs each test of everybody's suite, so there is one hook, which
names the test, and one step around ``CallInfo.from_call``, which all phases go through in all versions of pytest (7.0 to 9):
a hook for each phase and its end would cost four times as much. Each does next to nothing.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import pytest

from . import page
from .limits import Limit
from .page import IDLE, LIMITS, SERIAL, SETUP, START, STRUCK, TEARDOWN

_KINDS = {kind: number for number, kind in enumerate(page.KINDS[: TEARDOWN + 1])}


class Beats:
    """The plugin. ``limit_of(item)`` is asked when it may be another one than before. ``struck()`` is told when a phase is over
    that took too long; its report is made after that."""

    def __init__(
        self, shared: page.Page, limit_of: Callable[[Any], Limit], struck: Callable[[], object]
    ) -> None:
        now = time.monotonic  # kept here: what freezes a test's time replaces names in modules
        self._replaced = pytest.CallInfo.__dict__["from_call"]
        from_call = self._replaced.__func__
        parent: object = None
        one_clock = inside = False

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item: Any) -> None:
            nonlocal parent, one_clock
            if item.parent is not parent or item.own_markers:
                limit = limit_of(item)
                parent = None if item.own_markers else item.parent
                one_clock = limit.scope == "item"
                for kind, seconds in enumerate(limit.phases):
                    shared.doubles[LIMITS + kind] = seconds
            shared.name(item.nodeid)

        def phase(cls: Any, func: Any, when: str, reraise: Any = None) -> Any:
            nonlocal inside
            kind = None if inside else _KINDS.get(when)  # inside: a session in a test
            if kind is None:
                return from_call(cls, func, when, reraise)
            if kind == SETUP or not one_clock:
                shared.doubles[START] = now()
            words = shared.words
            words[SERIAL] = serial = (words[SERIAL] | IDLE) + 1 + kind
            inside = True
            try:
                return from_call(cls, func, when, reraise)
            finally:
                inside = False
                words = shared.words  # others in a forked child
                if words[STRUCK] == serial:
                    struck()
                if kind == TEARDOWN:
                    words[SERIAL] = serial | IDLE

        self.pytest_runtest_protocol = pytest_runtest_protocol
        self._own = classmethod(phase)
        pytest.CallInfo.from_call = self._own  # type: ignore[assignment]

    def end(self) -> None:
        """pytest is as it was."""
        if pytest.CallInfo.__dict__["from_call"] is self._own:
            pytest.CallInfo.from_call = self._replaced  # type: ignore[method-assign]
