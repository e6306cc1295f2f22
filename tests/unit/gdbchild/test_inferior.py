"""A live process as gdb tells of it: threads, mappings, and memory that is asked for in large pieces."""

from __future__ import annotations

import base64
from typing import Any, Dict, List, Tuple, cast

import pytest

from postmortem.gdbchild.inferior import Inferior, native_stacks
from postmortem.gdbchild.wire import Link
from postmortem.memory import Fault

PAGE = 4096
START = 0x7F0000000000


class Gdb:
    """Answers as gdb/target.py does, of two pages that are there."""

    def __init__(self) -> None:
        self.memory = bytes(range(256)) * 32
        self.asked: List[Tuple[int, int]] = []

    def ask(self, value: Dict[str, Any]) -> Dict[str, Any]:
        if "stack" in value:
            if value["stack"] == 8:
                return {"frames": [], "error": "gdb cannot unwind it"}
            return {
                "frames": [{"function": "f", "module": "/m", "address": 5, "file": None, "line": None}],
                "error": None,
            }
        address, size = value["read"]
        self.asked.append((address, size))
        at = address - START
        if at >= 0 and at + size <= len(self.memory):
            return {"data": base64.b64encode(self.memory[at : at + size]).decode()}
        return {"fault": "Cannot access memory"}


def told(**others: Any) -> Dict[str, Any]:
    registers = {"rip": 1, "orig_rax": 202, "rdi": START, "fs_base": (1 << 64) - 8, "rsp": START + 16}
    return {
        "pid": 7,
        "registers": [[7, registers], [8, {}]],
        "mappings": [
            [START, START + 2 * PAGE, 0, "rw-p", ""],
            [START + 4 * PAGE, START + 5 * PAGE, 0, None, "/lib/x.so"],
        ],
        "auxv": [[3, 0x400040], [0, 0]],
        **others,
    }


def opened(gdb: Gdb, **others: Any) -> Inferior:
    return Inferior(cast(Link, gdb), told(**others), lambda _name: None)


def test_it_is_the_core_that_the_process_would_leave() -> None:
    """Its pid, threads with their registers, auxiliary vector, files and writable memory."""
    core = opened(Gdb())
    assert (core.pid, core.machine_name, core.auxv[3]) == (7, "x86-64", 0x400040)
    assert [(thread.tid, thread.regs["orig_rax"]) for thread in core.threads] == [(7, 202), (8, 0)]
    assert core.threads[0].regs["fs_base"] == (1 << 64) - 8
    assert [(file.start, file.path) for file in core.files] == [(START + 4 * PAGE, "/lib/x.so")]
    assert core.writable == core.written == [(START, START + 2 * PAGE), (START + 4 * PAGE, START + 5 * PAGE)]
    core.close()


def test_another_machine() -> None:
    """gdb's registers tell which; the thread pointer of aarch64 is in a note of its own."""
    core = opened(Gdb(), registers=[[7, {"x8": 98, "x0": START, "pc": 4, "tpidr_el0": 77}]])
    assert core.machine_name == "aarch64"
    assert (core.threads[0].regs["x8"], core.threads[0].regs["tpidr_el0"]) == (98, 77)
    core.close()


def test_memory_is_read_through_gdb_once() -> None:
    """Across pages; what was read is kept; what is not there faults with what was asked for."""
    gdb = Gdb()
    core = opened(gdb)
    assert core.read(START + PAGE - 4, 8) == gdb.memory[PAGE - 4 : PAGE + 4]
    count = len(gdb.asked)
    assert core.u64(START) == int.from_bytes(gdb.memory[:8], "little")
    assert len(gdb.asked) == count
    for address, size in ((START + 2 * PAGE - 4, 8), (START - 1, 1), (-1, 1), (START, -1)):
        with pytest.raises(Fault) as caught:
            core.read(address, size)
        assert (caught.value.address, caught.value.size) == (address, size)
    core.close()


def test_much_memory_is_not_searched() -> None:
    """To look through all of it would be to have gdb read all of it."""
    core = opened(Gdb(), mappings=[[START, START + (1 << 30), 0, "rw-p", ""]])
    assert core.writable
    assert core.written == []
    core.close()


def test_native_stacks_are_gdb_s() -> None:
    """A thread that gdb cannot unwind has none, and the reason stands beside it."""
    stacks, errors = native_stacks(cast(Link, Gdb()), [7, 8])
    assert [frame.function for frame in stacks[7]] == ["f"]
    assert stacks[8] == ()
    assert errors == {8: "gdb cannot unwind it"}
