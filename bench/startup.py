"""What `postmortem capture` costs a command that ends in time, beside a bare interpreter, and while it waits.

    python -m bench.startup [ROUNDS]

Interleaved, so that a busy machine hits all alike; medians. The interpreter is the one that runs this, and `postmortem`
the script that lies beside it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

_ROUNDS = 60
_WAITED_S = 5.0


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS
    postmortem = str(Path(sys.executable).with_name("postmortem"))
    subjects = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "true": ["true"],
        "postmortem capture -t 5 -- true": [postmortem, "capture", "-t", "5", "--", "true"],
    }
    took: Dict[str, List[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, words in subjects.items():
            began = time.perf_counter()
            subprocess.run(words, check=True)
            took[name].append(time.perf_counter() - began)
    bare = statistics.median(took["python -c pass"])
    for name, seconds in took.items():
        middle = statistics.median(seconds)
        print(f"{name:<32} {middle * 1e3:6.1f} ms  {middle / bare:5.2f} x")
    print(f"CPU while it waits: {_waiting(postmortem):g} s in {_WAITED_S:g} s")


def _waiting(postmortem: str) -> float:
    """Seconds of CPU that postmortem itself uses while its command sleeps, from /proc/PID/stat."""
    process = subprocess.Popen([postmortem, "capture", "-t", "60", "--", "sleep", str(_WAITED_S + 2)])
    time.sleep(1.0)  # it has started by then
    before = _cpu(process.pid)
    time.sleep(_WAITED_S)
    spent = _cpu(process.pid) - before
    process.wait()
    return spent


def _cpu(pid: int) -> float:
    line = Path(f"/proc/{pid}/stat").read_text()
    fields = line[line.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
