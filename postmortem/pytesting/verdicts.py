"""A diagnosis as pytest's own kind of failure."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from .answer import Answer

#: pytest's own kind of failure, whose class has no public name.
_Failed: Any = pytest.fail.Exception


class Hang(_Failed):  # type: ignore[misc]
    """Raised where a test hangs. No Exception: a test that catches those does not catch it."""

    __module__ = "builtins"  # as pytest's own failures: its name is enough in a report

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message, pytrace=True)


def failure(answer: Answer, found: Optional[pytest.ExceptionInfo[BaseException]]) -> Any:
    """What is to be reported in the place of what came of the phase: with its traceback, if it has one."""
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
