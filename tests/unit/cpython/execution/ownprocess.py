"""This process as a target: its own objects, read as those of any other."""

from __future__ import annotations

import os
import struct
import sys
from functools import lru_cache
from typing import Any, Callable, FrozenSet, Tuple

import pytest

from postmortem.cpython.execution.library import Library, Limits
from postmortem.cpython.execution.machine import Machine
from postmortem.cpython.frames.heapframes import frames_of
from postmortem.cpython.objects.builtins import Objects
from postmortem.cpython.objects.code import Code
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.memory import Fault
from postmortem.timelimits import TimeLimit


class OwnMemory:
    """The memory of this process; addresses that it does not have raise Fault."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/mem", os.O_RDONLY)

    def read(self, address: int, size: int) -> bytes:
        try:
            found = os.pread(self._file, size, address)
        except (OSError, OverflowError, ValueError):
            raise Fault(address, size) from None
        if len(found) < size:
            raise Fault(address, size)
        return found

    def u8(self, address: int) -> int:
        return self.read(address, 1)[0]

    def u32(self, address: int) -> int:
        return int(struct.unpack("<I", self.read(address, 4))[0])

    def i32(self, address: int) -> int:
        return int(struct.unpack("<i", self.read(address, 4))[0])

    def u64(self, address: int) -> int:
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def i64(self, address: int) -> int:
        return int(struct.unpack("<q", self.read(address, 8))[0])

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))

    def cstring(self, address: int, limit: int) -> bytes:
        return self.read(address, min(limit, 4096 - address % 4096)).partition(b"\0")[0]


@lru_cache(maxsize=None)
def objects() -> Objects:
    """This interpreter's, as far as its release is known."""
    layout = LAYOUTS.get(sys.version_info[:2])
    if layout is None or sys.abiflags:
        pytest.skip("offsets of this interpreter are not in a table")
    memory: Any = OwnMemory()
    return Objects(memory, layout)


def code_of(function: Callable[..., Any]) -> Code:
    return Code(objects(), id(function.__code__))


def evaluated(function: Callable[..., Any], steps: int = 40_000, watched: FrozenSet[str] = frozenset()) -> Machine:
    """Effects of calling a function; ``watched``: attributes whose storing is noted."""
    modules = {name: id(vars(module)) for name, module in list(sys.modules.items()) if module is not None}
    machine = Machine(Library(frames_of(objects()), modules), Limits(TimeLimit(1e6), steps=steps), watched)
    machine.callable(id(function))
    return machine
