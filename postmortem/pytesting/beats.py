"""Recording of each phase of each test, with its start.

This costs every test of every suite, so there is one hook, which records the test's name, and one wrapper around
``CallInfo.from_call``, which all phases go through in all versions of pytest (7.0 to 9); a hook for each phase and its
end would cost four times as much. Both do as little as possible.
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
    """The plugin that records phases.

    ``limit_of(item)`` is called if the limit may differ from that of the previous test. ``struck()`` is called after a
    phase that took too long, before its report is made.
    """

    def __init__(self, shared: page.Page, limit_of: Callable[[Any], Limit], struck: Callable[[], None]) -> None:
        now = time.monotonic  # kept here: tests that freeze time replace names in modules
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
            if inside or when not in _STARTS:  # a session inside a test; collection
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
        """Restore pytest's own function."""
        if pytest.CallInfo.__dict__["from_call"] is self._own:
            pytest.CallInfo.from_call = self._replaced  # type: ignore[method-assign]


def _write(shared: page.Page, limit: Limit) -> None:
    shared.words[ONE_CLOCK] = limit.scope == "item"
    for kind, seconds in enumerate(limit.phases):
        shared.doubles[LIMITS + kind] = seconds
