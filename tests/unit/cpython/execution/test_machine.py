"""Effects of functions of this process, without calling them: on which objects they would use ``set`` and the like."""

from __future__ import annotations

import functools
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

from postmortem.cpython.execution import lookup
from postmortem.cpython.execution.lookup import CALL

from .ownprocess import evaluated

GATE, OTHER, LOCK = threading.Event(), threading.Event(), threading.Lock()


class Holder:
    __slots__ = ("gate",)

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate


def open_it(holder: Holder) -> None:
    holder.gate.set()


class Base:
    kind = GATE

    def __init__(self) -> None:
        self.gate = GATE
        self.callbacks: List[Callable[[], Any]] = [GATE.set]
        self.table: Dict[str, Any] = {"free": functools.partial(open_it, Holder(GATE)), "other": OTHER.set}
        self.heap = [(1, Holder(GATE))]
        self.queue = deque([Holder(GATE)])
        self.current: Any = None

    def finish(self) -> None:
        self.gate.set()

    @property
    def door(self) -> threading.Event:
        return self.gate

    @classmethod
    def all(cls) -> None:
        cls.kind.set()

    def do_GET(self) -> None:
        self.gate.set()


class Derived(Base):
    def finish(self) -> None:
        super().finish()


class Pair(NamedTuple):
    name: str
    holder: Holder


SELF, PAIR = Derived(), Pair("a", Holder(GATE))


def make() -> Callable[[], None]:
    gate = GATE

    def inner() -> None:
        gate.set()

    return inner


@contextmanager
def managed() -> Iterator[None]:
    yield
    GATE.set()


def direct() -> None:
    while True:
        print("x")
        if OTHER.is_set():
            GATE.set()


def two_levels() -> None:
    SELF.finish()


def by_property() -> None:
    SELF.door.set()


def by_classmethod() -> None:
    Derived.all()


def callbacks() -> None:
    for callback in list(SELF.callbacks):
        callback()


def table(name: str = "free") -> None:
    SELF.table[name]()


def from_heap() -> None:
    import heapq  # noqa: PLC0415 - it is the import that is evaluated

    _due, holder = heapq.heappop(SELF.heap)
    open_it(holder)


def from_deque() -> None:
    SELF.queue.popleft().gate.set()


def stored() -> None:
    SELF.current = SELF.gate
    SELF.current.set()


def from_tuple() -> None:
    PAIR.holder.gate.set()


def thread() -> None:
    threading.Thread(target=open_it, args=(PAIR.holder,)).start()


def keyword() -> None:
    executor = ThreadPoolExecutor(1)
    executor.submit(open_it, holder=PAIR.holder)


def comprehension() -> None:
    print([open_it(each) or each for each in [PAIR.holder, PAIR.holder]])  # type: ignore[func-returns-value]


def unpacked() -> None:
    arguments = (PAIR.holder,)
    open_it(*arguments)


def by_name() -> None:
    getattr(SELF, "do_" + input())()


def handed_on() -> None:
    unknown(GATE)  # type: ignore[name-defined]  # noqa: F821


def in_with() -> None:
    with managed():
        pass


async def coroutine() -> None:
    await inner_coroutine()


async def inner_coroutine() -> None:
    GATE.set()


RESCUERS = (
    direct, two_levels, by_property, by_classmethod, callbacks, table, from_heap, from_deque, stored, from_tuple, thread,
    keyword, comprehension, unpacked, by_name, make(), GATE.set, functools.partial(open_it, PAIR.holder), in_with, coroutine,
    lambda: open_it(PAIR.holder),
)  # fmt: skip


@pytest.mark.parametrize("function", RESCUERS, ids=lambda each: getattr(each, "__qualname__", "partial"))
def test_the_operation_is_found(function: Callable[..., Any]) -> None:
    """However the code comes to the object; the operation is not called."""
    machine = evaluated(function)
    assert any(a.operation == "set" and ("obj", id(GATE)) in a.value for a in machine.applied.values())
    assert not GATE.is_set()


def looks() -> None:
    while True:
        print(GATE.is_set(), SELF.gate, len(SELF.callbacks), repr(GATE))
        OTHER.set()


def waits() -> None:
    GATE.wait(1)


def lists() -> None:
    for each in threading.enumerate():
        print(each.name, each.is_alive())


