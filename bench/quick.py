"""What a user waits for, in two minutes: the pause of a busy target, stacks from a core, the start, a report, the verdict.

    python -m bench.quick [--rounds 9] [--save NAME] [--postmortem PYTHON]
    python -m bench.quick --compare A B

Each row is a ratio to a peer that runs right before or after it: py-spy's native dump, gdb's own ``thread apply all bt``,
or a bare interpreter. So the machine's mood meets both, and a ratio may be kept and compared later. A ratio is the median
of the rounds' own ratios, with the smallest and the largest beside it; times are medians, in wall-clock seconds and in
seconds of CPU (user and system, of all processes that a command has started and waited for).

--postmortem names the interpreter of another checkout's .venv, whose `postmortem` then alternates with this one's.
--save writes bench/results/NAME.json, --compare prints two such files side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from postmortem.capture.observe import pyspy

from .pause import ROWS as TARGETS
from .pause import SHORTEST_S, Row, Run, Target
from .stacks import make_core

RESULTS = Path(__file__).resolve().with_name("results")
OBSERVED_S = 0.3
DEADLINE_S = 0.5
#: A start takes so little that it needs more rounds for a median that stays.
_STARTS_A_ROUND = 6
_REST_S = 0.2
_HUNG = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
_REMOTE = "import platform, postmortem, sys; print(platform.python_version(), postmortem.__version__)"


class Took(NamedTuple):
    """One run of a command. ``seconds``: what the row is about; ``cpu``: user and system."""

    seconds: float
    cpu: float


class Subject(NamedTuple):
    """One contestant of a row; ``run`` does it once."""

    name: str
    run: Callable[[], Took]


class Pair(NamedTuple):
    """One row of the table: whose times are compared with the peer's, round by round."""

    title: str
    peer: str
    runs: Dict[str, List[Took]]

    def ratios(self, name: str, to: Optional[str] = None, cpu: bool = False) -> List[float]:
        ours, theirs = self.runs[name], self.runs[to or self.peer]
        return [_part(one, cpu) / max(_part(other, cpu), 1e-4) for one, other in zip(ours, theirs)]


