"""Loops that turn without getting further, told from those that get further and from those of which that is not known."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from postmortem.cpython.objects.builtins import NotThat
from postmortem.cpython.state.interpreter import Python
from postmortem.cpython.state.rounds import Looks, Rounds
from postmortem.memory import Fault, ProcMem

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, kinds

pytestmark = [pytest.mark.live]
PROGRAM = """
import hashlib
import itertools
import threading
import time

COUNT = 0


class Reader:
    tokens = ["a", "b"] * 4

    def __init__(self):
        self.at = 3

    def matches(self, token):
        return self.tokens[self.at] == token


def stuck():
    reader = Reader()
    while reader.at < 9:
        if reader.matches("z"):
            reader.at += 1


def counts():
    total = 0
    for number in range(1 << 60):
        total = (total + number) % 7


def advances():
    reader = Reader()
    while reader.at < 1 << 60:
        step(reader)


def step(reader):
    reader.at += 1


def counts_in_a_global():
    while COUNT < 1 << 60:
        count()


def count():
    global COUNT
    COUNT += 1


def counts_in_a_class():
    class Total:
        number = 0

    while Total.number < 1 << 60:
        Total.number += 1


def counts_in_a_generator():
    numbers = iter_numbers()
    while True:
        consume(numbers)


def iter_numbers():
    number = 0
    while True:
        number += 1
        yield


def consume(numbers):
    for _ in range(3):
        for _ in numbers:
            break


def counts_in_a_closure(tick=None):
    tick = tick or make_tick()
    while tick() > 0:
        pass


def make_tick():
    number = 0

    def tick():
        nonlocal number
        number += 1
        return number

    return tick


def counts_further_out():
    for number in range(1 << 60):
        one()


def one():
    two()


def two():
    three()


def three():
    total = 0
    for number in (1, 2, 3):
        total += number
    return total


def counts_in_an_iterator():
    for _ in itertools.repeat(None, 1 << 60):
        one()


def recurses(depth=60):
    return depth if depth < 2 else recurses(depth - 1) + recurses(depth - 2)


def until_a_time():
    end = time.monotonic() + 1000
    while time.monotonic() < end:
        pass


def in_c():
    digest = hashlib.sha256()
    while True:
        digest.update(b"block")


def until_an_event():
    event = threading.Event()
    while not event.is_set():
        pass


COUNT_SEEN = (counts, advances, counts_in_a_global, counts_in_a_class, counts_in_a_generator, counts_in_a_closure)
COUNT_UNSEEN = (counts_further_out, counts_in_an_iterator, recurses, until_a_time, in_c, until_an_event)
for target in (stuck, *COUNT_SEEN, *COUNT_UNSEEN):
    threading.Thread(target=target, name=target.__name__, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""
LOOKS, AGAIN = 100, 10
SEEN = (
    "counts", "advances", "counts_in_a_global", "counts_in_a_class", "counts_in_a_generator", "counts_in_a_closure",
)  # fmt: skip


@pytest.mark.parametrize("python", kinds())
def test_only_a_loop_whose_variables_all_return_is_said_to_stay_where_it_is(python: Any, tmp_path: Path) -> None:
    """Progress in a variable, an attribute, a global, a class, a closure or a suspended generator is seen; that of the clock, of
    what C code keeps to itself, of another thread, or of a recursion is not known."""
    with Program(python, PROGRAM, tmp_path) as program, ProcMem(program.pid) as memory:
        found = looked(Python(memory))
        for _ in range(AGAIN):  # beside other load, one of so many threads gets few turns meanwhile
            if found["stuck"] is not None:
                break
            found = looked(Python(memory))
    assert found.pop("stuck") is True
    unknown = {"until_a_time", "in_c", "until_an_event", "counts_in_an_iterator"}
    assert {name for name, same in found.items() if same is None} >= unknown
    assert True not in found.values()
    assert any(found[name] is False for name in SEEN)  # of so many threads on few cores most are seen too rarely


def looked(python: Python) -> Dict[str, Optional[bool]]:
    """Return what many looks at each thread showed."""
    states = {state.name or "": state.address for state in python.interpreters[0].threads}
    states.pop("MainThread")
    looks = {name: Looks(python, address) for name, address in states.items()}
    for _ in range(LOOKS):
        for each in looks.values():
            with contextlib.suppress(Fault, NotThat, UnicodeDecodeError):
                each.look()
            with contextlib.suppress(Fault):
                each.glance()
        time.sleep(0.01)
    told: Dict[str, Optional[Rounds]] = {name: each.rounds() for name, each in looks.items()}
    return {name: rounds.same if rounds is not None else None for name, rounds in told.items()}


STUCK = """
def search(text):
    start = 0
    while True:
        at = text.find("{", start)
        if at < 0:
            return start
        start = at if text[at + 1 : at + 2] == " " else at + 1

print("ready", flush=True)
search("a{b{ c{")
"""


def test_a_capture_tells_that_a_loop_stays_where_it_is(tmp_path: Path) -> None:
    """From the window's looks, by way of the bundle, to the verdict and report.json; a longer window has more of them."""
    with Program(sys.executable, STUCK, tmp_path) as program:
        found = capture_pid(program.pid, tmp_path, "--observe", "4")
    rounds = found["processes"][0]["threads"][0]["rounds"]
    assert (rounds["function"], rounds["same"], rounds["changed"]) == ("search", True, [])
    assert rounds["turns"] >= 3
    assert [(f["pattern"], f["confidence"]) for f in found["findings"]] == [("python-busy-loop", "likely")]
