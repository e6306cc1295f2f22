"""Words of running interpreters, read over a window: of this very process, and of made-up ones that fail."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, ClassVar, Dict, Iterator, List

import pytest

from postmortem.capture.observe import probes
from postmortem.capture.observe.probes import Probes
from postmortem.cpython.runtime.discovery import NoInterpreter
from postmortem.memory import Fault

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


class Made:
    """In place of a process's interpreter."""

    made: ClassVar[List[Made]] = []
    broken: ClassVar[Dict[int, BaseException]] = {}

    def __init__(self, pid: int, computing: object) -> None:
        if pid in self.broken:
            raise self.broken[pid]
        self.pid, self.asked, self.looks = pid, [], 0
        self.looked = threading.Event()
        Made.made.append(self)

    asked: List[str]

    def look_around(self, until: float) -> None:
        self.asked.append("queues")

    def find_exceptions(self, until: float) -> None:
        self.asked.append("exceptions")

    def look(self) -> None:
        self.looks += 1
        self.looked.set()

    def finish(self) -> Dict[str, Any]:
        return {"looks": self.looks}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[List[Made]]:
    monkeypatch.setattr(probes, "_Interpreter", Made)
    monkeypatch.setattr(Made, "made", [])
    monkeypatch.setattr(Made, "broken", {})
    yield Made.made


def test_who_has_nothing_to_count_is_left_out(made: List[Made]) -> None:
    """No Python, gone meanwhile, memory that may not be read: the others are counted all the same."""
    Made.broken.update({1: NoInterpreter("a shell"), 2: Fault(0, 8), 3: ProcessLookupError(), 4: ValueError("damaged")})
    assert set(Probes([1, 2, 3, 4, 5], watch=False).finish()) == {5}


def test_a_window_asks_for_all_and_looks_again_and_again(made: List[Made]) -> None:
    """Queues first, then exceptions; the collectors' flags until it is over, and not afterwards."""
    running = Probes([1, 2], watch=True)
    assert all(one.looked.wait(60) for one in made)
    answers = running.finish()
    assert [one.asked for one in made] == [["queues", "exceptions"]] * 2
    assert [answers[one.pid]["looks"] for one in made] == [one.looks for one in made]


def test_without_a_window_nothing_is_looked_for(made: List[Made]) -> None:
    """No thread, no search; what a moment can tell is told."""
    before = threading.active_count()
    running = Probes([1], watch=False)
    assert threading.active_count() == before
    assert running.finish() == {1: {"looks": 0}}
    assert made[0].asked == []


def test_many_processes_share_the_time(made: List[Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is used up the rest is not counted; nobody waits for them."""
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) * probes._MOST_S / 3)
    found = Probes(range(50), watch=False).finish()
    assert 0 < len(found) < 50


def test_this_very_process_is_counted() -> None:
    """Its GIL's hand-overs and its collector's looks; what a window alone could tell is unknown."""
    (answers,) = Probes([os.getpid()], watch=False).finish().values()
    if answers["gil"] is not None:  # free-threaded builds have none
        assert answers["gil"]["switches"] >= 0
        assert answers["gil"]["seconds"] > 0
    assert answers["collector"]["looks"] == answers["collector"]["busy"] == 0
    assert (answers["queues"], answers["exceptions"]) == (None, None)


def test_a_process_that_is_gone_ends_quietly() -> None:
    """It answers nothing, and nothing is raised."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert Probes([pid], watch=False).finish() == {}


class Words:
    """Four bytes at each address."""

    def __init__(self, **words: bytes) -> None:
        self.words = {int(name[1:]): value for name, value in words.items()}

    def read(self, address: int, _size: int) -> bytes:
        if address not in self.words:
            raise Fault(address, 4)
        return self.words[address]


def test_a_call_lasts_only_while_its_instruction_does() -> None:
    """A loop that makes the same call again with the same things is found in it at the beginning and the end, and elsewhere
    at some look between; a frame that is gone has left its call as well."""
    known: Any = probes._Interpreter.__new__(probes._Interpreter)
    known._ticks, known._python = 0, None
    known._flag, known._switches, known._memory = None, None, Words(a1=b"same", a2=b"here", a3=b"gone")
    known.calls, known._instructions = {"1": [1], "2": [2], "3": [3], "4": [4]}, {}
    for state, at in (("1", 1), ("2", 2), ("3", 3), ("4", 4)):
        known._watch(state, at)
    known.look()
    assert set(known.calls) == {"1", "2", "3", "4"}  # the fourth could not be looked at, and is known by its key alone
    known._memory.words.update({2: b"away"})
    del known._memory.words[3]
    known.look()
    known._memory.words.update({2: b"here", 3: b"gone"})
    known.look()
    assert set(known.calls) == {"1", "4"}
