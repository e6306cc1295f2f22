"""Local variables of a damaged target."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from postmortem.cpython.objects.builtins import NotThat
from postmortem.evidence import Gap
from postmortem.extract.process.variables import Variables
from postmortem.memory import Fault

from ....support.inwords import reason


class FakeFrame:
    def __init__(self, function: str) -> None:
        self.function = function


class FakePython:
    """Its frames and objects are itself. Its globals cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.frames = self.objects = self
        self.interpreters: Tuple[()] = ()
        self._error = error

    def globals(self, _frame: FakeFrame) -> int:
        return 0x1000

    def text_dict(self, _address: int) -> Dict[str, int]:
        raise self._error

    def locals(self, _frame: FakeFrame) -> List[Tuple[str, int]]:
        return []


def test_globals_that_cannot_be_read_are_a_gap() -> None:
    """A module whose dict is damaged, or not in the core, has unknown variables, and the report says so."""
    for error in (NotThat("damaged dict"), Fault(0x1000, 8)):
        gaps: List[Gap] = []
        python: Any = FakePython(error)
        frame: Any = FakeFrame("<module>")
        assert Variables(python, gaps).of(frame) is None
        assert [(gap.subject, reason(gap)) for gap in gaps] == [("local variables of <module>", str(error))]
        function: Any = FakeFrame("work")
        assert Variables(python, gaps).of(function) == ()
