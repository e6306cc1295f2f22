"""Reading of trio's objects, synthesised: primitives, channels, deadlines of scopes, waits of tasks."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest

from postmortem.cpython.objects.builtins import NotThat
from postmortem.frameworks.channels import channel, channel_of
from postmortem.frameworks.trio.awaiting import TrioAwaiting, Worker
from postmortem.frameworks.trio.primitives import TrioPrimitives
from postmortem.frameworks.trio.scopes import Expiry, Scopes

from ....support.pythonheap import Heap

SITE = "/venv/site-packages/"


class Frame:
    """A frame of a function, with its variables."""

    def __init__(self, file: str, function: str, /, **variables: int) -> None:
        self.code = SimpleNamespace(filename=file, name=function, qualname=function, address=id(self))
        self.function, self.variables = function, variables


class Trio(Heap):
    """Python's objects, frames and parts in one; every class is trio's own unless it is listed."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: Dict[str, str] = {}
        self.finished: List[int] = []
        self.none = self.make("NoneType")
        self.objects = self.frames = self  # as Python and as Frames

    def number_of(self, value: float) -> int:
        return self.make("float", value)

    def attributes(self, address: int) -> Dict[str, int]:  # type: ignore[override]
        return self.parts.get(address, {})

    def type_of(self, address: int) -> Any:
        return address if address in self.kinds else None

    def module(self, kind: int) -> str:
        return self.modules.get(self.kinds[kind], "trio")

    def integer_or_none(self, address: Optional[int]) -> Optional[int]:
        value = self.inside.get(address) if address is not None else None
        return int(value) if isinstance(value, (int, float)) and math.isfinite(value) else None

    def number(self, address: int) -> float:
        value = self.inside.get(address)
        if not isinstance(value, (int, float)):
            raise NotThat("no number")
        return value

    def local(self, frame: Frame, name: str) -> Optional[int]:
        return frame.variables.get(name)

    def generator(self, address: int) -> Any:
        return SimpleNamespace(state="finished" if address in self.finished else "suspended", frame=None)

    def task(self, **attributes: int) -> int:
        return self.make("Task", coro=self.make("coroutine"), **attributes)


@pytest.fixture
def heap() -> Trio:
    return Trio()


def primitives(heap: Trio) -> TrioPrimitives:
    return TrioPrimitives(heap, heap)  # type: ignore[arg-type]


def waits(heap: Trio, task: int, *frames: Frame, workers: Sequence[Worker] = ()) -> Any:
    return TrioAwaiting(heap, heap, workers).of(task, frames)  # type: ignore[arg-type]


def state(heap: Trio, size: float, items: int = 0, buffer: str = "data") -> int:
    counts = {name: heap.number_of(1) for name in ("open_send_channels", "open_receive_channels")}
    held = {buffer: heap.make("collections.deque", [0] * items)}
    return heap.make("MemoryChannelState", max_buffer_size=heap.number_of(size), **counts, **held)


# ---------------------------------------------------------------------- primitives


def test_a_lock_records_its_owner(heap: Trio) -> None:
    """One that has ended is told apart; without an owner the lock is free."""
    owner, ended = heap.task(), heap.task()
    heap.finished.append(heap.parts[ended]["coro"])
    lot = heap.make("ParkingLot", _parked=heap.make("dict"))
    held, lost, free = (heap.make("Lock", _lot=lot, _owner=who) for who in (owner, ended, heap.none))
    read = primitives(heap)
    assert [(p.locked, p.owner, p.owner_ended) for p in map(read.at, (held, lost, free)) if p is not None] == [
        (True, owner, False), (True, ended, True), (False, None, None)
    ]  # fmt: skip


def test_a_limiter_records_its_borrowers(heap: Trio) -> None:
    """The rest is the total without them, and unknown without a limit."""
    one, two = heap.task(), heap.task()
    borrowers = heap.make("set", [one, two])
    limited = heap.make("CapacityLimiter", _borrowers=borrowers, _total_tokens=heap.number_of(2))
    endless = heap.make("CapacityLimiter", _borrowers=borrowers, _total_tokens=heap.number_of(math.inf))
    found = primitives(heap).at(limited)
    assert found is not None and (found.kind, found.value, found.limit) == ("semaphore", 0, 2)
    assert found.holders == (one, two) and found.called == "CapacityLimiter"
    unlimited = primitives(heap).at(endless)
    assert unlimited is not None and (unlimited.value, unlimited.limit) == (None, None)


def test_classes_of_others_are_no_primitives(heap: Trio) -> None:
    """The name alone says nothing: threading has a Lock and an Event, too."""
    heap.modules["Event"] = "threading"
    assert primitives(heap).at(heap.make("Event", _flag=heap.none)) is None
    assert primitives(heap).at(heap.make("Lock")) is None, "without its attributes"
    assert primitives(heap).at(0x99) is None, "no object at all"


