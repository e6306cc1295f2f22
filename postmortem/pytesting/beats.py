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
from .page import CALL, IDLE, LIMITS, ONE_CLOCK, SETUP, STARTS, STRUCK, TEARDOWN

_STARTS = {page.KINDS[kind]: STARTS + kind for kind in (SETUP, CALL, TEARDOWN)}
_LAST = _STARTS["teardown"]


class Beats:
    """The plugin. ``limit_of(item)`` is asked when it may be another one than before. ``struck()`` is told when a phase is over
    that took too long; its report is made after that."""

    def __init__(self, shared: page.Page, limit_of: Callable[[Any], Limit], struck: Callable[[], None]) -> None:
        now = time.monotonic  # kept here: what freezes a test's time replaces names in modules
        self._replaced = pytest.CallInfo.__dict__["from_call"]
        from_call = self._replaced.__func__
        parent: object = None
        inside = False

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item: Any) -> None:
            nonlocal parent
            if item.parent is not parent or item.own_markers:
                parent = None if item.own_markers else item.parent
                _write(shared, limit_of(item))
            shared.name(item.nodeid)

        def phase(cls: Any, func: Any, when: str, reraise: Any = None) -> Any:
            nonlocal inside
            if inside or when not in _STARTS:  # a session in a test; collection
                return from_call(cls, func, when, reraise)
            at = _STARTS[when]
            shared.doubles[at] = start = now()
            inside = True
            try:
                return from_call(cls, func, when, reraise)
            finally:
                inside = False
                doubles = shared.doubles
                if doubles[STRUCK] == start:
                    struck()
                if at == _LAST:
                    doubles[STARTS + IDLE] = now()

        self.pytest_runtest_protocol = pytest_runtest_protocol
        self._own = classmethod(phase)
        pytest.CallInfo.from_call = self._own  # type: ignore[assignment]

    def end(self) -> None:
        """pytest is as it was."""
        if pytest.CallInfo.__dict__["from_call"] is self._own:
            pytest.CallInfo.from_call = self._replaced  # type: ignore[method-assign]


def _write(shared: page.Page, limit: Limit) -> None:
    shared.words[ONE_CLOCK] = limit.scope == "item"
    for kind, seconds in enumerate(limit.phases):
        shared.doubles[LIMITS + kind] = seconds
