"""The pm-* commands over real cores, against what the program says of itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from postmortem import places

from ..support.capturing import HANG_S
from ..support.interpreters import Program, matrix
from .debugging import Core, commands, debug, take

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", params=matrix(ctypes=True))
def core(request, gdb, tmp_path_factory) -> Core:
    return take(request.param, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def own(gdb, tmp_path_factory) -> Core:
    """Of the tests' own interpreter."""
    return take(sys.executable, tmp_path_factory.mktemp("own"))


def test_threads_are_as_the_program_says(core):
    """pm-threads: every thread with its TID, name, wait and innermost frame; gdb's number leads to the same thread."""
    shown = commands(core.path, "pm-threads", "info threads")
    for name in ("holder", "waiter", "deep", "looper"):
        line = next(line for line in shown["pm-threads"].splitlines() if f"the {name} " in line)
        number, tid = line.replace("*", " ").split()[:2]
        assert int(tid) == core.tids[name]
        assert re.search(rf"^[* ] +{number} .*LWP {tid}\b", shown["info threads"], re.M)
        function, file, lineno = core.stacks[f"the {name}"][0]
        assert re.search(rf"{function} at {re.escape(file)}:{lineno}$", line)
        assert " detached " in line
    assert f"{core.tids['main']} " in shown["pm-threads"]


def test_stacks_are_as_the_program_says(core):
    """pm-bt all: function, file and line of every frame, in order; a deep recursion is one line and a count."""
    stacks = re.split(r"^Thread ", commands(core.path, "pm-bt all")["pm-bt all"], flags=re.M)[1:]
    by_tid = {int(re.search(r"TID (\d+)", stack)[1]): stack for stack in stacks}
    for name in ("holder", "waiter", "looper"):
        rows = re.findall(r"^  #\d+ +(\S+) at (.*):(\d+)$", by_tid[core.tids[name]], re.M)
        assert [[function.split(".")[-1], file, int(line)] for function, file, line in rows] == [
            list(row) for row in core.stacks[f"the {name}"]
        ]
    deep = by_tid[core.tids["deep"]]
    assert len(deep.splitlines()) < 100
    counted = re.search(r"this frame ([\d,]+) more times|([\d,]+) frames are not shown", deep)
    assert counted, deep
    assert "_bootstrap" in deep.splitlines()[-1] or "_bootstrap" in deep


def test_locals_are_the_programs(core):
    """pm-locals: values by a reader of ours, a secret masked; a frame that is not there is a sentence."""
    line = next(line for line in debug(core.path, "-ex", "pm-threads").splitlines() if "the holder " in line)
    select_it = f"thread {line.replace('*', ' ').split()[0]}"
    shown = commands(core.path, select_it, "pm-locals")["pm-locals"]
    assert "number = 42" in shown
    assert "words = ['a', 'b']" in shown
    assert "password = " in shown
    assert "hunter2" not in shown
    assert "Python frames" in debug(core.path, "-ex", select_it, "-ex", "pm-locals 99", status=1)


def test_merged_stacks_hold_both_kinds(core):
    """pm-bt --native: the Python frames in their order, each run before the C frame that runs it."""
    shown = commands(core.path, f"pm-bt --native {core.tids['waiter']}").popitem()[1]
    rows = re.findall(r"^  py  (\S+) at (.*):(\d+)$", shown, re.M)
    assert [row[0].split(".")[-1] for row in rows] == [row[0] for row in core.stacks["the waiter"]]
    kinds = re.findall(r"^  (C|py) {2,3}\S", shown, re.M)
    assert kinds[0] == "C"
    assert kinds[-1] == "C"


def test_locks_have_holders_and_waiters(core):
    """pm-locks: `first` is held by a with statement, `second` by its own record; who waits for each."""
    shown = commands(core.path, "pm-locks")["pm-locks"]
    first = next(line for line in shown.splitlines() if line.startswith("first "))
    assert first.split()[1:] == ["lock", str(core.tids["holder"]), "with", str(core.tids["waiter"])]
    second = next(line for line in shown.splitlines() if line.startswith("second "))
    assert second.split()[1:4] == ["rlock", str(core.tids["main"]), "record"]
    assert {core.tids["holder"], core.tids["deep"]} == {int(t) for t in re.findall(r"\d+", second.split("record")[1])}


def test_native_locks_have_holders_too(core):
    """pm-locks: a mutex by its own record, on every C library."""
    shown = commands(core.path, "pm-locks")["pm-locks"]
    mutex = next(line for line in shown.splitlines() if re.search(r" mutex +\d", line))
    assert mutex.split()[-4:] == ["mutex", str(core.tids["main"]), "record", str(core.tids["native"])]


