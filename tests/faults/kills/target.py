"""The victim: threads that wait, one that spins now and then, a heap, and a heartbeat that anybody can read.

Run as a program: ``target.py FILE THREADS HEAP_MB [deaf]``; it says "up" when all of that is there. Deaf ones do not end
with TERM, as a hung program does not.
"""

from __future__ import annotations

import mmap
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import List, Optional

_BEAT_S = 0.002


class Target:
    """A running victim."""

    def __init__(self, folder: Path, threads: int, heap_mb: int) -> None:
        beats = folder / "beats"
        beats.write_bytes(bytes(mmap.PAGESIZE))
        words = [sys.executable, __file__, str(beats), str(threads), str(heap_mb)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self._beats = beats
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "up\n":
            raise RuntimeError("the target did not start")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def beat(self) -> int:
        with self._beats.open("rb") as stream:
            return int(struct.unpack("<Q", stream.read(8))[0])

    @property
    def ended(self) -> Optional[int]:
        return self._process.poll()

    def kill(self) -> None:
        """And collects it, so that it is gone and no zombie."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def tracers(pid: int) -> List[int]:
    """The tracer of each thread, 0 for none."""
    return [int(_row(status, "TracerPid")) for status in _statuses(pid)]


def stopped(pid: int) -> List[str]:
    """State letters of threads that stand still for a tracer or a job's stop."""
    return [state for state in (_row(status, "State")[0] for status in _statuses(pid)) if state in "tT"]


def _statuses(pid: int) -> List[str]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            found.append(path.read_text())
        except OSError:
            continue
    return found


def _row(status: str, key: str) -> str:
    return next(line.split(":", 1)[1].strip() for line in status.splitlines() if line.startswith(key + ":"))


def _run(path: str, threads: int, heap_mb: int) -> None:
    heap = [bytearray(b"x" * (1 << 20)) for _ in range(heap_mb)]
    for _ in range(threads):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    with open(path, "r+b") as stream, mmap.mmap(stream.fileno(), mmap.PAGESIZE) as beats:
        print("up", flush=True)
        for number in range(1 << 60):
            struct.pack_into("<Q", beats, 0, number)
            heap[number % max(heap_mb, 1)][0] = number & 0xFF if heap_mb else 0
            time.sleep(_BEAT_S)


if __name__ == "__main__":
    if sys.argv[4:] == ["deaf"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
