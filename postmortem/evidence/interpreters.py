"""What an interpreter says of itself."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec


class Gil(msgspec.Struct, frozen=True):
    locked: Optional[bool] = None
    holder_tid: Optional[int] = None
    switch_interval: Optional[float] = None  # seconds
    handoffs: Optional[int] = None  # changes of holder during the window, the interpreter's own count
    handoffs_per_s: Optional[float] = None


class Collections(msgspec.Struct, frozen=True):
    """What the cyclic garbage collector did over the window."""

    seconds: float
    looks: int = 0  # how often it was looked whether it collects
    busy: int = 0  # how many of these looks found it collecting
    counts: Optional[Tuple[int, ...]] = None  # collections of each generation, the youngest first; its own counters

    @property
    def share(self) -> Optional[float]:
        """Of the time, spent collecting."""
        return self.busy / self.looks if self.looks else None


class StopTheWorld(msgspec.Struct, frozen=True):
    """In a free-threaded build: somebody has every other thread pause, to collect garbage for instance."""

    requested: bool
    stopped: bool  # all of them have
    requester_tid: Optional[int] = None


class Interpreter(msgspec.Struct, frozen=True):
    id: int
    gil: Optional[Gil] = None
    collecting: Optional[bool] = None  # is a garbage collection in progress?
    stop_the_world: Optional[StopTheWorld] = None
    collections: Optional[Collections] = None


class PythonInfo(msgspec.Struct, frozen=True):
    version: str
    implementation: str = "CPython"
    free_threaded: bool = False
    debug: Optional[bool] = None
    finalizing: Optional[bool] = None