@pytest.mark.parametrize(
    ("size", "limit", "unbuffered"), [(0, None, True), (3, 3, False), (math.inf, 0, False), (math.nan, None, False)]
)
def test_channels_are_queues(heap: Trio, size: float, limit: Optional[int], unbuffered: bool) -> None:
    """Without a buffer they have no places; without a bound their limit is 0, as that of other queues."""
    at = state(heap, size, items=2)
    found = channel(heap, heap, at, "trio")  # type: ignore[arg-type]
    assert found is not None and (found.kind, found.value, found.limit) == ("queue", 2, limit)
    assert found.unbuffered == unbuffered


def test_an_end_leads_to_its_channel(heap: Trio) -> None:
    """anyio's streams have the same parts under another name; an end without a state leads nowhere."""
    at = state(heap, 1, buffer="buffer")
    end = heap.make("MemoryObjectSendStream", _state=at)
    found = channel_of(heap, heap, end, "anyio")  # type: ignore[arg-type]
    assert found is not None and found.address == at and found.called == "memory object stream"
    assert channel_of(heap, heap, heap.make("MemoryObjectSendStream"), "anyio") is None  # type: ignore[arg-type]
    assert channel_of(heap, heap, None, "anyio") is None  # type: ignore[arg-type]


# ---------------------------------------------------------------------- scopes


def scoped(heap: Trio, *around: Tuple[float, bool]) -> int:
    """A task inside of scopes, innermost first: (deadline, whether it is shielded)."""
    status = heap.none
    for deadline, shielded in reversed(around):
        scope = heap.make(
            "CancelScope", _registered_deadline=heap.number_of(deadline), _shield=heap.number_of(shielded)
        )
        status = heap.make("CancelStatus", _scope=scope, _parent=status)
    return heap.task(_cancel_status=status)


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ((), Expiry(False)),
        (((math.inf, False),), Expiry(False)),
        (((math.inf, False), (130.0, False)), Expiry(True, 30.0)),
        (((140.0, False), (130.0, False)), Expiry(True, 30.0)),
        (((140.0, True), (130.0, False)), Expiry(True, 40.0)),
        (((math.inf, True), (130.0, False)), Expiry(False)),
        (((math.nan, False),), Expiry(None)),
    ],
)
def test_the_first_deadline_that_reaches_a_task_counts(
    heap: Trio, around: Tuple[Tuple[float, bool], ...], expected: Expiry
) -> None:
    """Outer scopes end a wait too, unless a shield is in between; a damaged deadline leaves it unknown."""
    assert Scopes(heap, heap).expiry(scoped(heap, *around), 100.0) == expected  # type: ignore[arg-type]


def test_another_clock_has_no_known_times(heap: Trio) -> None:
    """A wait is limited then, until an unknown time; a circle of scopes ends somewhere."""
    scopes = Scopes(heap, heap)  # type: ignore[arg-type]
    own = heap.make("Runner", clock=heap.make("SystemClock", offset=heap.number_of(7.5)))
    other = heap.make("Runner", clock=heap.make("MockClock", offset=heap.number_of(7.5)))
    assert (scopes.offset(own), scopes.offset(other)) == (7.5, None)
    assert scopes.expiry(scoped(heap, (130.0, False)), None) == Expiry(True)
    scope = heap.make("CancelScope", _registered_deadline=heap.number_of(math.inf))
    status = heap.make("CancelStatus", _scope=scope)
    heap.parts[status]["_parent"] = status
    assert scopes.expiry(heap.task(_cancel_status=status), 0.0) == Expiry(None)


# ---------------------------------------------------------------------- waits

TRAP = Frame(f"{SITE}trio/_core/_traps.py", "wait_task_rescheduled")


def test_a_task_sends_on_a_channel(heap: Trio) -> None:
    """The channel is what it waits for, whichever of its ends waits; the direction is told."""
    at = state(heap, 0)
    end = heap.make("MemorySendChannel", _state=at)
    found = waits(heap, heap.task(), TRAP, Frame(f"{SITE}trio/_channel.py", "send", self=end))
    assert (found.kind, found.primitive.address, found.sends, found.end) == ("queue", at, True, end)
    assert waits(heap, heap.task(), TRAP, Frame(f"{SITE}trio/_channel.py", "receive", self=end)).sends is False


