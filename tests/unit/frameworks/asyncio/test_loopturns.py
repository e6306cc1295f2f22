"""The turn of an event loop, from the variables of `_run_once`; whatever of them is garbage is unknown."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest

from postmortem.cpython.objects.builtins import NotThat
from postmortem.frameworks.asyncio.loopturns import Turn, turn_of
from postmortem.memory import Fault

EVENTS, BASE = "/lib/asyncio/events.py", "/lib/asyncio/base_events.py"


class Place:
    def __init__(self, function: str, file: str) -> None:
        self.function, self.file = function, file

    def is_in(self, function: str, *endings: str) -> bool:
        return self.function == function and self.file.endswith(endings)


class Target:
    """Frames whose variables are addresses of numbers."""

    def __init__(self, variables: Dict[str, int]) -> None:
        self.variables = variables
        self.values: Dict[int, Any] = {0x20: 12.5, 0x30: 7, 0x40: 3}
        self.objects = self

    def local(self, _frame: Any, name: str) -> Optional[int]:
        return self.variables.get(name)

    def number(self, address: int) -> float:
        if address not in self.values:
            raise NotThat("no number")
        return float(self.values[address])

    def integer(self, address: int) -> int:
        if address not in self.values:
            raise Fault(address, 8)
        return int(self.values[address])


ALL = {"self": 0x10, "end_time": 0x20, "ntodo": 0x30, "i": 0x40, "handle": 0x50}
STACK = [Place("handle", "/app/x.py"), Place("_run", EVENTS), Place("_run_once", BASE), Place("run_forever", BASE)]


def read(stack: List[Place], variables: Dict[str, int]) -> Optional[Turn]:
    target: Any = Target(variables)
    frames: Any = stack
    return turn_of(target, frames)


def test_a_loop_that_runs_a_callback_is_in_a_turn() -> None:
    """When it began, how many it has to run, which it is at."""
    assert read(STACK, ALL) == Turn(0x10, 12.5, 7, 3, 0x50)


@pytest.mark.parametrize(
    "stack",
    [
        [Place("select", "/lib/selectors.py"), Place("_run_once", BASE)],
        [Place("_run_once", BASE)],
        [Place("_run", EVENTS), Place("handle", "/app/x.py")],
        [],
    ],
)
def test_a_loop_that_waits_is_in_none(stack: List[Place]) -> None:
    """It is in select, or there is no loop."""
    assert read(stack, ALL) is None


def test_the_innermost_loop_counts() -> None:
    """In a loop within a loop, the inner one decides whether a callback runs."""
    nested = [
        Place("select", "/lib/selectors.py"),
        Place("_run_once", BASE),
        Place("_run", EVENTS),
        Place("_run_once", BASE),
    ]
    assert read(nested, ALL) is None


@pytest.mark.parametrize("missing", ["self", "end_time", "handle"])
def test_without_them_there_is_no_turn(missing: str) -> None:
    """The loop, its clock, and what it runs."""
    assert read(STACK, {**ALL, missing: 0}) is None


def test_garbage_is_unknown() -> None:
    """A clock that is no number leaves no turn; counts that are none are left out."""
    assert read(STACK, {**ALL, "end_time": 0x99}) is None
    assert read(STACK, {**ALL, "ntodo": 0x99, "i": 0}) == Turn(0x10, 12.5, None, None, 0x50)
