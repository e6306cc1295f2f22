"""The memory that pytest's process and its watchdog share: what runs, since when, how long it may take, and the answer.

Each word has one writer. A phase begins with one store of eight bytes, the time: what began last is under way, and nothing
else has begun at that time, which is therefore also its name (its *serial* number: the same eight bytes as an integer). A
process that hangs need not do anything to be read.

The watchdog imports this before anything has gone wrong, so it imports next to nothing itself.
"""

from __future__ import annotations

import mmap

SIZE = 1 << 18
#: What is under way. Last of all: nothing that has a limit.
KINDS = ("setup", "call", "teardown", "collection", "exit", "idle")
SETUP, CALL, TEARDOWN, COLLECTION, EXIT_PHASE, IDLE = range(6)

#: Indices of eight-byte words. The process's: when each of KINDS began last, in time.monotonic() seconds,
STARTS = 32
#: how long each may take (seconds, 0: no limit), which is not another one for every test,
LIMITS = 24
#: and, ONE_CLOCK, whether a test's phases share one limit, counted from its setup.
ONE_CLOCK, NAME_SIZE, ENDED, DEBUGGED, STATUS, LEAST = range(6)
#: The watchdog's.
WATCHDOG, STRUCK, ANSWERED, ANSWER_SIZE, ORDER = range(16, 21)
#: Values of ORDER: what the process is to do when the watchdog's signal comes.
INTERRUPT, EXIT = 1, 2
#: Indices of bytes: the id of the test or collector, and the answer.
_NAME_AT, _ANSWER_AT = 1024, 8192
_NAME_MOST, ANSWER_MOST = _ANSWER_AT - _NAME_AT, SIZE - _ANSWER_AT


class Phase:
    """``kind``: one of KINDS. ``start`` in time.monotonic() seconds, ``limit`` in seconds, 0 for none."""

    __slots__ = ("kind", "limit", "serial", "start")

    def __init__(self, kind: str, serial: int, start: float, limit: float) -> None:
        self.kind, self.serial, self.start, self.limit = kind, serial, start, limit


class Page:
    """``words`` and ``doubles`` are two views of the same memory, by the indices above."""

    def __init__(self, descriptor: int) -> None:
        self._view(mmap.mmap(descriptor, SIZE))

    def _view(self, memory: mmap.mmap | bytearray) -> None:
        self.bytes = memory
        self.words = memoryview(memory).cast("Q")
        self.doubles = memoryview(memory).cast("d")

    def detach(self) -> None:
        """For a forked process: what it writes from now on nobody reads."""
        self._view(bytearray(SIZE))

    @property
    def serial(self) -> int:
        """Of what is under way; 0 before anything is."""
        return self.words[STARTS + self._latest()]

    def _latest(self) -> int:
        starts = self.doubles[STARTS : STARTS + len(KINDS)].tolist()
        return starts.index(max(starts))

    # ------------------------------------------------------------------ the watchdog's side

    def phase(self) -> Phase | None:
        """What is under way; None while it changes."""
        number = self._latest()
        serial = self.words[STARTS + number]
        limit = self.doubles[LIMITS + number] if number != IDLE and serial != self.words[DEBUGGED] else 0.0
        shared = number <= TEARDOWN and self.words[ONE_CLOCK]
        found = Phase(KINDS[number], serial, self.doubles[STARTS + (SETUP if shared else number)], limit)
        return found if self.serial == serial else None

    def node(self) -> str:
        """The id of the test or collector."""
        size = min(self.words[NAME_SIZE], _NAME_MOST)
        return bytes(self.bytes[_NAME_AT : _NAME_AT + size]).decode("utf-8", "replace")

    def answer(self, serial: int, data: bytes) -> None:
        """Data first: who sees the serial number may read them."""
        data = data[:ANSWER_MOST]
        self.bytes[_ANSWER_AT : _ANSWER_AT + len(data)] = data
        self.words[ANSWER_SIZE] = len(data)
        self.words[ANSWERED] = serial

    # ------------------------------------------------------------------ the process's side

    def name(self, nodeid: str) -> None:
        data = nodeid.encode("utf-8", "replace")[:_NAME_MOST]
        self.bytes[_NAME_AT : _NAME_AT + len(data)] = data
        self.words[NAME_SIZE] = len(data)

    def begin(self, kind: int, now: float) -> None:
        self.doubles[STARTS + kind] = now

    def answered(self) -> bytes:
        size = min(self.words[ANSWER_SIZE], ANSWER_MOST)
        return bytes(self.bytes[_ANSWER_AT : _ANSWER_AT + size])
