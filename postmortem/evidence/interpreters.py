"""The state of a Python interpreter: its GIL, garbage collection, version."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec


class Gil(msgspec.Struct, frozen=True):
    """The global interpreter lock: whether it is held, the holder, and hand-offs over the window."""

    locked: Optional[bool] = None
    holder_tid: Optional[int] = None
    switch_interval: Optional[float] = None  # seconds
    handoffs: Optional[int] = None  # changes of holder during the window, as counted by the interpreter
    handoffs_per_s: Optional[float] = None


class Collections(msgspec.Struct, frozen=True):
    """The activity of the cyclic garbage collector over the window."""

    seconds: float
    looks: int = 0  # number of observations
    busy: int = 0  # observations during a collection
    counts: Optional[Tuple[int, ...]] = None  # of each generation, the youngest first, as counted by the interpreter

    @property
    def share(self) -> Optional[float]:
        """Return the share of observations during a collection (0 to 1); None without observations."""
        return self.busy / self.looks if self.looks else None


class StopTheWorld(msgspec.Struct, frozen=True):
    """A stop-the-world pause of a free-threaded build: a thread suspends all others, e.g. to collect garbage."""

    requested: bool
    stopped: bool  # all other threads are suspended
    requester_tid: Optional[int] = None


class Interpreter(msgspec.Struct, frozen=True):
    """An interpreter of a process, main or sub-interpreter, with its GIL and garbage collector."""

    id: int
    gil: Optional[Gil] = None
    collecting: Optional[bool] = None  # is a garbage collection in progress?
    stop_the_world: Optional[StopTheWorld] = None
    collections: Optional[Collections] = None


class PythonInfo(msgspec.Struct, frozen=True):
    """The version and build of a process's Python."""

    version: str
    implementation: str = "CPython"
    free_threaded: bool = False
    debug: Optional[bool] = None
    finalizing: Optional[bool] = None
