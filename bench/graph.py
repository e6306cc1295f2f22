"""How long the diagnosis of a crowd takes, from its core on: reading the interpreter, its locks and tasks, graph, verdict.

    python -m bench.graph [--threads 2000] [--tasks 20000] [--python PATH] [--core FILE]

The crowd: threads in one circle of locks, tasks in one circle of asyncio locks. Native stacks are not part of it. Prints the
seconds of each step, what was found, and the peak of memory in MB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List

from postmortem.classify.engine import classify
from postmortem.evidence import Evidence, Gap, Trigger
from postmortem.extract.assemble.cores import open_core
from postmortem.extract.process.reading import read
from postmortem.extract.process.summary import process_of
from postmortem.foreign.processfiles import Files, Shelves, below
from postmortem.waitgraph import WaitGraph

PROGRAM = """
import asyncio, sys, threading
count, jobs = map(int, sys.argv[1:])
threading.stack_size(256 << 10)
locks = [threading.Lock() for _ in range(count)]
gate = threading.Barrier(count + 1)

class Worker:
    def __init__(self, mine, other):
        self.mine, self.other = mine, other
    def run(self):
        with self.mine:
            gate.wait()
            self.pass_on()
    def pass_on(self):
        with self.other:
            pass

class Job:
    def __init__(self, mine, other):
        self.mine, self.other = mine, other
    async def run(self):
        async with self.mine:
            await asyncio.sleep(0)
            await self.pass_on()
    async def pass_on(self):
        async with self.other:
            pass

async def main():
    shared = [asyncio.Lock() for _ in range(jobs)]
    pairs = zip(shared, [*shared[1:], shared[0]])
    running = [asyncio.ensure_future(Job(*pair).run()) for pair in pairs]
    for _ in range(3):
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*running)

for pair in zip(locks, [*locks[1:], locks[0]]):
    threading.Thread(target=Worker(*pair).run, daemon=True).start()
gate.wait()
asyncio.run(main())
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--core", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.core or _core(Path(folder), given.python, given.threads, given.tasks))
    return 0


def measure(path: Path) -> None:
    with Shelves(below(None)) as shelves:
        _measure(path, shelves.of({}))


def _measure(path: Path, files: Files) -> None:
    began = time.perf_counter()
    core = open_core(path, files)
    gaps: List[Gap] = []
    reader, _directory = read(core, core.pid or 0, None, files, gaps, False)
    read_s = time.perf_counter() - began
    process = process_of(reader, {}).process
    process_s = time.perf_counter() - began - read_s
    evidence = Evidence(Trigger("core"), (process,), tuple(gaps))
    graph = WaitGraph(evidence)
    circles = sorted(len(cycle.edges) for cycle in graph.cycles)
    stuck = len(graph.stuck_agents)
    graph_s = time.perf_counter() - began - read_s - process_s
    found = classify(evidence)
    total = time.perf_counter() - began
    classify_s = total - read_s - process_s - graph_s
    print(
        f"read {read_s:.2f} s, evidence {process_s:.2f} s, graph {graph_s:.2f} s, "
        f"classified {classify_s:.2f} s (with a graph of its own), in all {total:.2f} s"
    )
    print(f"verdict {found.verdict}, {len(found.findings)} findings")
    print(f"{len(process.threads)} threads, {len(process.tasks)} tasks, {stuck} of them stuck, circles of {circles}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB; {_told([*gaps, *reader.context.gaps])}")


def _told(gaps: List[Gap]) -> str:
    return f"{len(gaps)} gaps, the first: {gaps[0].subject}: {gaps[0].reason}" if gaps else "no gap"


def _core(folder: Path, python: str, threads: int, tasks: int) -> Path:
    """A capture of the crowd, of every page; only its core is used."""
    script = folder / "crowd.py"
    script.write_text(PROGRAM)
    command = [python, str(script), str(threads), str(tasks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdout is not None
        crowd.stdout.readline()
        time.sleep(0.5)  # the last of them go to sleep
        words = [
            "--pid",
            str(crowd.pid),
            "--core",
            "sparse",
            "--observe",
            "0.1",
            "--budget",
            "1",
            "-o",
            str(folder / "b"),
        ]
        subprocess.run([sys.executable, "-m", "postmortem", "capture", *words], check=False, capture_output=True)
        crowd.kill()
    return folder / "b" / "raw" / "cores" / f"{crowd.pid}.core"


if __name__ == "__main__":
    sys.exit(main())
