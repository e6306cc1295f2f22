"""How long a busy process stands still while somebody looks at it: a table from one run, tools alternately.

    python -m bench.pause [--rows 4 100 heap arrays] [--tools idle python pyspy-native …] [--rounds 5] [--gcore-rounds 1]

The target spins and notes the longest gap in its own running (bench/meter.py), so whatever a tool does to it counts:
the stop itself, and the CPU that is taken from it before and after. For a capture that is all of it, observation and
diagnosis included. Beside the gaps stands one plain copy of the same pages (process_vm_readv into memory that is there
already), the least that a full copy could take. Only ratios of one run mean anything: the machine's mood meets all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from postmortem import places
from postmortem.capture.freeze import memcopy, vmread
from postmortem.capture.freeze.pages import PageMap
from postmortem.capture.observe import pyspy
from postmortem.capture.procfs import parsers

#: As in the meter: a program by itself.
SHORTEST_S = 0.0002
METER = Path(__file__).with_name("meter.py")
_REST_S = 0.3
_LARGEST_CALL = 1 << 30  # one process_vm_readv moves 2 GB at most
#: A gap that began just before the tool was started, or ended just after, is not its own.
_GRACE_S = 0.001


class Row(NamedTuple):
    title: str
    threads: int
    heap_mb: int = 0
    arrays_mb: int = 0


ROWS = {
    "4": Row("4 threads", 4),
    "100": Row("100 threads", 100),
    "heap": Row("1.5 GB of Python objects", 4, heap_mb=1500),
    "arrays": Row("8 GB of numpy arrays", 4, arrays_mb=8 << 10),
}
MODES = ("python", "sparse", "auto")
TOOLS = ("idle", *MODES, "pyspy", "pyspy-native", "pystack", "gcore")
#: 8 GB are copied and written by some; they must be asked for by name.
_NOT_FOR_ARRAYS = ("sparse", "gcore")


class Run(NamedTuple):
    """One run of a tool. ``began`` and ``ended`` in CLOCK_MONOTONIC seconds; sizes in bytes."""

    began: float
    ended: float
    pause_s: Optional[float] = None  # as the manifest has it
    apparent: int = 0
    stored: int = 0


class Result(NamedTuple):
    gap_ms: List[float]
    runs: List[Run]

    @property
    def median(self) -> float:
        return max(statistics.median(self.gap_ms), 1000 * SHORTEST_S)  # shorter ones are not noted


class Target:
    """The meter, running. Use as a context manager; ``gaps`` are there once it has been left."""

    def __init__(self, row: Row) -> None:
        environment = {**os.environ, "PYTHONPATH": str(_numpy())} if row.arrays_mb else None
        command = [sys.executable, str(METER), str(row.threads), str(row.heap_mb), str(row.arrays_mb)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        self.pid = self._process.pid
        self.gaps: List[Tuple[float, float]] = []

    def __enter__(self) -> Target:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise SystemExit("the meter did not start")
        return self

    def __exit__(self, kind: object, *_rest: object) -> None:
        self._process.send_signal(signal.SIGTERM if kind is None else signal.SIGKILL)
        said, _nothing = self._process.communicate()
        if kind is None:
            self.gaps = [(began, seconds) for began, seconds in json.loads(said)]

    def longest_ms(self, run: Run) -> float:
        inside = (s for began, s in self.gaps if began + s >= run.began - _GRACE_S and began <= run.ended + _GRACE_S)
        return 1000 * max(inside, default=0.0)


def main() -> int:
    given = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="postmortem-bench-", dir=given.folder) as folder:
        for name in given.rows:
            tools = [t for t in given.tools if _usable(t)]
            if name == "arrays":
                tools = [t for t in tools if t not in _NOT_FOR_ARRAYS or given.everything]
            measure(ROWS[name], tools, Bench(Path(folder), given.observe), given.rounds, given.gcore_rounds)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=tuple(ROWS), default=tuple(ROWS))
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gcore-rounds", type=int, default=1, help="it takes seconds, and as much disk as memory [1]")
    parser.add_argument("--observe", type=float, default=0.3, help="the captures' window, in seconds [0.3]")
    parser.add_argument("--folder", type=Path, help="where cores and bundles lie for a moment [the temporary folder]")
    parser.add_argument("--everything", action="store_true", help="also copy and write the 8 GB of numpy arrays")
    return parser


def _usable(tool: str) -> bool:
    if tool in MODES and b"--core" not in subprocess.run(_capture("--help"), stdout=subprocess.PIPE, check=True).stdout:
        return tool == "sparse"  # the one that there is
    if tool == "pystack":
        return subprocess.run([sys.executable, "-c", "import pystack"], check=False).returncode == 0
    return tool != "gcore" or shutil.which("gcore") is not None


# ---------------------------------------------------------------------- one row


def measure(row: Row, tools: Sequence[str], bench: Bench, rounds: int, gcore_rounds: int) -> None:
    """Runs the tools alternately over one target and prints their rows."""
    runs: Dict[str, List[Run]] = {tool: [] for tool in tools}
    copies: List[float] = []
    with Target(row) as target:
        bench.warm_up(target.pid)
        for number in range(rounds):
            for tool in tools:
                if tool != "gcore" or number < gcore_rounds:
                    time.sleep(_REST_S)
                    runs[tool].append(bench.run(tool, target.pid))
            if row.heap_mb:
                copies.append(plain_copy(target.pid))
    results = {tool: Result([target.longest_ms(run) for run in made], made) for tool, made in runs.items() if made}
    print(f"\n{row.title}, {rounds} rounds: the longest gap in its running, ms")
    print(f"  {'tool':<14}{'median':>9}{'longest':>9}{'of it stopped':>15}{'took s':>8}  core MB (on disk)")
    for tool, result in results.items():
        print(_line(tool, result))
    if copies:
        plain = 1000 * statistics.median(copies)
        print(f"  {'plain copy':<14}{plain:>9.1f}{1000 * max(copies):>9.1f}   time taken, not a gap")
    for sentence in _ratios(results, statistics.median(copies) * 1000 if copies else None):
        print(f"  {sentence}")
    sys.stdout.flush()


def _line(tool: str, result: Result) -> str:
    stops = [run.pause_s for run in result.runs if run.pause_s is not None]
    stopped = f"{1000 * statistics.median(stops):.1f}" if stops else ""
    took = statistics.median(run.ended - run.began for run in result.runs)
    last = result.runs[-1]
    size = f"  {last.apparent / 1e6:.0f} ({last.stored / 1e6:.0f})" if last.apparent else ""
    return f"  {tool:<14}{result.median:>9.1f}{max(result.gap_ms):>9.1f}{stopped:>15}{took:>8.2f}{size}"


def _ratios(results: Dict[str, Result], plain_ms: Optional[float]) -> Iterator[str]:
    for mode in (mode for mode in MODES if mode in results):
        ours = results[mode]
        if "pyspy-native" in results:
            yield f"{mode} / py-spy native = {ours.median / results['pyspy-native'].median:.2f}"
        if "gcore" in results:
            yield f"gcore / {mode} = {results['gcore'].median / ours.median:.0f}"
    if plain_ms is not None and "sparse" in results:
        yield f"sparse / plain copy = {results['sparse'].median / plain_ms:.2f}"


# ---------------------------------------------------------------------- the tools


def _capture(*words: str) -> List[str]:
    return [sys.executable, "-m", "postmortem", "capture", *words]


class Bench:
    """Runs a tool once, and leaves nothing behind."""

    def __init__(self, folder: Path, observe_s: float) -> None:
        self._folder = folder
        self._observe = str(observe_s)
        self._length_s = 1.0  # of the latest capture, and so of the next time with nothing

    def warm_up(self, pid: int) -> None:
        """gdb's index and the page cache are there before anything counts."""
        for tool in ("pyspy-native", "first"):
            self.run(tool, pid)

    def run(self, tool: str, pid: int) -> Run:
        inside = self._folder / tool
        inside.mkdir()
        command = self._command(tool, inside, str(pid))
        began = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        run = Run(began, time.monotonic())
        if tool in MODES or tool == "first":
            self._length_s = run.ended - run.began
        if done.returncode:
            raise SystemExit(f"{' '.join(command[:4])} failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
        run = run._replace(pause_s=_pause(inside), apparent=_sum(inside, _apparent), stored=_sum(inside, _stored))
        shutil.rmtree(str(inside))
        return run

    def _command(self, tool: str, inside: Path, pid: str) -> List[str]:
        if tool in MODES or tool == "first":
            how = ["--core", tool] if tool in MODES and (tool != "sparse" or _usable("python")) else []
            return _capture("--pid", pid, "-o", str(inside / "bundle"), "--observe", self._observe, *how)
        sampler = pyspy.find() or "py-spy"
        return {
            "idle": ["sleep", f"{self._length_s:.2f}"],
            "pyspy": [sampler, "dump", "--pid", pid],
            "pyspy-native": [sampler, "dump", "--native", "--pid", pid],
            "pystack": [sys.executable, "-m", "pystack", "remote", "--native", pid],
            "gcore": ["gcore", "-o", str(inside / "gcore.core"), pid],
        }[tool]


def _pause(folder: Path) -> Optional[float]:
    try:
        manifest = json.loads((folder / "bundle" / "manifest.json").read_bytes())
    except OSError:
        return None
    pause = manifest["timings"]["pause_s"]
    return float(pause) if pause is not None else None


def _sum(folder: Path, size: Callable[[os.stat_result], int]) -> int:
    return sum(size(path.stat()) for path in folder.rglob("*.core*") if path.is_file())


def _apparent(stat: os.stat_result) -> int:
    return stat.st_size


def _stored(stat: os.stat_result) -> int:
    return stat.st_blocks * 512


def plain_copy(pid: int) -> float:
    """Seconds for one copy of the anonymous pages that the process has, in large calls, into memory that is there."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as stream:
        mappings = parsers.parse_maps(parsers.read(f"/proc/{pid}/maps", 32 << 20))
        ranges = [piece for found in PageMap(stream.fileno()).look(mappings).touched for piece in _pieces(*found)]
    arena = memcopy.Arena(sum(end - start for start, end in ranges))
    batches = [ranges[at : at + vmread.MOST_RANGES] for at in range(0, len(ranges), vmread.MOST_RANGES)]
    buffers = [arena.take(sum(end - start for start, end in batch)) for batch in batches]
    began = time.monotonic()
    for batch, buffer in zip(batches, buffers):
        vmread.read(pid, batch, buffer)
    return time.monotonic() - began


def _pieces(start: int, end: int) -> Iterator[Tuple[int, int]]:
    for at in range(start, end, _LARGEST_CALL):
        yield at, min(end, at + _LARGEST_CALL)


def _numpy() -> Path:
    """A folder with numpy in it, kept in the cache: the one that the tests run on need not have it."""
    folder = places.cache() / f"bench-numpy-{sys.version_info[0]}.{sys.version_info[1]}"
    if not (folder / "numpy").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
        subprocess.run([*pip, str(folder), "numpy"], check=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
