"""Loops that only sleep and count, in threads of this process; and those that do anything beside."""

from __future__ import annotations

import contextlib
import ctypes
import linecache
import os
import sys
import threading
import time
from time import sleep
from types import FrameType
from typing import Any, Callable, Iterator, Optional

import pytest

from postmortem.cpython.execution.library import Library, Limits
from postmortem.cpython.execution.quiet import Quiet
from postmortem.cpython.frames.heapframes import frames_of
from postmortem.timelimits import TimeLimit

from .ownprocess import objects

beats = 0
GATE, LOCK, OTHERS = threading.Event(), threading.Lock(), [1]
held: Any = object()
keep = True


class Meter:
    total = 0

    def __init__(self) -> None:
        self.beats, self.last_at = 0, 0.0
        self.last: Any = object()

    def run(self) -> None:
        while True:
            self.beat()

    def beat(self) -> None:
        self.beats += 1
        self.last_at = time.monotonic()
        time.sleep(0.3)

    def forget(self) -> None:
        while True:
            time.sleep(0.3)
            self.last = 0 if self.beats < 0 else object()

    @classmethod
    def count(cls) -> None:
        while True:
            Meter.total += 1
            time.sleep(0.3)


class Watched(Meter):
    @property
    def rate(self) -> int:
        GATE.set()
        return 1

    def run(self) -> None:
        while True:
            time.sleep(0.3)
            if self.rate > 3:
                time.sleep(0.02)


class Guarded(Meter):
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "gate":
            GATE.set()
        object.__setattr__(self, name, value)


def count() -> None:
    global beats  # noqa: PLW0603 - what heartbeats do
    while True:
        beats += 1
        time.sleep(0.3)


def imported() -> None:
    number = 0
    while True:
        number += 1
        if number % 10 == 3 and not number < 0:
            sleep(0.02)
        sleep(0.3)


def ends() -> None:
    while keep:
        time.sleep(0.3)


def sets() -> None:
    while True:
        time.sleep(0.3)
        if beats < 0:
            GATE.set()


def writes() -> None:
    while True:
        time.sleep(0.3)
        os.write(1, b"")


def fills() -> None:
    while True:
        time.sleep(0.3)
        OTHERS.append(1)


def drops() -> None:
    global held  # noqa: PLW0603 - the object that it drops
    while True:
        time.sleep(0.3)
        if beats < 0:
            held = 0


def leaves() -> None:
    with LOCK:
        while True:
            time.sleep(0.3)
            if beats < 0:
                break


def builds() -> None:
    while True:
        time.sleep(0.3)
        [beats]  # noqa: B018 - the collector may run where a list is made


def imports() -> None:
    while True:
        time.sleep(0.3)
        import json  # noqa: F401, PLC0415 - it is the import that counts


def unknown() -> None:
    while True:
        time.sleep(0.3)
        if beats > 0 or beats <= 0:
            continue
        missing()  # type: ignore[name-defined]  # noqa: F821


def breaks() -> None:
    while True:
        time.sleep(0.3)
        if beats < 0:
            raise SystemExit


def is_quiet(function: Callable[[], Any]) -> bool:
    """Whether a thread of this process that runs a function is quiet, when it is found asleep."""

    def run() -> None:
        with contextlib.suppress(SystemExit):
            function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    frames = frames_of(objects())
    try:
        while True:  # it sleeps long enough for its memory to be read
            time.sleep(0.02)
            read = [frames.frame(address) for address in frames_of_thread(thread.ident)]
            innermost = read[0]
            assert innermost is not None
            if "sleep" in linecache.getline(innermost.code.filename, innermost.line or 0):
                break
        library = Library(frames, {})
        return Quiet(library, Limits(TimeLimit(1e6))).is_quiet([frame for frame in read if frame is not None])
    finally:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        thread.join()


def frames_of_thread(ident: Optional[int]) -> Iterator[int]:
    """Addresses of a thread's frames, most recent call first."""
    frame: Optional[FrameType] = sys._current_frames()[ident or 0]
    while frame is not None:
        inside = id(frame) if objects().layout.heap_frames else objects().memory.u64(id(frame) + 24)  # f_frame
        yield inside
        frame = frame.f_back


METER, WATCHED, GUARDED = Meter(), Watched(), Guarded()


@pytest.mark.parametrize("function", [count, imported, METER.run, Meter.count], ids=lambda each: each.__qualname__)
def test_what_sleeps_and_counts_for_ever_is_quiet(function: Callable[[], Any]) -> None:
    """In one function or several; globals, locals and attributes."""
    assert is_quiet(function)


@pytest.mark.parametrize(
    "function",
    [ends, sets, writes, fills, drops, leaves, builds, imports, breaks, METER.forget, WATCHED.run, GUARDED.run],
    ids=lambda each: each.__qualname__,
)
def test_whatever_else_a_loop_does_is_an_effect(function: Callable[[], Any]) -> None:
    """Its end, too: it may drop objects; and what is not known."""
    assert not is_quiet(function)


def test_an_unknown_call_is_an_effect() -> None:
    """Another thread may define the name before it is called."""
    assert not is_quiet(unknown)


def flag() -> Callable[[int, Any], None]:
    meter = Meter()

    def handle(number: int, frame: Any) -> None:
        meter.beats = 1

    return handle


def notes(number: int, frame: Any) -> None:
    METER.last = number  # it drops an object


def raises(number: int, frame: Any) -> None:
    raise TimeoutError


def wakes(number: int, frame: Any) -> None:
    GATE.set()


@pytest.mark.parametrize(("handler", "quiet"), [(flag(), True), (notes, False), (raises, False), (wakes, False)])
def test_a_handler_may_only_set_a_flag(handler: Callable[[int, Any], None], quiet: bool) -> None:
    """One that raises, signals or drops an object does more."""
    library = Library(frames_of(objects()), {})
    assert Quiet(library, Limits(TimeLimit(1e6))).sets_a_flag(id(handler)) is quiet
