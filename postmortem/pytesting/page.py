"""The memory shared by pytest's process and its watchdog: the current phase, its start and limit, and the answer.

Each word has one writer. A phase begins with one store of eight bytes, the time: the phase with the latest start is the
current one. As no other phase begins at that time, it also identifies the phase (its *serial* number: the same eight
bytes as an integer). A hung process need not do anything to be read.

The watchdog imports this before anything has gone wrong, so this module imports next to nothing itself.
"""

from __future__ import annotations

import mmap

SIZE = 1 << 18
#: The kinds of phases; the last has no limit.
KINDS = ("setup", "call", "teardown", "collection", "exit", "idle")
SETUP, CALL, TEARDOWN, COLLECTION, EXIT_PHASE, IDLE = range(6)

#: Indices of eight-byte words, written by the test process. Start of each kind's last phase, in time.monotonic() seconds.
STARTS = 32
#: Limit of each kind in seconds, 0 for none; not rewritten for every test.
LIMITS = 24
#: ONE_CLOCK: whether a test's phases share one limit, counted from its setup.
ONE_CLOCK, NAME_SIZE, ENDED, DEBUGGED, STATUS, LEAST = range(6)
#: Words written by the watchdog.
WATCHDOG, STRUCK, ANSWERED, ANSWER_SIZE, ORDER = range(16, 21)
#: Values of ORDER: what the test process has to do on the watchdog's signal.
INTERRUPT, EXIT = 1, 2
#: Indices of bytes: the id of the test or collector, and the answer.
_NAME_AT, _ANSWER_AT = 1024, 8192
_NAME_MOST, ANSWER_MOST = _ANSWER_AT - _NAME_AT, SIZE - _ANSWER_AT


class Phase:
    """A phase: ``kind`` is one of KINDS, ``start`` in time.monotonic() seconds, ``limit`` in seconds, 0 for none."""

    __slots__ = ("kind", "limit", "serial", "start")

    def __init__(self, kind: str, serial: int, start: float, limit: float) -> None:
        self.kind, self.serial, self.start, self.limit = kind, serial, start, limit


class Page:
    """The shared memory. ``words`` and ``doubles`` are two views of it, by the indices above."""

    def __init__(self, descriptor: int) -> None:
        self._view(mmap.mmap(descriptor, SIZE))

    def _view(self, memory: mmap.mmap | bytearray) -> None:
        self.bytes = memory
        self.words = memoryview(memory).cast("Q")
        self.doubles = memoryview(memory).cast("d")

    def detach(self) -> None:
        """Replace the shared memory by private memory, in a forked process."""
        self._view(bytearray(SIZE))

    @property
    def serial(self) -> int:
        """Return the serial number of the current phase; 0 before the first."""
        return self.words[STARTS + self._latest()]

    def _latest(self) -> int:
        """Return the kind of the current phase, as an index into KINDS."""
        starts = self.doubles[STARTS : STARTS + len(KINDS)].tolist()
        return starts.index(max(starts))

    # ------------------------------------------------------------------ the watchdog's side

    def phase(self) -> Phase | None:
        """Return the current phase; None while it changes."""
        number = self._latest()
        serial = self.words[STARTS + number]
        limit = self.doubles[LIMITS + number] if number != IDLE and serial != self.words[DEBUGGED] else 0.0
        shared = number <= TEARDOWN and self.words[ONE_CLOCK]
        found = Phase(KINDS[number], serial, self.doubles[STARTS + (SETUP if shared else number)], limit)
        return found if self.serial == serial else None

    def node(self) -> str:
        """Return the id of the test or collector."""
        size = min(self.words[NAME_SIZE], _NAME_MOST)
        return bytes(self.bytes[_NAME_AT : _NAME_AT + size]).decode("utf-8", "replace")

    def answer(self, serial: int, data: bytes) -> None:
        """Write an answer; the serial number last, because a reader that sees it reads the data."""
        data = data[:ANSWER_MOST]
        self.bytes[_ANSWER_AT : _ANSWER_AT + len(data)] = data
        self.words[ANSWER_SIZE] = len(data)
        self.words[ANSWERED] = serial

    # ------------------------------------------------------------------ the test process's side

    def name(self, nodeid: str) -> None:
        """Write the id of the test or collector."""
        data = nodeid.encode("utf-8", "replace")[:_NAME_MOST]
        self.bytes[_NAME_AT : _NAME_AT + len(data)] = data
        self.words[NAME_SIZE] = len(data)

    def begin(self, kind: int, now: float) -> None:
        """Begin a phase."""
        self.doubles[STARTS + kind] = now

    def answered(self) -> bytes:
        """Return the watchdog's answer."""
        size = min(self.words[ANSWER_SIZE], ANSWER_MOST)
        return bytes(self.bytes[_ANSWER_AT : _ANSWER_AT + size])
