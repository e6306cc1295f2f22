"""A limit has passed: the report of the phase gets the diagnosis. Loaded, and hooked into each report, from then on only."""

from __future__ import annotations

from typing import Any, Callable, Optional

import pytest

from . import page
from .answer import Answer
from .verdicts import Hang, failure

_LONGEST_DIAGNOSIS_S = 90.0
_LOOK_S = 0.01


class Reports:
    """The plugin. ``now`` and ``sleep``: as they were when pytest began; a test may have frozen its time."""

    def __init__(self, shared: page.Page, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._page = shared
        self._now, self._sleep = now, sleep
        self.due = False  # a phase is over that took too long, and was not reported yet

    def hang(self) -> BaseException:
        """To raise where it hangs; the answer is there already."""
        return Hang(Answer.decode(self._page.answered()))

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        # not first: pytest's part for unittest has to take a test's own failure out of its list before
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
        """Changes that of a module whose import took too long."""
        answer = self._answer()
        if answer is not None:
            report.outcome = "failed"
            report.longrepr = answer.message if report.longrepr is None else report.longrepr
            report.sections.append(("postmortem", answer.text))

    def _answer(self) -> Optional[Answer]:
        """To the last strike. What was struck may have ended by itself while it was being looked at: it took too long all the
        same. None when it was let go of."""
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
