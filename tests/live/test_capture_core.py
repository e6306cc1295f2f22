"""The cores: gdb reads them whole, their memory is the process's, and the files are sparse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from postmortem.memory.elfcore import ElfCore
from postmortem.native import find_gdb

from ..support.capturing import DRIVER, capture
from ..support.interpreters import kinds
from ..support.required import needs_gdb

pytestmark = pytest.mark.live

THREADS = 12
PROGRAM = f"""
import threading, time
def deep(n):
    time.sleep(600) if n == 0 else deep(n - 1)
def spin():
    while True:
        sum(range(1000))
for number in range({THREADS} - 2):
    threading.Thread(target=deep, args=(20,), daemon=True).start()
threading.Thread(target=spin, daemon=True).start()
lock = threading.Lock()
print("up", flush=True)
lock.acquire(); lock.acquire()
"""


def gdb(program: str, core: Path, *commands: str) -> str:
    found = find_gdb()
    assert found is not None, "gdb is missing, and so is the wheel gdb-for-pwndbg: apt-get install gdb"
    words = [str(found), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run([*words, program, str(core)], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@needs_gdb
@pytest.mark.parametrize("python", kinds())
def test_gdb_unwinds_every_thread_to_its_start(tmp_path: Path, python: str) -> None:
    """All threads are there, the main one first, and no stack breaks off: registers and stack pages are right."""
    done = capture(tmp_path, "--", python, "-c", PROGRAM, timeout=2)
    assert (done.status, done.stdout) == (124, "up\n")
    shown = gdb(python, done.core(), "info threads", "thread apply all bt")
    stacks = re.split(r"^Thread \d+ ", shown, flags=re.MULTILINE)[1:]
    assert len(stacks) == THREADS
    # The main thread's ends in the C library, or where main() has debug information, there: gdb goes no further then.
    first = re.compile(r"__libc_start_main|^#\d+ .*\bmain \(", re.MULTILINE)
    ends = [stack.strip().splitlines()[-1] for stack in stacks if not first.search(stack)]
    assert len(ends) == THREADS - 1
    # clone() by name, or where the C library is stripped too, the one place in it from which every thread starts.
    nameless = r"#\d+ +0x[0-9a-f]+ in \?\? \(\) from \S*/libc\.so"
    assert all("clone" in end or re.match(nameless, end) for end in ends), ends
    assert len({end.split()[1] for end in ends}) == 1, ends
    assert f"LWP {done.root}" in shown[: shown.index("\n  2 ")]
    assert "Program terminated" not in shown  # it did not die of a signal


MEMORY = """
import ctypes, json, mmap, multiprocessing, sys, time
size = 64 << 20
private = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
private[5 * 4096 + 7 : 5 * 4096 + 12] = b"hello"
shared = mmap.mmap(-1, 8192)
shared[4096:4101] = b"world"
with open(sys.argv[1], "r+b") as stream:
    copy = mmap.mmap(stream.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    other = mmap.mmap(stream.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
copy[8192:8197] = b"dirty"
semaphore = multiprocessing.get_context("fork").Semaphore(3)
address = lambda m: ctypes.addressof(ctypes.c_char.from_buffer(m))
print(json.dumps({"private": address(private), "shared": address(shared), "copy": address(copy)}), flush=True)
time.sleep(600)
"""


def test_memory_is_in_the_core_and_untouched_memory_is_a_hole(tmp_path: Path) -> None:
    """Written private pages, changed pages of a private file mapping, shared anonymous memory; zeros as holes."""
    data = tmp_path / "data"
    data.write_bytes(b"file" * (32 << 18))  # larger than what is stored whole
    done = capture(tmp_path, "--", sys.executable, "-c", MEMORY, str(data), timeout=2)
    where = json.loads(done.stdout)
    core = ElfCore(str(done.core()))
    assert core.read(where["private"] + 5 * 4096 + 7, 5) == b"hello"
    assert core.read(where["private"] + (40 << 20), 4096) == bytes(4096)
    assert core.read(where["shared"] + 4096, 5) == b"world"
    assert core.read(where["copy"] + 8192, 5) == b"dirty"
    assert core.pid == done.root
    info = done.core().stat()
    assert info.st_size > 64 << 20
    assert info.st_blocks * 512 < 40 << 20


def segments(core: Path) -> List[List[str]]:
    shown = subprocess.run(["readelf", "-lW", str(core)], capture_output=True, text=True, check=True).stdout
    return [line.split() for line in shown.splitlines() if line.strip().startswith("LOAD")]


def test_a_reservation_costs_nothing(tmp_path: Path) -> None:
    """Terabytes of reserved address space (sanitizers, managed heaps) make neither a large nor a slow core."""
    code = """
import ctypes, time
libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
base = libc.mmap(None, 4 << 40, 3, 0x4022, -1, 0)  # MAP_NORESERVE
ctypes.memmove(base + (1 << 40), b"needle", 6)
print(base, flush=True)
time.sleep(600)
"""
    done = capture(tmp_path, "--", sys.executable, "-c", code, timeout=2)
    base = int(done.stdout)
    assert ElfCore(str(done.core())).read(base + (1 << 40), 6) == b"needle"
    assert done.core().stat().st_size < 1 << 30


def test_a_large_heap_goes_to_the_file_during_the_stop(tmp_path: Path) -> None:
    """More than is held in memory: the same core, written while the process stands still."""
    code = """
import ctypes, time
heap = bytearray(300 << 20)
for start in range(0, len(heap), 4096):
    heap[start] = start >> 12 & 255
heap[-5:] = b"final"
print(ctypes.addressof(ctypes.c_char.from_buffer(heap)), flush=True)
time.sleep(600)
"""
    driver = (
        "from postmortem.capture.freeze import memorybudget as room\nroom.memory_to_hold = lambda **_: 1 << 20\n"
        + DRIVER
    )
    done = capture(tmp_path, "--core", "sparse", "--", sys.executable, "-c", code, timeout=5, driver=driver)
    address = int(done.stdout)
    core = ElfCore(str(done.core()))
    assert core.read(address + (300 << 20) - 5, 5) == b"final"
    for page in (0, 1, 77, 70000):
        assert core.read(address + page * 4096, 1)[0] == page & 255
    assert [step["ok"] for step in done.steps("core")] == [True]


def test_every_load_segment_lies_in_the_file(tmp_path: Path) -> None:
    """No reader runs past the end; segments rise and do not overlap."""
    done = capture(tmp_path, "--", "sleep", "600")
    size = done.core().stat().st_size
    rows = [[int(field, 16) for field in row[1:6]] for row in segments(done.core())]
    assert rows
    assert all(offset + stored <= size for offset, _v, _p, stored, _m in rows)
    assert all(before[1] + before[4] <= after[1] for before, after in zip(rows, rows[1:]))
