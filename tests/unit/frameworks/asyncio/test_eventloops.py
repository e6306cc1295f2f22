"""The ready queue of a uvloop, whose fields are words of C structs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Sequence

import pytest

from postmortem.cpython.objects.builtins import NotThat
from postmortem.frameworks.asyncio import eventloops
from postmortem.frameworks.asyncio.eventloops import EventLoops

LOOP, QUEUE, HANDLE, CANCELLED, FUNCTION, CONTEXT, NOTHING = range(0x1000, 0x8000, 0x1000)
CODE = 0xC0DE


class Target:
    """Objects by address: their type, and the words behind their header."""

    def __init__(self) -> None:
        self.kinds = {
            LOOP: "uvloop.Loop", QUEUE: "collections.deque", HANDLE: "uvloop.loop.Handle",
            CANCELLED: "uvloop.loop.Handle", FUNCTION: "function", CONTEXT: "_contextvars.Context", NOTHING: "NoneType",
        }  # fmt: skip
        self.inside: Dict[int, List[int]] = {
            LOOP: [0x77, 0, QUEUE, NOTHING],
            HANDLE: [0x77, LOOP, CONTEXT, 1, FUNCTION, NOTHING],
            CANCELLED: [0x77, LOOP, CONTEXT, 1, NOTHING, NOTHING],
        }
        self.queued = [CANCELLED, HANDLE]
        self.memory = self.objects = self.frames = self

    def type_name(self, address: int) -> Optional[str]:
        return self.kinds.get(address)

    def is_instance(self, address: int, name: str) -> bool:
        return address == LOOP and name == "uvloop.loop.Loop"

    def type_of(self, address: int) -> Any:
        if address not in self.kinds:
            raise NotThat("not an object")
        return SimpleNamespace(basicsize=16 + 8 * len(self.inside.get(address, ())))

    def words(self, address: int, count: int) -> Sequence[int]:
        return [1, 0, *self.inside[address]][:count]

    def deque_items(self, address: int, _limit: int) -> Sequence[int]:
        assert address == QUEUE
        return self.queued

    def length_or_none(self, address: Optional[int]) -> Optional[int]:
        return len(self.queued) if address == QUEUE else None

    def integer_or_none(self, _address: Optional[int]) -> None:
        return None


def read(target: Target, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The loop that nobody runs, by its address."""
    monkeypatch.setattr(eventloops, "attributes", lambda _objects, _address: {})
    monkeypatch.setattr(eventloops, "class_value", lambda _objects, _address, _name: None)
    monkeypatch.setattr(eventloops, "Slots", lambda _objects: None)
    functions: Any = SimpleNamespace(code=lambda called: SimpleNamespace(address=CODE) if called == FUNCTION else None)
    python: Any = target
    interpreter: Any = SimpleNamespace(threads=[])
    return EventLoops(python, interpreter, functions).of([LOOP])[0]


def test_the_only_deque_is_the_ready_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle's callback follows its loop and context; a cancelled one has none."""
    loop = read(Target(), monkeypatch)
    assert (loop.kind, loop.ready, loop.callbacks) == ("uvloop", 2, [CODE])
    assert [handle.callback for handle in loop.queue] == [FUNCTION]


def test_several_deques_are_no_ready_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version may have another one: then the queue is unknown."""
    target = Target()
    target.kinds[0x9000] = "collections.deque"
    target.inside[LOOP].append(0x9000)
    loop = read(target, monkeypatch)
    assert (loop.ready, loop.queue) == (None, [])
