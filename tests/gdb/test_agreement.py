"""The commands and the report agree: on every interpreter's core, on a bundle, on a live process. There is one engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem import places

from ..support.capturing import HANG_S, finished, start
from ..support.interpreters import Program, kinds, matrix
from .debugging import Core, commands, take

pytestmark = pytest.mark.live

_BASES = {"recorded": "record", "with-slot": "with", "inferred": "code"}
#: A lock whose holder took it five hundred frames up; one that its `with` has given up inside Condition.wait(), which
#: another thread has taken since.
PROGRAM = """
import ctypes, json, os, sys, threading, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER_ANY: Yama lets gdb attach
threading.stack_size(64 << 20)
sys.setrecursionlimit(20_000)
far, guard, never = threading.Lock(), threading.Lock(), threading.Lock()
condition = threading.Condition(guard)
up = threading.Semaphore(0)
never.acquire()
def keeper():
    with far:
        down(500)
def down(n):
    if n:
        return down(n - 1)
    up.release()
    never.acquire()
def wants_far():
    up.release()
    with far:
        pass
def sleeper():
    with condition:
        up.release()
        condition.wait()
def taker():
    guard.acquire()
    up.release()
    never.acquire()
def wants_guard():
    up.release()
    with condition:
        pass
tids = {"main": os.getpid()}
def named(function):
    tids[function.__name__] = threading.get_native_id()
    function()
def settled(tid):
    return open("/proc/self/task/%d/stat" % tid).read().rpartition(")")[2].split()[0] == "S"
for function in (keeper, wants_far, sleeper, taker, wants_guard):
    threading.Thread(target=named, args=(function,), name="the " + function.__name__, daemon=True).start()
    up.acquire()
    while not settled(tids[function.__name__]):
        time.sleep(0.01)
