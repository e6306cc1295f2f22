"""Which of an agent's operations name an awaited object."""

from __future__ import annotations

from typing import Any, FrozenSet, Optional, Sequence, Tuple

import pytest

from postmortem.cpython.execution.lookup import CALL, Applied
from postmortem.cpython.heap.reachability import Reach
from postmortem.evidence.vocabulary import ResourceKind
from postmortem.extract.ownership.grading import ENDS, _Judged, _names

SUBJECT, HOLDER, ELSE = 0x1000, 0x2000, 0x3000
REACH = Reach(
    names={("done",), ("job", 0x9000)},
    callers={("", "callback"), ("wait", "waiting"), ("", "release")},
    holders={HOLDER},
)


def applied(operation: str, *atoms: Tuple[Any, ...]) -> Applied:
    return Applied(operation, frozenset(atoms), None, 0)


def named(
    done: Sequence[Applied] = (), passed: Sequence[Applied] = (), operations: FrozenSet[str] = ENDS["event"]
) -> Optional[Applied]:
    return _names(_Judged(done, passed, True), operations, SUBJECT, REACH)


@pytest.mark.parametrize(
    "one",
    [
        applied("set", ("obj", SUBJECT)),
        applied("set", ("obj", ELSE), ("obj", SUBJECT)),
        applied("set", ("name", "done")),
        applied("set", ("name", "job", 0x9000)),
        applied(CALL, ("name", "callback")),
    ],
)
def test_an_operation_on_the_object_or_its_last_name_names_it(one: Applied) -> None:
    """So does the call of a callable that leads to it."""
    assert named([one]) is one


@pytest.mark.parametrize(
    "one",
    [
        applied("set", ("obj", ELSE)),
        applied("set", ("name", "started")),
        applied("set", ("name", "job", 0x8000)),  # another function's variable of that name
        applied("wait", ("obj", SUBJECT)),
        applied(CALL, ("name", "waiting")),  # a bound method that ends nothing
        applied(CALL, ("name", "release")),  # a name of many methods
    ],
)
def test_an_operation_alone_names_nothing(one: Applied) -> None:
    """Neither does one that ends no such wait."""
    assert named([one]) is None


@pytest.mark.parametrize("atom", [("obj", SUBJECT), ("obj", HOLDER), ("name", "done")])
def test_what_is_handed_on_to_something_unknown_is_named(atom: Tuple[Any, ...]) -> None:
    """The object, what has it as an attribute, or what is loaded by its last name."""
    one = applied("", atom)
    assert named(passed=[one]) is one and named(passed=[applied("", ("obj", ELSE))]) is None


@pytest.mark.parametrize("kind", ["event", "async-event"])
def test_twins_have_the_same_operations(kind: ResourceKind) -> None:
    """asyncio's and those of threads."""
    assert ENDS[kind] == {"set"}