def test_tasks_say_what_they_await(core):
    """pm-tasks: a task's lock by its name, and the task that is inside its `async with`."""
    shown = commands(core.path, "pm-tasks")["pm-tasks"]
    heads = dict(re.findall(r"^(\S.*)\n  #0 .*\n(?:  #.*\n)*?  #\d+ +(wants|keeps) at", shown, re.M)[::-1])
    names = {function: head for head, function in heads.items()}
    keeper = names["keeps"].split(" (")[0]
    assert f"awaits asyncio.Lock gate, held by {keeper})" in names["wants"]
    assert "sleep(10000)" in names["keeps"]


def test_who_waits_for_whom_without_a_diagnosis(own, gdb):
    """pm-why in a gdb by hand: the circle of two threads, from where it is entered, with the lines of both sides; then a
    sentence that says how to get the diagnosis."""
    script = places.shipped("gdb") / "postmortem.py"
    done = subprocess.run(
        [
            str(gdb),
            "-nx",
            "-batch",
            "-iex",
            "set auto-load off",
            "-iex",
            "set debuginfod enabled off",
            sys.executable,
            str(own.path),
            "-ex",
            f"source {script}",
            "-ex",
            "pm-why",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert "Who waits for whom" in done.stdout, done.stderr
    assert "waits for no other thread" in done.stdout
    assert "started by hand" in done.stderr


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


def test_a_live_circle_is_told(gdb, tmp_path):
    """pm-why on a process that runs: from the main thread's join along the circle, each link with its line."""
    script = places.shipped("gdb") / "postmortem.py"
    with Program(sys.executable, CIRCLE, tmp_path) as running:
        done = subprocess.run(
            [
                str(gdb),
                "-nx",
                "-batch",
                "-iex",
                "set auto-load off",
                "-iex",
                "set debuginfod enabled off",
                "-p",
                str(running.pid),
                "-x",
                str(script),
                "-ex",
                "pm-why",
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )
    lines = done.stdout.partition("Who waits for whom\n")[2].splitlines()
    assert lines[0].startswith(f"  MainThread ({running.pid})"), done.stdout + done.stderr
    assert lines[1].startswith("    → joins first (")
    assert re.match(r"    → wants lock two, held by second \(\d+\) since program.py:11 in second \(read", lines[2])
    assert re.match(
        r"    → wants lock one, held by first \(\d+\) since program.py:6 in first .*circle is closed$", lines[3]
    )
    assert [line for line in lines[4:] if "→" in line] == []


def test_objects_are_counted_by_type(core):
    """pm-objects: as many rows as asked for, the most frequent first; a free-threaded build says why it has none."""
    shown = commands(core.path, "pm-objects 3")["pm-objects 3"]
    if core.free_threaded:
        assert "a free-threaded build" in shown
        return
    head, titles, *rows = shown.splitlines()
    assert re.match(r"Interpreter 0: \d{4,} objects of \d+ types$", head)
    assert titles.split() == ["COUNT", "TYPE"]
    rows = [row for row in rows if re.match(r"\d+ +\w", row)]
    numbers = [int(row.split()[0]) for row in rows]
    assert len(numbers) == 3
    assert numbers == sorted(numbers, reverse=True)


def test_tasks_have_their_chain(core):
    """pm-tasks: each task with its coroutines down to the innermost await."""
    shown = commands(core.path, "pm-tasks")["pm-tasks"]
    chains = [re.findall(r"#\d+ +(\S+) at", part) for part in re.split(r"^(?=\S)", shown, flags=re.M)]
    assert sum(chain[-2:] == ["inner", "outer"] for chain in chains) == 3
    assert sum(chain[-1:] == ["loop_main"] for chain in chains) == 1


def test_the_gil_is_as_nobody_wants_it(core):
    """pm-gil: all threads wait in C, so it is free, or not said to be held by one of them; its interval is the default."""
    shown = commands(core.path, "pm-gil")["pm-gil"]
    if "cannot be read, or this build has none" not in shown:
        assert "switch interval: 5 ms" in shown
        assert "locked: no" in shown
        assert "waiters: none" in shown


def test_why_is_the_report(own):
    """pm-why: the text that analyze prints, made while gdb starts; also of a whole bundle."""
    analyzed = subprocess.run(
        [sys.executable, "-m", "postmortem", "analyze", str(own.path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S * 2,
        env={**os.environ, "COLUMNS": "80"},
    ).stdout
    shown = commands(own.path, "pm-why")["pm-why"]
    signature = re.search(r"Signature \S+", analyzed)[0]
    assert signature in shown
    assert "Signature" in commands(own.bundle, "pm-why")["pm-why"]
