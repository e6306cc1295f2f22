"""The memory that pytest's process and its watchdog share: what runs, since when, how long it may take, and the answer.

Each word has one writer. The process writes START and at last SERIAL, each in one store of eight bytes; who reads SERIAL
twice around the others has what belongs together. A process that hangs need not do anything to be read.

The watchdog imports this before anything has gone wrong, so it imports next to nothing itself.
"""

from __future__ import annotations

import mmap

SIZE = 1 << 18
#: Indices of eight-byte words. The process's:
START, SERIAL, NODE_SIZE, ENDED, DEBUGGED, STATUS, LEAST = range(7)
#: and the first of its limits, one for each of KINDS: they are written when they change, which is not for every test.
LIMITS = 24
#: and the watchdog's.
WATCHDOG, STRUCK, ANSWERED, ANSWER_SIZE, ORDER = range(16, 21)
#: Values of ORDER: what the process is to do when the watchdog's signal comes.
INTERRUPT, EXIT = 1, 2
_NODE_AT, _ANSWER_AT = 1024, 8192
NODE_MOST, ANSWER_MOST = _ANSWER_AT - _NODE_AT, SIZE - _ANSWER_AT

#: What is under way: the low bits of SERIAL.
KINDS = ("setup", "call", "teardown", "collection", "exit")
SETUP, CALL, TEARDOWN, COLLECTION, EXIT_PHASE = range(5)
ONE_MORE = 1 << 3
#: In place of a kind: nothing that has a limit.
IDLE = ONE_MORE - 1


class Phase:
    """``start`` in time.monotonic() seconds, ``limit`` in seconds, 0 for none."""

    __slots__ = ("limit", "serial", "start")

    def __init__(self, serial: int, start: float, limit: float) -> None:
        self.serial, self.start, self.limit = serial, start, limit

    @property
    def kind(self) -> str:
        number = self.serial & IDLE
        return KINDS[number] if number < len(KINDS) else "?"


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

    # ------------------------------------------------------------------ the watchdog's side

    def phase(self) -> Phase | None:
        """What is under way; None while it changes."""
        serial = self.words[SERIAL]
        kind = serial & IDLE
        limit = self.doubles[LIMITS + kind] if kind < len(KINDS) and serial != self.words[DEBUGGED] else 0.0
        found = Phase(serial, self.doubles[START], limit)
        return found if self.words[SERIAL] == serial else None

    def node(self) -> str:
        """The id of the test or collector."""
        size = min(self.words[NODE_SIZE], NODE_MOST)
        return bytes(self.bytes[_NODE_AT : _NODE_AT + size]).decode("utf-8", "replace")

    def answer(self, serial: int, data: bytes) -> None:
        """Data first: who sees the serial number may read them."""
        data = data[:ANSWER_MOST]
        self.bytes[_ANSWER_AT : _ANSWER_AT + len(data)] = data
        self.words[ANSWER_SIZE] = len(data)
        self.words[ANSWERED] = serial

    # ------------------------------------------------------------------ the process's side

    def name(self, nodeid: str) -> None:
        data = nodeid.encode("utf-8", "replace")[:NODE_MOST]
        self.bytes[_NODE_AT : _NODE_AT + len(data)] = data
        self.words[NODE_SIZE] = len(data)

    def answered(self) -> bytes:
        size = min(self.words[ANSWER_SIZE], ANSWER_MOST)
        return bytes(self.bytes[_ANSWER_AT : _ANSWER_AT + size])
