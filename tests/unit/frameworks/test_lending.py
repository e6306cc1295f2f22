"""Lending objects, read from objects that a test makes up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, Optional, Tuple

import pytest

from postmortem.cpython.heap.parts import Parts
from postmortem.frameworks.lending import Lending, Taking


class Made(Parts):
    """Objects that are Python values: a dict has attributes, a list items."""

    def __init__(self) -> None:
        self.layout = SimpleNamespace(version=(3, 12))
        self.values: Dict[int, Any] = {}
        self.bounds: Dict[int, int] = {}  # of deques
        super().__init__(self)  # type: ignore[arg-type]

    def make(self, value: Any, kind: str = "Thing") -> int:
        address = 0x1000 * (len(self.values) + 1)
        self.values[address] = (value, kind)
        return address

    def attributes(self, address: int) -> Dict[str, int]:
        value = self.values.get(address, (None, ""))[0]
        return value if isinstance(value, dict) else {}

    def items(self, address: int, most: int = 100) -> Optional[Tuple[int, ...]]:
        value = self.values.get(address, (None, ""))[0]
        return tuple(value[:most]) if isinstance(value, list) else None

    def is_plain(self, address: int) -> bool:
        return isinstance(self.values.get(address, (None, ""))[0], dict)

    def has_items(self, address: int) -> bool:
        return self.items(address) is not None

    def is_unordered(self, address: int) -> bool:
        return self.values[address][1] == "set"

    def type_of(self, address: int) -> Optional[int]:
        return sum(map(ord, self.values[address][1])) if address in self.values else None

    def type_name(self, address: int) -> Optional[str]:
        value, kind = self.values.get(address, (None, ""))
        return "NoneType" if value is None else type(value).__name__ if isinstance(value, (int, bool)) else kind

    def deque_bound(self, address: int) -> Optional[int]:
        return self.bounds.get(address)

    def length_or_none(self, address: int) -> Optional[int]:
        items = self.items(address)
        return None if items is None else len(items)

    def integer_or_none(self, address: Optional[int]) -> Optional[int]:
        value = self.values.get(address or 0, (None, ""))[0]
        return value if isinstance(value, int) else None

    @property
    def lending(self) -> Lending:
        frames: Any = type("Frames", (), {"objects": self})()
        return Lending(frames, self)


@pytest.mark.parametrize(
    "attributes, limits",
    [
        ({"max_connections": 4, "timeout": 20, "max_idle_time": 9}, (4,)),
        ({"_maxsize": 4, "_minsize": 2, "_max_queries": 50_000}, (4,)),
        ({"_total_tokens": 4, "_limit_per_host": 7}, (4,)),
        ({"size": True, "max_retries": 3, "capacity": 0}, ()),
    ],
)
def test_numbers_that_may_be_a_limit(attributes: Dict[str, int], limits: Tuple[int, ...]) -> None:
    """Neither times nor limits of something else, nor flags."""
    made = Made()
    thing = made.make({name: made.make(value) for name, value in attributes.items()})
    assert made.lending.numbers(thing).limits == limits


@pytest.mark.parametrize("overflow, limits", [(10, (15,)), (0, (5,)), (-1, ())])
def test_an_overflow_comes_on_top_of_the_queue(overflow: int, limits: Tuple[int, ...]) -> None:
    """A pool whose queue has five places may have more connections; without a bound it has no limit."""
    made = Made()
    queue = made.make({"maxsize": made.make(5), "queue": made.make([])})
    pool = made.make({"_pool": queue, "_max_overflow": made.make(overflow)})
    assert made.lending.numbers(pool).limits == limits


def test_permits_left_are_those_of_the_semaphore_inside() -> None:
    """An event's flag is none."""
    made = Made()
    semaphore = made.make({"_value": made.make(1), "_initial_value": made.make(3), "_cond": made.make({})})
    assert made.lending.numbers(made.make({"gate": semaphore}))[:2] == ((3,), 1)


def test_idle_parts_are_those_in_a_queue_or_in_a_list_within_another() -> None:
    """Parts that are not listed as free are out; one class at a time."""
    made = Made()
    first, second, third = (made.make({}, "Link") for _ in range(3))
    pool = made.make({"all": made.make([first, second, third]), "free": made.make([second])})
    assert made.lending.idle(pool) == {second}
    assert [listed.out for listed in made.lending.listed(pool, {second})] == [(first, third)]
    queued = made.make({"idle": made.make({"queue": made.make([third])}), "all": made.make([first, third])})
    assert made.lending.idle(queued) == {third}


def test_what_was_given_back_is_not_out() -> None:
    """It lost an attribute that others have, or leads to an idle part."""
    made = Made()
    idle, used, nothing = made.make({}), made.make({}), made.make(None)
    out, lost, resting = made.make({"record": used}), made.make({"record": nothing}), made.make({"record": idle})
    assert made.lending.out([out, lost, resting], {idle}) == [out]


def test_members_are_those_of_sets_and_dicts() -> None:
    """Workers in a list hold nothing by that."""
    made = Made()
    worker, borrower = made.make({}), made.make({})
    pool = made.make({"workers": made.make([worker]), "borrowers": made.make([borrower], "set")})
    assert list(made.lending.members(pool)) == [frozenset([borrower])]


