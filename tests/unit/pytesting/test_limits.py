"""What the command line, the ini file and markers say about how long a test may take."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest

from postmortem import pytest_plugin, pytesting
from postmortem.pytesting import limits
from postmortem.pytesting.limits import Limit, Limits


class Config:
    """As much of pytest's as is asked."""

    def __init__(self, ini: Optional[Dict[str, str]] = None, **options: str) -> None:
        self._ini, self._options = ini or {}, options

    def getoption(self, name: str) -> Optional[str]:
        return self._options.get(name)

    def getini(self, name: str) -> str:
        return self._ini.get(name, "")


class Node:
    def __init__(self, parent: Optional[Node] = None, *marks: pytest.MarkDecorator) -> None:
        self.parent = parent
        self.nodeid = "test_a.py::test_b"
        self.own_markers: List[pytest.Mark] = [decorator.mark for decorator in marks]


def mark(*args: Any, **kwargs: Any) -> pytest.MarkDecorator:
    made: pytest.MarkDecorator = pytest.mark.postmortem_timeout(*args, **kwargs)
    return made


def known(limit: Limit) -> tuple[float, str]:
    return limit.seconds, limit.scope


def test_the_command_line_outranks_the_ini_file() -> None:
    """Both take what `capture -t` takes."""
    ini = {"postmortem_timeout": "2m", "postmortem_scope": "item"}
    assert known(limits.configured(Config(ini))) == (120.0, "item")
    assert known(limits.configured(Config(ini, postmortem_timeout="0.5"))) == (0.5, "item")
    assert known(limits.configured(Config())) == (0.0, "phase")


def test_imports_and_the_exit_have_more_time() -> None:
    """Unless the ini file says less; a worker's exit has less than pytest-xdist's patience."""
    limit = Limit(1.0, "phase")
    assert limits.collection(Config(), limit) == 30.0
    assert limits.collection(Config({"postmortem_collection_timeout": "2"}), limit) == 2.0
    assert limits.at_exit(Config(), limit, False) == 5.0
    assert limits.at_exit(Config(), Limit(60.0, "phase"), True) < 10.0
    assert limits.at_exit(Config(), Limit(0.0, "phase"), False) == 0.0


def test_the_closest_marker_counts() -> None:
    """The test's own before its class's, the class's before the module's, all before the command line."""
    module = Node(None, mark(7))
    inner = Node(Node(module), mark(3, scope="call"))
    found = Limits(Limit(60.0, "phase"))
    assert known(found.of(Node(module))) == (7.0, "phase")
    assert known(found.of(Node(inner))) == (3.0, "call")
    assert known(found.of(Node(inner, mark(scope="item")))) == (60.0, "item")
    assert known(found.of(Node(Node()))) == (60.0, "phase")
    assert found.of(Node(None, mark(0))).seconds == 0.0


def test_scopes_as_seconds_of_phases() -> None:
    """With `call` the limit is for the body alone."""
    assert Limit(5.0, "phase").phases == (5.0, 5.0, 5.0)
    assert Limit(5.0, "call").phases == (0.0, 5.0, 0.0)


@pytest.mark.parametrize("wrong", [mark(1, 2), mark(second=1), mark("soon"), mark(1, scope="all"), mark(-1)])
def test_a_wrong_marker_is_named(wrong: pytest.MarkDecorator) -> None:
    """With the test that has it."""
    with pytest.raises(pytest.UsageError, match=r"test_a\.py::test_b"):
        Limits(Limit(1.0, "phase")).of(Node(None, wrong))


def test_the_marker_has_one_name() -> None:
    """It stands twice, so that the plugin alone imports nothing of the rest."""
    assert pytest_plugin.MARKER == pytesting.MARKER
