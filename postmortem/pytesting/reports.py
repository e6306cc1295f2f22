"""Reports of phases that took too long, extended by the diagnosis. Loaded and hooked in at the first strike."""

from __future__ import annotations

from typing import Any, Callable, Optional

import pytest

from . import page
from .answer import Answer
from .verdicts import Hang, failure

_LONGEST_DIAGNOSIS_S = 90.0
_LOOK_S = 0.01


class Reports:
    """The plugin that changes reports. ``now`` and ``sleep``: saved when pytest began, since a test may have frozen time."""

    def __init__(self, shared: page.Page, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._page = shared
        self._now, self._sleep = now, sleep
        self.due = False  # True: a phase that took too long has ended, and was not reported yet

    def hang(self) -> BaseException:
        """Return the exception to raise in the hung test; the answer is there already."""
        return Hang(Answer.decode(self._page.answered()))

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Return the report of a phase that took too long, with the diagnosis; None for others."""
        # not first: pytest's unittest plugin must first take a test's own failure out of its list
        answer = self._answer() if self.due else None
        self.due = False
        if answer is None:
            return None
        item.user_properties += answer.properties
        call.excinfo = failure(answer, call.excinfo)
        report = pytest.TestReport.from_item_and_call(item, call)
        report.sections.append(("postmortem", answer.text))
        return report

    def of_collection(self, report: Any) -> None:
        """Change the report of a module whose import took too long."""
        answer = self._answer()
        if answer is not None:
            report.outcome = "failed"
            report.longrepr = answer.message if report.longrepr is None else report.longrepr
            report.sections.append(("postmortem", answer.text))

    def _answer(self) -> Optional[Answer]:
        """Wait for the answer to the last strike; None if the phase was debugged or the watchdog gave none.

        A phase that ended by itself during the examination took too long all the same.
        """
        words = self._page.words
        serial = words[page.STRUCK]
        if not serial:
            return None
        words[page.ENDED] = serial
        if words[page.DEBUGGED] == serial:
            return None
        until = self._now() + _LONGEST_DIAGNOSIS_S
        while words[page.ANSWERED] != serial:
            if self._now() > until or words[page.STRUCK] != serial:
                return None
            self._sleep(_LOOK_S)
        return Answer.decode(self._page.answered())