def main() -> int:
    given = _parser().parse_args()
    if given.compare:
        one, other = (json.loads((RESULTS / f"{name}.json").read_text("utf-8")) for name in given.compare)
        compare(one, other, given.compare)
        return 0
    if given.save and not given.save.replace("-", "").replace(".", "").isalnum():
        raise SystemExit("--save takes a plain name: letters, digits, - and .")
    programs = {"postmortem": _program(sys.executable)}
    if given.postmortem:
        given.postmortem = str(Path(given.postmortem).absolute())
        programs["the other"] = _program(given.postmortem)
    began = time.monotonic()
    load = os.getloadavg()[0]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every start compiles what is not compiled yet
    with tempfile.TemporaryDirectory(prefix="postmortem-bench-") as folder:
        os.chdir(folder)  # no checkout is imported because it happens to be the working directory
        pairs = Quick(Path(folder), programs, given.rounds).all()
    _show(pairs, list(programs))
    print(f"\n{time.monotonic() - began:.0f} s; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    if given.save:
        RESULTS.mkdir(exist_ok=True)
        kept = {"machine": _machine(load), "versions": _versions(programs, given.postmortem), "rounds": given.rounds}
        _save(RESULTS / f"{given.save}.json", {**kept, "rows": [_kept(pair) for pair in pairs]})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", metavar="NAME", help="keep the result as bench/results/NAME.json")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="print two kept results side by side")
    parser.add_argument("--postmortem", metavar="PYTHON", help="of another checkout's .venv: both alternate")
    return parser


def _program(python: str) -> str:
    """The command beside an interpreter: `python -m` would take whatever the working directory has."""
    beside = Path(python).absolute().with_name("postmortem")
    if not os.access(beside, os.X_OK):
        raise SystemExit(f"there is no command `postmortem` beside {python}; make its .venv first")
    return str(beside)


# ---------------------------------------------------------------------- the rows


class Quick:
    """All rows, in one folder that is thrown away."""

    def __init__(self, folder: Path, programs: Dict[str, str], rounds: int) -> None:
        self._folder = folder
        self._programs = programs
        self._rounds = rounds
        self._exe = Path(sys.executable).resolve()

    def all(self) -> List[Pair]:
        pairs = [self.pause(TARGETS["4"])]
        for count in (4, 200):
            pairs.append(self.stacks(count))
        pairs.append(self.start())
        pairs += self.verdict()
        return pairs

    def pause(self, row: Row) -> Pair:
        """The longest gap in a busy target's own running, of a capture and of py-spy's native dump."""
        with Target(row) as target:
            dump = [pyspy.find() or "py-spy", "dump", "--native", "--pid", str(target.pid)]
            captures = {
                name: [program, "capture", "--pid", str(target.pid), "--observe", str(OBSERVED_S), "-o", "bundle"]
                for name, program in self._programs.items()
            }
            timed: Dict[str, List[Run]] = {name: [] for name in (*captures, "py-spy")}
            cpu: Dict[str, List[float]] = {name: [] for name in timed}
            for number in range(self._rounds + 1):  # one to warm up
                for name, command in {**captures, "py-spy": dump}.items():
                    time.sleep(_REST_S)
                    began = time.monotonic()
                    took = _run(command)
                    if number:
                        timed[name].append(Run(began, time.monotonic()))
                        cpu[name].append(took.cpu)
                    shutil.rmtree("bundle", ignore_errors=True)
        gaps = {
            name: [Took(max(target.longest_ms(run) / 1000, SHORTEST_S), spent) for run, spent in zip(runs, cpu[name])]
            for name, runs in timed.items()
        }
        return Pair(f"pause of a busy target, {row.title}", "py-spy", gaps)

    def stacks(self, threads: int) -> Pair:
        """From a core to full stacks, and gdb's own."""
        where = self._folder / f"core-{threads}"
        where.mkdir()
        core = make_core(where, self._exe, threads, 20)
        gdb = ["gdb", "-nx", "-batch", "-q", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
        gdb += [f"--se={self._exe}", f"--core={core}", "-ex", "thread apply all bt"]
        subjects = [
            _command(name, [program, "analyze", "--exe", str(self._exe), "-f", "json", str(core)])
            for name, program in self._programs.items()
        ]
        pair = self._alternate(f"stacks of a core, {threads} threads", [*subjects, _command("gdb", gdb)])
        shutil.rmtree(str(where))
        return pair

    def start(self) -> Pair:
        subjects = [
            _command(name, [program, "capture", "-t", "5", "--", "true"]) for name, program in self._programs.items()
        ]
        return self._alternate("start: capture -t 5 -- true", [*subjects, _bare()], self._rounds * _STARTS_A_ROUND)

    def verdict(self) -> List[Pair]:
        """From the deadline of a hung command to the verdict, without the observation; and the report of what is kept."""
        bundles = {name: self._folder / f"bundle-{number}" for number, name in enumerate(self._programs)}
        subjects = [
            Subject(name, lambda p=program, b=bundles[name]: _hang(p, b))  # type: ignore[misc]
            for name, program in self._programs.items()
        ]
        late = self._alternate("deadline to verdict, beyond the window", [*subjects, _bare()])
        readers = [_command(name, [program, "report", str(bundles[name])]) for name, program in self._programs.items()]
        return [self._alternate("report of a bundle", [*readers, _bare()]), late]

    def _alternate(self, title: str, subjects: Sequence[Subject], rounds: Optional[int] = None) -> Pair:
        """The peer is the last one. One round goes before, which no one counts."""
        runs: Dict[str, List[Took]] = {subject.name: [] for subject in subjects}
        for number in range((rounds or self._rounds) + 1):
            for subject in subjects:
                took = subject.run()
                if number:
                    runs[subject.name].append(took)
        return Pair(title, subjects[-1].name, runs)


def _command(name: str, words: List[str]) -> Subject:
    return Subject(name, lambda: _run(words))


def _bare() -> Subject:
    return _command("python -c pass", [sys.executable, "-c", "pass"])


def _run(command: Sequence[str], status: int = 0) -> Took:
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _pid, ended, usage = os.wait4(process.pid, 0)
    process.returncode = os.WEXITSTATUS(ended) if os.WIFEXITED(ended) else -os.WTERMSIG(ended)
    if process.returncode != status:
        shown = said.decode(errors="replace").strip()[-300:]
        raise SystemExit(f"{' '.join(command[:3])} ended with {process.returncode}: {shown}")
    return Took(time.monotonic() - began, usage.ru_utime + usage.ru_stime)


def _hang(program: str, bundle: Path) -> Took:
    """A command that hangs for good, captured at its deadline; the command itself ends at once when it is told to."""
    shutil.rmtree(str(bundle), ignore_errors=True)
    command = [program, "capture", "-t", str(DEADLINE_S), "--observe", str(OBSERVED_S), "-o", str(bundle), "-s", "KILL"]
    took = _run([*command, "--", sys.executable, "-c", _HUNG], status=124)
    return took._replace(seconds=took.seconds - DEADLINE_S - OBSERVED_S)


# ---------------------------------------------------------------------- what is printed and kept


def _part(took: Took, cpu: bool) -> float:
    return took.cpu if cpu else took.seconds


def _shown(ratios: List[float]) -> str:
    return f"{statistics.median(ratios):7.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def _show(pairs: Sequence[Pair], names: Sequence[str]) -> None:
    print(f"{'':<42}{'times as long as':<22}{'wall':<24}{'CPU':<24}")
    for pair in pairs:
        for name in names:
            print(
                f"{pair.title:<42}{pair.peer:<22}{_shown(pair.ratios(name)):<24}{_shown(pair.ratios(name, cpu=True)):<24}"
            )
        if len(names) > 1:
            here, there = names
            ratios = [_shown(pair.ratios(here, there, cpu)) for cpu in (False, True)]
            print(f"{'':<42}{there:<22}{ratios[0]:<24}{ratios[1]:<24}")
        medians = [
            f"{name} {statistics.median(r.seconds for r in runs):.3f} s ({statistics.median(r.cpu for r in runs):.3f} s CPU)"
            for name, runs in pair.runs.items()
        ]
        print(f"  {', '.join(medians)}", flush=True)


def _save(path: Path, result: Dict[str, Any]) -> None:
    """One line a row, so that a change of one shows as such."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items() if key != "rows"]
    rows = ",\n".join(json.dumps(row) for row in result["rows"])
    path.write_text("{" + ",\n".join([*lines, f'"rows": [\n{rows}\n]']) + "}\n", "utf-8")


def _kept(pair: Pair) -> Dict[str, Any]:
    ratios = {
        name: {
            "wall": _summary(pair.ratios(name)),
            "cpu": _summary(pair.ratios(name, cpu=True)),
        }
        for name in pair.runs
        if name != pair.peer
    }
    runs = {name: [[round(part, 5) for part in took] for took in taken] for name, taken in pair.runs.items()}
    return {"title": pair.title, "peer": pair.peer, "ratios": ratios, "seconds_and_cpu": runs}


def _summary(ratios: List[float]) -> Dict[str, float]:
    return {"median": round(statistics.median(ratios), 3), "min": round(min(ratios), 3), "max": round(max(ratios), 3)}


def compare(one: Dict[str, Any], other: Dict[str, Any], names: Sequence[str]) -> None:
    """The ratios of two kept results, and the second over the first."""
    if one["machine"]["processor"] != other["machine"]["processor"]:
        print("(two machines: even ratios may differ by the machine)")
    print(f"{'':<42}{'':<6}{names[0]:>20}{names[1]:>20}{'second / first':>16}")
    found = {row["title"]: row for row in other["rows"]}
    for row in one["rows"]:
        if row["title"] not in found:
            continue
        for kind in ("wall", "cpu"):
            before, after = (each["ratios"]["postmortem"][kind]["median"] for each in (row, found[row["title"]]))
            title = row["title"] if kind == "wall" else ""
            print(f"{title:<42}{kind:<6}{before:>20.2f}{after:>20.2f}{after / before:>16.2f}")


def _machine(load: float) -> Dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return {
        "processor": named[0] if named else platform.machine(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "memory_mb": (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) >> 20,
        "kernel": platform.release(),
        "load_before": round(load, 2),
        "load_after": round(os.getloadavg()[0], 2),
    }


def _versions(programs: Dict[str, str], other: Optional[str]) -> Dict[str, str]:
    asked = {"gdb": ["gdb", "--version"], "py-spy": [pyspy.find() or "py-spy", "--version"]}
    for name, python in zip(programs, (sys.executable, other)):
        asked[f"python, {name}"] = [str(python), "-I", "-c", _REMOTE]
    return {name: _first_line(command) for name, command in asked.items()}


def _first_line(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return (done.stdout.splitlines() or ["unknown"])[0]


if __name__ == "__main__":
    sys.exit(main())
