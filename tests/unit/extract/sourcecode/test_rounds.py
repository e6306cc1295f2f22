"""Rounds of loops: which only ask and pause, what they ask, and what else ends the loop; over made-up objects."""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import pytest

from postmortem.extract.sourcecode.callsites import Function
from postmortem.extract.sourcecode.rounds import Constant, Follower, Question, Rounds, Value, loops_around

#: Objects by address: 1 a future that is pending, 2 an empty queue, 3 an event that is not set, 4 a list of two futures,
#: 5 None, 6 True, 7 minus one, 8 an object with the future as an attribute, 9 a future that is done.
FUTURE, QUEUE, EVENT, BOTH, NONE, TRUE, MINUS, OWNER, DONE = range(1, 10)
NAMES = {
    "future": FUTURE, "jobs": QUEUE, "stop": EVENT, "both": BOTH, "nothing": NONE, "running": TRUE, "timeout": MINUS,
    "self": OWNER, "done": DONE,
}  # fmt: skip
ANSWERS: Dict[Tuple[int, str], Question] = {
    (FUTURE, "done"): Question(Constant(False)), (FUTURE, "result"): Question(raises="*"),
    (10, "done"): Question(Constant(False)), (QUEUE, "get"): Question(raises="Empty"),
    (QUEUE, "empty"): Question(Constant(True)), (EVENT, "is_set"): Question(Constant(False)),
}  # fmt: skip
CONSTANTS = {NONE: None, TRUE: True, MINUS: -1}


class Objects:
    def attribute(self, thing: int, name: str) -> Optional[int]:
        return {(OWNER, "future"): FUTURE, (OWNER, "closed"): NONE}.get((thing, name))

    def method(self, thing: int, name: str) -> Optional[Tuple[int, bool]]:
        return None

    def constant(self, thing: int) -> Optional[Constant]:
        return Constant(CONSTANTS[thing]) if thing in CONSTANTS else None

    def items(self, thing: int) -> Optional[Sequence[int]]:
        return [FUTURE, 10] if thing == BOTH else None

    def question(
        self, thing: int, method: str, words: Mapping[str, Value], positional: Sequence[Value]
    ) -> Optional[Question]:
        return ANSWERS.get((thing, method))

    def function(self, callee: Optional[int]) -> Any:
        return None


def rounds(text: str) -> Optional[Rounds]:
    """Return the rounds of the loop around the line that ends with ``# here``."""
    lines = ["def work():", *("    " + line for line in text.strip("\n").splitlines())]
    function: Function = ast.parse("\n".join(lines)).body[0]  # type: ignore[assignment]
    here = next(number for number, line in enumerate(lines, 1) if line.endswith("# here"))
    for loop in loops_around(function, None, here):
        found = Follower(Objects(), NAMES.get, lambda name: name in ("timeout", "nothing"), None, here).rounds(loop)
        if found is not None:
            return found
    return None


QUIET: List[Tuple[str, Tuple[int, ...], bool, bool]] = [
    ("while not future.done():\n    time.sleep(1)  # here", (FUTURE,), False, False),
    ("while not self.future.done():\n    time.sleep(1)  # here", (FUTURE,), False, False),
    ("while True:\n    if future.done():\n        break\n    time.sleep(1)  # here", (FUTURE,), False, False),
    ("while not all(f.done() for f in both):\n    time.sleep(1)  # here", (FUTURE, 10), False, False),
    (
        "while True:\n    try:\n        job = jobs.get(block=False)\n    except Empty:\n        if future.done():\n"
        "            return\n        time.sleep(1)  # here\n    else:\n        job.run()",
        (QUEUE, FUTURE), False, False,
    ),
    (
        "while True:\n    try:\n        return future.result(timeout=1)  # here\n    except TimeoutError:\n        continue",
        (), False, False,
    ),
    ("for _ in range(9):\n    if future.done():\n        break\n    time.sleep(1)  # here", (FUTURE,), True, False),
    (
        "while not future.done():\n    if time.monotonic() > end:\n        raise TimeoutError\n    time.sleep(1)  # here",
        (FUTURE,), True, False,
    ),
    (
        "while not future.done():\n    if 0 <= timeout < time.monotonic():\n        raise Timeout\n    time.sleep(1)  # here",
        (FUTURE,), False, False,
    ),
    (
        "while not future.done():\n    if nothing is not None:\n        raise TimeoutError\n    time.sleep(1)  # here",
        (FUTURE,), False, False,
    ),
    ("while running and not future.done():\n    time.sleep(1)  # here", (FUTURE,), False, True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "asked", "limited", "opened"), QUIET)
def test_rounds_that_only_ask(text: str, asked: Tuple[int, ...], limited: bool, opened: bool) -> None:
    """The condition, and whether a clock, a counter or a variable ends the loop as well."""
    found = rounds(text)
    assert found is not None
    assert tuple(one.thing for one in found.asked) == asked
    assert (found.limited, found.open, found.works) == (limited, opened, False)


@pytest.mark.parametrize(
    "text",
    [
        "while not stop.is_set():\n    report()\n    time.sleep(1)  # here",
        "while not future.done():\n    time.sleep(1)  # here\n    sock.send(beat)",
        "while not done.done():\n    time.sleep(1)  # here\n    step()",
        "time.sleep(1)  # here",
        "while True:\n    yield\n    time.sleep(1)  # here",
    ],
)
def test_other_work_is_no_quiet_round(text: str) -> None:
    """A heartbeat, a scheduler, a generator; and no loop at all."""
    assert rounds(text) is None


def test_work_that_is_only_sometimes_due() -> None:
    """Some rounds are quiet; that there are others is told."""
    found = rounds("while not stop.is_set():\n    if due(now):\n        report()\n    time.sleep(1)  # here")
    assert found is None or found.works


def test_too_much_to_follow_is_nothing() -> None:
    """Each unknown condition doubles the ways."""
    branches = "".join(f"    if a{n}:\n        b{n} = 1\n    else:\n        c{n} = 1\n" for n in range(12))
    assert rounds(f"while not future.done():\n{branches}    time.sleep(1)  # here") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lock.wait_once()  # here\nif nothing is not None:\n    nothing()", True),
        ("lock.wait_once()  # here\nif running:\n    report_to_peers()", False),
        ("report_to_peers()\nlock.wait_once()  # here", False),
        ("with self.guard:\n    future.wait_once()  # here", True),
    ],
)
def test_a_function_that_merely_pauses(text: str, expected: bool) -> None:
    """Its only call of effect is the pause, by the values that it has: a callback that is None is not called."""
    lines = ["def work():", *("    " + line for line in text.splitlines())]
    function: Function = ast.parse("\n".join(lines)).body[0]  # type: ignore[assignment]
    here = next(number for number, line in enumerate(lines, 1) if line.endswith("# here"))
    follower = Follower(Objects(), NAMES.get, lambda name: name in ("timeout", "nothing"), None, here)
    assert follower.merely_pauses(function) is expected
