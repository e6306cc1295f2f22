"""What a limit costs a suite of tiny tests: ours beside pytest-timeout's, in instructions.

    python -m bench.plugin [TESTS ...]      (5000)

Each suite runs under valgrind's callgrind, which counts what its processes execute and nothing else; so no other load on
the machine matters. The watchdog, a process of its own, is counted as well. Plugins that are not compared are off. With two
numbers of tests the costs are given per test, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List

_A_FILE = 50
_LIMIT = "60"
_OTHERS = ["-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:anyio", "-p", "no:xdist"]
#: What is compared; the first is what both are measured against: neither is loaded.
RUNS: Dict[str, List[str]] = {
    "without either": ["-p", "no:timeout", "-p", "no:postmortem"],
    "postmortem, off": ["-p", "no:timeout"],
    "postmortem, on": ["-p", "no:timeout", "--postmortem-timeout", _LIMIT],
    "pytest-timeout, off": ["-p", "no:postmortem"],
    "pytest-timeout, on": ["-p", "no:postmortem", "--timeout", _LIMIT],
}


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [5000]
    counted: Dict[int, Dict[str, int]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            suite(Path(folder), size)
            counted[size] = {name: instructions(Path(folder), words) for name, words in RUNS.items()}
        show(size, counted[size])
    if len(sizes) == 2:
        small, large = sizes
        for name in RUNS:
            slope = (counted[large][name] - counted[small][name]) / (large - small)
            print(f"{name:<24} {slope:12,.0f} instructions a test")


def suite(folder: Path, size: int) -> None:
    for first in range(0, size, _A_FILE):
        tests = "\n\n\n".join(f"def test_{i}():\n    pass" for i in range(first, min(first + _A_FILE, size)))
        (folder / f"test_{first}.py").write_text(tests + "\n")


def instructions(folder: Path, words: List[str]) -> int:
    """Return the instructions of one run; a run before it has written what Python compiles."""
    command = [sys.executable, "-m", "pytest", "-q", *_OTHERS, *words, str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    counter = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={folder}/out.%p"]
    done = subprocess.run([*counter, *command], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    found = [int(count) for count in re.findall(r"^==\d+== Collected : (\d+)", done.stderr, re.M)]
    # pytest's own process counts most. A forked process counts what its parent had before, so of the watchdog and its
    # launcher the one that counts more has both.
    pytests, *others = sorted(found, reverse=True)
    return pytests + max(others, default=0)


def show(size: int, counted: Dict[str, int]) -> None:
    base = counted["without either"]
    for name, count in counted.items():
        print(
            f"{size} tests, {name:<20} {count:16,} instructions {count - base:+15,}  {100 * (count / base - 1):+6.2f} %"
        )
    neither = ("without either", "without either")
    for words, begins in (
        ("on against neither", neither),
        ("on against off", ("postmortem, off", "pytest-timeout, off")),
    ):
        ours, theirs = (
            counted[f"{one}, on"] - counted[begin] for one, begin in zip(("postmortem", "pytest-timeout"), begins)
        )
        print(f"{size} tests, {words}: {ours:,} beside {theirs:,}: {ours / theirs:.2f} of pytest-timeout's", flush=True)


if __name__ == "__main__":
    main()