@pytest.mark.parametrize("function", [looks, waits, lists])
def test_what_only_looks_applies_nothing(function: Callable[..., Any]) -> None:
    """An operation of that name on another object names nothing."""
    machine = evaluated(function)
    assert not any(a.operation == "set" and ("obj", id(GATE)) in a.value for a in machine.applied.values())
    assert not machine.incomplete and not any(("obj", id(GATE)) in a.value for a in machine.passed.values())


def test_arguments_of_something_unknown_are_handed_on() -> None:
    """With the place."""
    (found,) = evaluated(handed_on).passed.values()
    assert found.value == {("obj", id(GATE))} and found.code is not None and found.code.name == "handed_on"


def of_an_argument(job: Any) -> None:
    for each in job.waiters:
        each.done.set()
    job.callback()


def test_what_is_unknown_keeps_its_last_name() -> None:
    """The site is the attribute that it was loaded from, or the variable with its code."""
    machine = evaluated(of_an_argument)
    found = {(a.operation, atom[1]) for a in machine.applied.values() for atom in a.value if atom[0] == "name"}
    assert {("set", "done"), (CALL, "callback")} <= found


def balanced() -> None:
    while True:
        LOCK.acquire()
        print("x")
        LOCK.release()


def gives() -> None:
    LOCK.release()
    LOCK.acquire()


def test_a_release_behind_its_own_acquire_frees_nobody() -> None:
    """Only one that can come without it counts."""
    assert evaluated(balanced).released() == set()
    (found,) = evaluated(gives).released()
    assert ("obj", id(LOCK)) in found.value


def test_limits_end_it() -> None:
    """And it says so."""
    assert evaluated(direct, steps=5).incomplete
    assert not evaluated(direct).incomplete


def test_a_circle_of_callables_ends() -> None:
    """A partial that is its own function, as damaged memory may have it."""
    circle: Any = functools.partial(print)
    machine = evaluated(circle)
    machine.heap.field = lambda address, offset: id(circle)  # type: ignore[method-assign]
    machine.callable(id(circle))
    assert machine.incomplete


class Report:
    def __init__(self) -> None:
        self.done = self.begun = False

    def finish(self) -> None:
        self.done = True


REPORT = Report()


def finishes() -> None:
    REPORT.finish()


def finishes_by_name() -> None:
    setattr(REPORT, "done", True)  # noqa: B010


def begins() -> None:
    REPORT.begun = True


ITEMS: Dict[str, int] = {}
COUNT = 0


def counts() -> None:
    global COUNT  # noqa: PLW0603
    COUNT = 1


def fills() -> None:
    ITEMS["a"] = 1


def fills_by_a_method() -> None:
    ITEMS.update(a=1)


def empties() -> None:
    del ITEMS["a"]


def merges() -> None:
    global ITEMS  # noqa: PLW0603
    ITEMS |= {"a": 1}


def looks_at_items() -> None:
    ITEMS.get("a")


@pytest.mark.parametrize(
    ("function", "changes"),
    [
        (fills, True),
        (fills_by_a_method, True),
        (empties, True),
        (merges, True),
        (looks_at_items, False),
        (finishes, False),
    ],
)
def test_a_change_of_a_containers_contents_is_noted(function: Callable[[], None], changes: bool) -> None:
    """By item, by method and in place, on the container itself; a look at it is none."""
    applied = evaluated(function, watched=lookup.CHANGES).applied.values()
    found = [each for each in applied if each.operation in lookup.CHANGES and ("obj", id(ITEMS)) in each.value]
    assert bool(found) is changes


def test_a_global_variable_that_is_stored_is_noted() -> None:
    """On the dict of its module's globals."""
    applied = evaluated(counts, watched=frozenset((lookup.stored("COUNT"),))).applied.values()
    found = [each.value for each in applied if each.operation == lookup.stored("COUNT")]
    assert found == [frozenset((("obj", id(globals())),))]


@pytest.mark.parametrize(("function", "stores"), [(finishes, True), (finishes_by_name, True), (begins, False)])
def test_who_stores_a_watched_attribute_is_noted(function: Callable[[], None], stores: bool) -> None:
    """On which object, whatever the function that does it; other attributes are not noted."""
    applied = evaluated(function, watched=frozenset((lookup.stored("done"),))).applied.values()
    found = [each.value for each in applied if each.operation == lookup.stored("done")]
    assert found == ([frozenset((("obj", id(REPORT)),))] if stores else [])
