"""Full stacks out of a core, native and Python, beside `pystack core --native`: alternately, so that the machine's mood
meets both; only the ratio means anything.

    python -m bench.stacks [--threads 1000] [--frames 50] [--rounds 5] [--core FILE --exe FILE]

Without --core it makes one: threads that each call functions in turn, to that depth, and park. pystack is a peer that
the tests install.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List, NamedTuple

PROGRAM = """
import os, sys, threading
gate, reached = threading.Lock(), threading.Semaphore(0)
gate.acquire()
def first(left): return second(left - 1) if left else park()
def second(left): return third(left - 1) if left else park()
def third(left): return first(left - 1) if left else park()
def park():
    reached.release()
    gate.acquire()
count, depth = map(int, sys.argv[1:])
for _ in range(count - 1):
    threading.Thread(target=first, args=(depth - 5,), daemon=True).start()
for _ in range(count - 1):
    reached.acquire()
os.abort()
"""


class Run(NamedTuple):
    seconds: float
    megabytes: float  # the largest process of the run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=Path)
    parser.add_argument("--exe", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        exe = (given.exe or Path(sys.executable)).resolve()
        core = given.core or make_core(Path(folder), exe, given.threads, given.frames)
        ours = [sys.executable, "-m", "postmortem", "analyze", "--exe", str(exe), "-f", "json", str(core)]
        theirs = [sys.executable, "-m", "pystack", "core", "--native", str(core), str(exe)]
        for command in (ours, theirs):
            _run(command)  # warms the page cache, and gdb's index
        runs: List[List[Run]] = [[], []]
        for number in range(given.rounds):
            for place, command in enumerate((ours, theirs)):
                runs[place].append(_run(command))
            print(f"round {number + 1}: postmortem {_shown(runs[0][-1])}, pystack {_shown(runs[1][-1])}")
    medians = [statistics.median(run.seconds for run in each) for each in runs]
    print(f"median: postmortem / pystack = {medians[0]:.2f} s / {medians[1]:.2f} s = {medians[0] / medians[1]:.2f}")
    return 0


def make_core(folder: Path, exe: Path, threads: int, frames: int) -> Path:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    subprocess.run([str(exe), "-c", PROGRAM, str(threads), str(frames)], cwd=folder, check=False)
    found = next(iter(folder.glob("core*")), None)
    if found is None:
        raise SystemExit("the kernel wrote no core into the working directory; see /proc/sys/kernel/core_pattern")
    return found


def _run(command: List[str]) -> Run:
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _pid, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command[1:4])} failed: {said.decode(errors='replace').strip()[-300:]}")
    return Run(time.monotonic() - began, usage.ru_maxrss / 1024)


def _shown(run: Run) -> str:
    return f"{run.seconds:.2f} s {run.megabytes:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
