"""A diagnosis as pytest's own kind of failure."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from .answer import Answer

#: pytest's exception of failures, whose class has no public name.
_Failed: Any = pytest.fail.Exception


class Hang(_Failed):  # type: ignore[misc]
    """Raised in a hung test. Not an Exception, so that tests that catch those do not catch it."""

    __module__ = "builtins"  # as in pytest's own failures: reports show the bare name

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message, pytrace=True)


def failure(answer: Answer, found: Optional[pytest.ExceptionInfo[BaseException]]) -> Any:
    """Return the failure to report instead of a phase's outcome; it keeps the traceback of ``found``."""
    if found is not None and isinstance(found.value, Hang):
        return found
    hang = Hang(answer)
    if found is not None and found.value.__traceback__ is not None:
        return pytest.ExceptionInfo.from_exc_info((Hang, hang, found.value.__traceback__))
    hang.pytrace = False
    try:
        raise hang
    except Hang:
        return pytest.ExceptionInfo.from_current()