print(json.dumps(tids), flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module", params=matrix(ctypes=True))
def core(request: pytest.FixtureRequest, gdb: Path, tmp_path_factory: pytest.TempPathFactory) -> Core:
    return take(request.param, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def own(gdb: Path, tmp_path_factory: pytest.TempPathFactory) -> Core:
    """Take a core of the tests' own interpreter."""
    return take(sys.executable, tmp_path_factory.mktemp("own"))


def analyzed(target: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "analyze", *words, str(target)],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S * 2,
        env={**os.environ, "COLUMNS": "80"},
    )
    return done.stdout


def process_of(target: Path) -> Dict[str, Any]:
    return json.loads(analyzed(target, "-f", "json"))["processes"][0]


def without_times(output: str) -> List[str]:
    """The report in what was printed, as it is each time that a core is analysed."""
    (report,) = re.findall(r"^Verdict: .*^Signature [^\n]*", output, re.M | re.S)
    text = re.sub(r"Read from a core file\.[^.]*?Analysed\s+in\s+[\d.]+\s+m?s\.", "", report)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def by_hand(*words: str, env: Dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A gdb that `postmortem debug` has not started, with the commands loaded."""
    script = places.shipped("gdb") / "postmortem.py"
    quiet = ["-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    return subprocess.run(
        [env["GDB"], *quiet, *words[:2], "-x", str(script), *(w for word in words[2:] for w in ("-ex", word))],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env={**os.environ, "POSTMORTEM_PYTHON": sys.executable},
    )


def test_the_locks_of_a_core_are_those_of_its_report(core: Core) -> None:
    """pm-locks: every lock of the report with its holder, how that is known, its waiters, and the line where it was taken."""
    process = process_of(core.path)
    shown = commands(core.path, "pm-locks")["pm-locks"].splitlines()
    holds = {(t["tid"], h["resource"]): h["frame"] for t in process["threads"] for h in t.get("holds") or ()}
    locks = [r for r in process["resources"] if r["kind"] in ("lock", "rlock", "mutex", "condition")]
    assert len(locks) >= 3
    for lock in locks:
        line = next(line for line in shown if line.startswith(f"{lock['description']} "))
        frame = holds.get((lock.get("owner_tid"), lock["id"]))
        expected = [
            lock["kind"],
            str(lock.get("owner_tid") or "unknown"),
            _BASES.get(lock.get("owner_basis"), "-"),
            *", ".join(map(str, lock["waiters"])).split(),
        ]
        assert line[len(lock["description"]) :].split()[: len(expected)] == expected
        if frame is not None:
            assert line.endswith(f" at {frame['file']}:{frame['line']}")


def test_the_threads_and_tasks_of_a_core_are_those_of_its_report(core: Core) -> None:
    """pm-threads and pm-tasks: the GIL, what is awaited, and which task holds it."""
    process = process_of(core.path)
    shown = commands(core.path, "pm-threads", "pm-tasks")
    described = {r["id"]: r for r in process["resources"]}
    for thread in process["threads"]:
        line = next(line for line in shown["pm-threads"].splitlines() if re.match(rf"[* ]\d+ +{thread['tid']} ", line))
        assert f" {thread['gil']} " in line
        resource = described.get((thread.get("wait") or {}).get("resource"))
        assert resource is None or f" {resource['description']} " in line
    names = {task["id"]: task["name"] for task in process["tasks"]}
    for task in process["tasks"]:
        head = next(line for line in shown["pm-tasks"].splitlines() if line.startswith(f"{task['name']} ("))
        resource = described.get((task.get("wait") or {}).get("resource"))
        if resource is not None:
            assert f"awaits {resource['description']}, held by {names[resource['owner_task']]})" in head


def test_why_is_the_report(own: Core) -> None:
    """pm-why: the text that analyze prints, of a core and of a whole bundle; a gdb by hand says it as well."""
    whole = without_times(analyzed(own.path))
    assert without_times(commands(own.path, "pm-why")["pm-why"]) == whole
    assert "Signature" in commands(own.bundle, "pm-why")["pm-why"]


def test_in_a_gdb_by_hand_too(own: Core, gdb: Path) -> None:
    """The interpreter is the one that POSTMORTEM_PYTHON names; the report is the same."""
    done = by_hand(sys.executable, str(own.path), "pm-why", env={"GDB": str(gdb)})
    assert "Verdict" in done.stdout, done.stderr
    assert without_times(done.stdout) == without_times(analyzed(own.path))


@pytest.mark.parametrize("python", kinds())
def test_what_two_engines_did_not_agree_on(python: str, gdb: Path, tmp_path: Path) -> None:
    """A holder five hundred frames up, and a lock given up inside Condition.wait(): a live process, its core and its bundle
    name the same holders."""
    with Program(python, PROGRAM, tmp_path) as program:
        tids = json.loads(program.lines[-1])
        live = by_hand("-p", str(program.pid), "pm-locks", env={"GDB": str(gdb)})
        bundle = tmp_path / "bundle"
        done = finished(start("--observe", "0", "-o", str(bundle), "--pid", str(program.pid)), bundle)
        core = done.core(program.pid)
    tables = [live.stdout, commands(core, "pm-locks")["pm-locks"], commands(bundle, "pm-locks")["pm-locks"]]
    for shown in tables:
        lines = {line.split("  ")[0]: line for line in shown.splitlines()}
        assert re.search(rf" lock +{tids['keeper']} +with +{tids['wants_far']} ", lines["Lock far"]), live.stderr
        assert lines["Lock far"].endswith("program.py:11")
        assert re.search(rf" lock +{tids['taker']} +code +{tids['wants_guard']} ", lines["Lock guard"])
        assert re.search(rf" condition +unknown +- +{tids['sleeper']}$", lines["Condition condition"])


CIRCLE = """
import ctypes, sys, threading
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER_ANY
one, two, has_one, has_two = threading.Lock(), threading.Lock(), threading.Event(), threading.Event()
def first():
    with one:
        has_one.set()
        has_two.wait()
        two.acquire()
def second():
    with two:
        has_two.set()
        has_one.wait()
        one.acquire()
threads = [threading.Thread(target=f, name=f.__name__, daemon=True) for f in (first, second)]
for t in threads: t.start()
print("ready", flush=True)
threads[0].join()
"""


@pytest.mark.parametrize("python", kinds())
def test_a_live_circle_is_told(python: str, gdb: Path, tmp_path: Path) -> None:
    """pm-why on a process that gdb has stopped: the verdict, and from the main thread's join along the circle, each link with
    its line; with native frames as gdb unwinds them."""
    with Program(python, CIRCLE, tmp_path) as running:
        done = by_hand(
            "-p", str(running.pid), "pm-why", f"pm-bt --native {running.pid}", "pm-locals", env={"GDB": str(gdb)}
        )
    assert "Verdict: lock-order-deadlock" in done.stdout, done.stdout + done.stderr
    told = " ".join(done.stdout.partition("Who waits for whom\n")[2].split())
    assert re.match(rf"MainThread \({running.pid}\), at program.py:18 in <module> → joins thread first, at", told)
    assert re.search(
        r"→ wants Lock two, held by second \(\d+\) since program.py:11 in second \(read from its `with`\)", told
    )
    assert re.search(
        r"→ wants Lock one, held by first \(\d+\) since program.py:6 in first \(.*: back to the start", told
    )
    assert re.search(r"^  C   \S", done.stdout, re.M)
    assert re.search(r"^  py  <module> at .*program.py:18$", done.stdout, re.M)
