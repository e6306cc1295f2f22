"""What an interpreter says of itself."""

from __future__ import annotations

from typing import Optional

import msgspec


class Gil(msgspec.Struct, frozen=True):
    locked: Optional[bool] = None
    holder_tid: Optional[int] = None
    switch_interval: Optional[float] = None  # seconds
    handoffs: Optional[int] = None  # changes of holder during the window, the interpreter's own count
    handoffs_per_s: Optional[float] = None


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


class PythonInfo(msgspec.Struct, frozen=True):
    version: str
    implementation: str = "CPython"
    free_threaded: bool = False
    debug: Optional[bool] = None
    finalizing: Optional[bool] = None
