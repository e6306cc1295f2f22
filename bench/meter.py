"""Spins, and notes every gap in its own running: what a tool that stops it, or takes its CPU, costs a busy service.

    python meter.py THREADS HEAP_MB ARRAYS_MB

Other threads stand by with twenty frames each. The heap is Python objects, the arrays are numpy's. Prints ``ready``,
and on SIGTERM the gaps as JSON: [[CLOCK_MONOTONIC when it began, seconds], ...].
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import signal
import sys
import threading
import time
from typing import Any, Iterator, List, Tuple

#: Shorter ones are the clock's own, and the interrupts of an idle machine.
SHORTEST_S = 0.0002
_FRAMES = 20
_ARRAY_MB = 64

gate = threading.Lock()
ended: List[int] = []


def first(left: int) -> object:
    return second(left - 1) if left else gate.acquire()


def second(left: int) -> object:
    return first(left - 1) if left else gate.acquire()


def heap(megabytes: int) -> Iterator[List[Any]]:
    """Lists of small objects, until the process is so large."""
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < megabytes << 10:
        yield [{"name": f"item {i}", "value": i * 1.5, "tags": [str(i), i]} for i in range(1000)]


def arrays(megabytes: int) -> Iterator[Any]:
    if megabytes:
        numpy = importlib.import_module("numpy")  # only one row of the table needs it
        for _number in range(megabytes // _ARRAY_MB):
            yield numpy.ones(_ARRAY_MB << 17)  # eight bytes each


def spin() -> List[Tuple[float, float]]:
    gaps: List[Tuple[float, float]] = []
    clock = time.monotonic
    last = clock()
    while not ended:
        now = clock()
        if now - last > SHORTEST_S:
            gaps.append((last, now - last))
        last = now
    return gaps


def main() -> None:
    threads, heap_mb, arrays_mb = map(int, sys.argv[1:])
    gate.acquire()
    for _number in range(threads - 1):
        threading.Thread(target=first, args=(_FRAMES,), daemon=True).start()
    gc.disable()  # a collection is a gap too, but not one that a tool makes
    kept = [*heap(heap_mb), *arrays(arrays_mb)]
    gc.freeze()
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    print("ready", flush=True)
    json.dump(spin(), sys.stdout)
    sys.stdout.flush()
    kept.clear()


main()
