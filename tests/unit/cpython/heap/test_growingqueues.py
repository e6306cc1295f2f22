"""Queues, recognised by what they are made of."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, List, Tuple

import pytest

from postmortem.cpython.heap import queues, variablesearch
from postmortem.cpython.heap.queues import Backlogs, Queue, length
from postmortem.cpython.heap.variablesearch import User
from postmortem.cpython.objects.builtins import NotThat
from postmortem.timelimits import TimeLimit

from ....support.pythonheap import Frame, Heap


class Queues(Heap):
    """With room for a deque's maxlen, and for slots."""

    def __init__(self) -> None:
        super().__init__()
        self.layout = SimpleNamespace(ob_extra=0)
        self.memory = self
        self.maxlen = -1

    def i64(self, _address: int) -> int:
        return self.maxlen

    def get(self, address: int, name: str) -> int:
        """In place of ``Slots``."""
        return dict(self.inside[address]).get(name, 0) if self.kinds[address] == "StreamState" else 0


@pytest.fixture
def heap(monkeypatch: pytest.MonkeyPatch) -> Queues:
    made = Queues()
    for module in (queues, variablesearch):
        monkeypatch.setattr(module, "attributes", Heap.attributes)
    monkeypatch.setattr(queues, "class_value", Heap.class_value)
    monkeypatch.setattr(queues, "Slots", lambda _objects: made)
    return made


def found(heap: Queues, *frames: Frame) -> List[Queue]:
    python: Any = heap
    users: List[Any] = [User(n, None, frame) for n, frame in enumerate(frames)]  # type: ignore[arg-type]
    return Backlogs(python, TimeLimit(60)).found(users)


def number(heap: Queues, value: float) -> int:
    return heap.make("int", value)


@pytest.mark.parametrize(
    ("parts", "bound"), [(("queue", "maxsize"), 5), (("_queue", "_maxsize"), 0), (("_buffer", "_maxsize"), 9)]
)
def test_a_container_beside_a_bound_is_a_queue(heap: Queues, parts: Tuple[str, str], bound: int) -> None:
    """queue.Queue, asyncio.Queue and multiprocessing.Queue; what has no bound beside it is none."""
    items = heap.make("collections.deque", [1, 2, 3])
    made = heap.make("Queue", **{parts[0]: items, parts[1]: number(heap, bound)})
    other = heap.make("Basket", **{parts[0]: heap.make("dict", [])})
    (queue,) = found(heap, Frame("main", {"jobs": made, "basket": other}))
    assert (queue.address, queue.name, queue.kind, queue.container, queue.limit) == (
        made,
        "jobs",
        "Queue",
        items,
        bound,
    )
    objects: Any = heap
    assert length(objects, queue) == 3


@pytest.mark.parametrize("bound", [0, -1, math.inf, (1 << 31) - 1])
def test_no_bound_has_many_spellings(heap: Queues, bound: float) -> None:
    """Zero, below, infinite, and the most that a semaphore counts to."""
    made = heap.make("Queue", queue=heap.make("collections.deque"), maxsize=number(heap, bound))
    (queue,) = found(heap, Frame("main", {"jobs": made}))
    assert queue.limit == 0


def test_streams_of_anyio_keep_theirs_in_slots(heap: Queues) -> None:
    """A dataclass without a dict."""
    buffer, most = heap.make("collections.deque", [1]), number(heap, 4)
    state = heap.make("StreamState", [("buffer", buffer), ("max_buffer_size", most)])
    (queue,) = found(heap, Frame("main", {"state": state}))
    assert (queue.container, queue.limit) == (buffer, 4)


@pytest.mark.parametrize(("maxlen", "limit"), [(-1, 0), (7, 7)])
def test_a_bare_deque_is_one(heap: Queues, maxlen: int, limit: int) -> None:
    """Its maxlen is its bound; a list is just a list."""
    heap.maxlen = maxlen
    made = heap.make("collections.deque", [1])
    (queue,) = found(heap, Frame("main", {"recent": made, "rows": heap.make("list", [1])}))
    assert (queue.address, queue.limit) == (made, limit)


def test_who_uses_a_queue_and_through_what_it_was_found(heap: Queues) -> None:
    """Each thread once, however many of its frames lead there; the names on the way."""
    made = heap.make("collections.deque")
    pool = heap.make("app.Pool", work=made)
    frames = [Frame("run", {"pool": pool}), Frame("main", {"pool": pool})]
    (queue,) = found(heap, *frames)
    assert (queue.name, queue.through) == ("Pool.work", ("pool",))
    assert [user.thread for user in queue.users] == [0, 1]


def test_a_damaged_queue_has_no_length(heap: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is NotThat, and never zero."""
    monkeypatch.setattr(queues, "simple_queue", lambda _objects, _address: None)
    made = heap.make("_queue.SimpleQueue")
    (queue,) = found(heap, Frame("main", {"jobs": made}))
    assert queue.kind == "queue.SimpleQueue"
    objects: Any = heap
    with pytest.raises(NotThat):
        length(objects, queue)