def test_what_is_around_a_parking_lot(heap: Trio) -> None:
    """A semaphore's lot is part of it; one that the program parks in itself is a condition."""
    lot = heap.make("ParkingLot", _parked=heap.make("dict"))
    semaphore = heap.make("Semaphore", _lot=lot, _value=heap.number_of(0), _max_value=heap.none)
    park = Frame(f"{SITE}trio/_core/_parking_lot.py", "park", self=lot)
    inside = waits(heap, heap.task(), TRAP, park, Frame(f"{SITE}trio/_sync.py", "acquire", self=semaphore))
    assert (inside.kind, inside.primitive.address) == ("semaphore", semaphore)
    alone = waits(heap, heap.task(), TRAP, park, Frame("/app/service.py", "acquire", self=semaphore))
    assert (alone.kind, alone.primitive.address) == ("condition", lot)


def test_a_notified_task_waits_for_the_lock_of_its_condition(heap: Trio) -> None:
    """notify() moves it to the lock's parking lot, while its frame is still that of the condition's wait()."""
    lots = [heap.make("ParkingLot", _parked=heap.make("dict")) for _ in range(2)]
    lock = heap.make("Lock", _lot=lots[0], _owner=heap.none)
    condition = heap.make("Condition", _lot=lots[1], _lock=lock)
    wait = Frame(f"{SITE}trio/_sync.py", "wait", self=condition)
    kinds = [waits(heap, heap.task(custom_sleep_data=lot), TRAP, wait).kind for lot in lots]
    assert kinds == ["lock", "condition"]


def test_a_nursery_waits_for_its_children(heap: Trio) -> None:
    """All of them are needed; without any, another task is being started in it."""
    children = [heap.task(), heap.task()]
    nursery = heap.make("Nursery", _children=heap.make("set", children))
    found = waits(heap, heap.task(), TRAP, Frame(f"{SITE}trio/_core/_run.py", "_nested_child_finished", self=nursery))
    assert (found.kind, found.tasks, found.any, found.all) == ("tasks", children, False, True)
    empty = heap.make("Nursery", _children=heap.make("set", []))
    frame = Frame(f"{SITE}trio/_core/_run.py", "_nested_child_finished", self=empty)
    assert waits(heap, heap.task(), TRAP, frame).kind == "other"


def test_a_function_in_a_thread(heap: Trio) -> None:
    """The worker is the one that delivers the outcome to this task; a task that waits for the limiter has none yet."""
    deliver, thread = heap.make("function"), heap.make("Thread")
    inside = Frame(f"{SITE}trio/_threads.py", "to_thread_run_sync", deliver_worker_fn_result=deliver)
    found = waits(heap, heap.task(), TRAP, inside, workers=[Worker(deliver, thread)])
    assert (found.kind, found.thread, found.future, found.stays) == ("thread", thread, deliver, True)
    leaves = Frame(
        f"{SITE}trio/_threads.py",
        "to_thread_run_sync",
        deliver_worker_fn_result=deliver,
        abandon_bool=heap.number_of(1),
    )
    assert waits(heap, heap.task(), TRAP, leaves).stays is False
    borrowers = heap.make("set", [])
    limiter = heap.make("CapacityLimiter", _borrowers=borrowers, _total_tokens=heap.number_of(1))
    acquire = Frame(f"{SITE}trio/_sync.py", "acquire_on_behalf_of", self=limiter)
    assert waits(heap, heap.task(), TRAP, acquire, inside).kind == "semaphore"


def test_sleeping(heap: Trio) -> None:
    """sleep() is limited by a deadline, with its seconds; sleep_forever() waits for nothing that anybody could do."""
    forever = Frame(f"{SITE}trio/_timeouts.py", "sleep_forever")
    until = Frame(f"{SITE}trio/_timeouts.py", "sleep_until")
    sleep = Frame(f"{SITE}trio/_timeouts.py", "sleep", seconds=heap.number_of(2.5))
    slept = waits(heap, heap.task(), TRAP, forever, until, sleep)
    assert (slept.kind, slept.timed, slept.seconds, slept.detail) == ("sleep", True, 2.5, "sleep(2.5)")
    assert waits(heap, heap.task(), TRAP, forever, until).kind == "sleep"
    parked = waits(heap, heap.task(), TRAP, forever)
    assert (parked.kind, parked.primitive, parked.timed) == ("event", None, False)


def test_an_unknown_wait_is_named_by_its_function(heap: Trio) -> None:
    """A file of the program that is called like one of trio's is none of them; no frames, no wait."""
    assert waits(heap, heap.task(), TRAP, Frame("/app/trio_tools.py", "send")).kind == "other"
    assert waits(heap, heap.task(), TRAP).detail == "wait_task_rescheduled"
    assert waits(heap, heap.task()).detail is None


@pytest.mark.parametrize("name", ["self", "other"])
def test_a_channel_that_is_unreadable_is_no_known_wait(heap: Trio, name: str) -> None:
    """Garbage in place of the end leaves the waiting function."""
    found = waits(heap, heap.task(), TRAP, Frame(f"{SITE}trio/_channel.py", "send", **{name: 0x77}))
    assert (found.kind, found.detail) == ("other", "send")
