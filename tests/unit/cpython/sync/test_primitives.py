"""Objects that threads wait for: from frames of the standard library, and queues made in C on synthesised memory."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest

from postmortem.cpython.objects.builtins import Objects
from postmortem.cpython.runtime import layouts as L
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.cpython.sync.primitives import layers, simple_queue
from postmortem.memory import Segments

TYPE, LIST_TYPE, NAMES, QUEUE, LIST, ITEMS = 0x10000, 0x11000, 0x12000, 0x20000, 0x21000, 0x30000


def target(version: Tuple[int, int], size: int, name: bytes = b"_queue.SimpleQueue") -> Tuple[Segments, Objects]:
    """A SimpleQueue of so many bytes, a list, and room for items."""
    layout = LAYOUTS[version]
    memory = Segments(
        {
            TYPE: b"\0" * 4096,
            LIST_TYPE: b"\0" * 4096,
            QUEUE: b"\0" * 128,
            LIST: b"\0" * 128,
            ITEMS: b"\0" * 128,
            NAMES: b"\0" * 64,
        }
    )
    memory.put(NAMES, name + b"\0list\0")
    for type_, at, flags, basicsize in (
        (TYPE, NAMES, 0, size),
        (LIST_TYPE, NAMES + len(name) + 1, L.FLAG_LIST, 40),
    ):
        memory.put_words(type_ + layout.tp_name, at)
        memory.put_words(type_ + layout.tp_basicsize, basicsize)
        memory.put_words(type_ + layout.tp_flags, flags)
    memory.put_words(QUEUE + layout.ob_type, TYPE)
    memory.put_words(LIST + layout.ob_type, LIST_TYPE)
    return memory, Objects(memory, layout)


def test_a_queue_over_a_list() -> None:
    """Up to 3.12: those before lst_pos have been taken."""
    memory, objects = target((3, 12), 56)
    memory.put_words(QUEUE + 16, 0xABC0, 0, LIST, 2)
    memory.put_words(LIST + objects.layout.ob_size, 5)
    memory.put_words(LIST + objects.layout.list_items, ITEMS)
    memory.put_words(ITEMS, 1, 2, 3, 4, 5)
    found = simple_queue(objects, QUEUE)
    assert found is not None and found.items == (3, 4, 5)


def test_a_queue_over_a_ring() -> None:
    """From 3.13 on: the items begin at get_idx and go round."""
    memory, objects = target((3, 12), 72)
    memory.put_words(QUEUE + 24, 1, 2, ITEMS, 4, 3)
    memory.put_words(ITEMS, 1, 2, 3, 4)
    found = simple_queue(objects, QUEUE)
    assert found is not None and found.items == (3, 4, 1)


@pytest.mark.parametrize(
    "ring", [(1, 2, ITEMS, 4, 5), (0, 0, 0x9999000, 4, 1), (0, 0, ITEMS, 1 << 40, 1), (0, 0, ITEMS, 0, 1)]
)
def test_a_damaged_queue_has_unknown_items(ring: Tuple[int, ...]) -> None:
    """More items than places, items that are not there, places that nobody has: unknown, not empty."""
    memory, objects = target((3, 12), 72)
    memory.put_words(QUEUE + 24, *ring)
    found = simple_queue(objects, QUEUE)
    assert found is not None and found.items is None


def test_what_is_no_queue() -> None:
    """Another type, and no object at all."""
    _memory, objects = target((3, 12), 72, b"_queue.Simple")
    assert simple_queue(objects, QUEUE) is None
    assert simple_queue(objects, 0x77777000) is None


class Code(NamedTuple):
    name: str
    filename: str


class Call:
    """A frame: its function, and the type of its ``self`` (or of the variable named), whose address is its depth."""

    def __init__(self, file: str, function: str, type_name: Optional[str] = None, variable: str = "self") -> None:
        self.code = Code(function, f"/usr/lib/python3.12/{file}")
        self.function, self.type_name, self.variable = function, type_name, variable


class Reader:
    """What ``layers`` asks of frames."""

    def __init__(self, stack: List[Call]) -> None:
        self.known: Dict[int, Call] = {100 + depth: call for depth, call in enumerate(stack)}
        self.objects = self

    def local(self, frame: Call, name: str) -> Optional[int]:
        return next((a for a, call in self.known.items() if call is frame and call.variable == name), None)

    def is_instance(self, address: int, name: str) -> bool:
        return self.known[address].type_name == name


def kinds(*stack: Call) -> List[Tuple[str, str, int]]:
    reader: Any = Reader(list(stack))
    frames: Any = list(stack)
    return [(layer.kind, layer.function, layer.address - 100) for layer in layers(reader, frames)]


WAIT = Call("threading.py", "wait", "Condition")


def test_the_outermost_object_is_what_the_program_waits_for() -> None:
    """A get is a wait on a condition inside the queue; the program's own frames end the search."""
    get, mine = Call("queue.py", "get", "Queue"), Call("app/get.py", "get", "Queue")
    assert kinds(WAIT, get, mine) == [("condition", "wait", 0), ("queue", "get", 1)]
    barrier = [Call("threading.py", name, "Barrier") for name in ("_wait", "wait")]
    assert kinds(WAIT, Call("threading.py", "wait_for", "Condition"), *barrier)[-1] == ("barrier", "wait", 3)


def test_functions_of_one_name_are_told_apart_by_their_objects() -> None:
    """``wait`` is a method of three classes of threading.py; another class of that name's file is none of them."""
    assert kinds(WAIT, Call("threading.py", "wait", "Event"))[-1][0] == "event"
    assert kinds(Call("threading.py", "wait", "Popen")) == []


def test_several_futures_are_awaited_together() -> None:
    """wait() and as_completed() keep those that are left in a variable."""
    event = Call("threading.py", "wait", "Event")
    several = Call("concurrent/futures/_base.py", "as_completed", "set", "pending")
    assert kinds(WAIT, event, several)[-1] == ("futures", "as_completed", 2)
    assert kinds(WAIT, event, Call("app.py", "wait", "set", "not_done"))[-1][0] == "event"


def test_frames_of_the_program_wait_for_nothing_of_these() -> None:
    """Nor does a thread without frames."""
    assert kinds(Call("app.py", "acquire", "Semaphore"), WAIT) == []
    assert kinds() == []