@pytest.mark.parametrize(
    "attributes, used, expected",
    [
        ({"max_links": 3, "links": 3}, ("max_links", "links"), 3),
        ({"size": 3, "made": 3}, ("size", "made"), 3),
        ({"max_links": 3, "links": 2}, ("max_links", "links"), None),
        ({"max_links": 3, "links": 3}, ("links",), None),
        ({"_max_overflow": 10, "_overflow": 10}, ("_max_overflow", "_overflow"), 15),
        ({"_max_overflow": 10, "_overflow": -3}, ("_max_overflow", "_overflow"), None),
        ({"_max_overflow": 0, "_overflow": 0}, ("_max_overflow", "_overflow"), 5),
        ({"_max_overflow": 0, "_overflow": -1}, ("_max_overflow", "_overflow"), None),
        ({"max_links": 0, "links": 0}, ("max_links", "links"), None),
        ({"max_links": 3, "max_size": 3}, ("max_links", "max_size"), None),
    ],
)
def test_an_object_that_counts_as_much_as_it_lends(
    attributes: Dict[str, int], used: Tuple[str, ...], expected: Optional[int]
) -> None:
    """If the functions in which others wait read both, the count and the limit."""
    made = Made()
    queue = made.make({"maxsize": made.make(5), "queue": made.make([])})
    inside = {"_pool": queue} if "_overflow" in attributes else {}
    thing = made.make({**{name: made.make(value) for name, value in attributes.items()}, **inside})
    code: Any = type("Code", (), {"used_names": lambda self: used})()
    frame: Any = type("Frame", (), {"code": code})()
    lending = made.lending
    lending._called = lambda receiver, names: set()  # type: ignore[method-assign]
    assert lending.is_full(Taking(thing, frozenset(), frozenset(), (frame,)), set(), lambda one: False) == expected


@pytest.mark.parametrize(
    ("listed", "requests", "works", "expected"),
    [(2, False, False, 2), (1, False, False, None), (2, True, False, None), (2, False, True, None)],
)
def test_an_object_that_lists_as_much_as_it_lends(
    listed: int, requests: bool, works: bool, expected: Optional[int]
) -> None:
    """Beside an empty queue of idle parts, a list of all that exist: as many as the limit. Waiters and workers are none."""
    made = Made()
    parts = [made.make({"n": made.make(n)}) for n in range(listed)]
    queue = made.make({"maxsize": made.make(2), "queue": made.make([])})
    thing = made.make({"max_connections": made.make(2), "pool": queue, "_connections": made.make(parts)})
    kinds = {kind for part in parts for kind in [made.type_of(part)] if kind is not None} if requests else set()
    assert made.lending.is_full(Taking(thing, frozenset(), frozenset(), ()), kinds, lambda one: works) == expected


@pytest.mark.parametrize(
    ("begins", "items", "sleeps_there", "expected"),
    [
        (("pool", "put", "LifoQueue"), 0, True, 4),
        (("pool", "LifoQueue"), 0, True, None),
        (("pool", "put", "LifoQueue"), 1, True, None),
        (("pool", "put", "LifoQueue"), 0, False, None),
    ],
)
def test_an_object_whose_parts_are_items_of_a_queue(
    begins: Tuple[str, ...], items: int, sleeps_there: bool, expected: Optional[int]
) -> None:
    """Filled when the object is made, and empty now: all are out. A queue between producers and consumers begins empty."""
    made = Made()
    queue = made.make({"maxsize": made.make(4), "queue": made.make([made.make(None)] * items)}, "LifoQueue")
    thing, other = made.make({"pool": queue}), made.make({})
    code: Any = type("Code", (), {"used_names": lambda self: begins})()
    lending = made.lending
    lending._methods = lambda thing: {"__init__": code}  # type: ignore[method-assign]
    taking = Taking(thing, frozenset(), frozenset(), ())
    assert lending.emptied(taking, {queue if sleeps_there else other}) == expected


def test_what_sorts_others_by_a_key_lists_no_parts() -> None:
    """A connector whose only waiter stands in a queue of its host, while nothing is lent: neither host nor queue is a part."""
    made = Made()
    host, queue = made.make({"host": made.make(None)}, "Key"), made.make([made.make({}, "Future")], "collections.deque")
    thing = made.make({"_limit": made.make(1), "_acquired": made.make([], "set"), "_waiters": made.make([host, queue])})
    code: Any = type("Code", (), {"used_names": lambda self: ("_limit", "_acquired", "_waiters")})()
    frame: Any = type("Frame", (), {"code": code})()
    lending = made.lending
    lending._called = lambda receiver, names: set()  # type: ignore[method-assign]
    assert lending.is_full(Taking(thing, frozenset(), frozenset(), (frame,)), set(), lambda one: False) is None


def test_the_bound_of_a_deque_is_a_limit() -> None:
    """A pool that keeps its idle parts in a deque says so how many there are at most."""
    made = Made()
    free = made.make([], "collections.deque")
    made.bounds[free] = 6
    assert made.lending.numbers(made.make({"_free": free, "_used": made.make([], "set")})).limits == (6,)
