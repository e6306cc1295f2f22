"""`postmortem debug` and the pm-* commands over real cores, against what the program says of itself."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest

from postmortem import places

from ..live.capturing import HANG_S, finished, start
from ..live.interpreters import Program, matrix

pytestmark = pytest.mark.live

#: A holder of `first` (by with) that waits for `second`; one that waits for `first`; a deep recursion; an event loop
#: with tasks. All but the main thread, which reads stdin.
PROGRAM = """
import asyncio, ctypes, json, os, sys, threading, time
sys.setrecursionlimit(20_000)
threading.stack_size(64 << 20)
first, second = threading.Lock(), threading.RLock()
up = threading.Semaphore(0)
accounts = {}
def account(frame):
    rows = []
    while frame:
        rows.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return rows
def holder():
    with first:
        password, number, words = "hunter2", 41 + 1, ["a", "b"]
        up.release()
        second.acquire()
def waiter():
    up.release()
    first.acquire()
def deep(n=1500):
    if n:
        deep(n - 1)
    else:
        up.release()
        second.acquire()
async def inner():
    await asyncio.sleep(10_000)
async def outer():
    await inner()
async def keeps(gate):
    async with gate:
        await inner()
async def wants(gate):
    async with gate:
        pass
async def loop_main():
    tasks = [asyncio.ensure_future(outer()) for _ in range(3)]
    gate = asyncio.Lock()
    tasks += [asyncio.ensure_future(keeps(gate)), asyncio.ensure_future(wants(gate))]
    await asyncio.sleep(0.01)
    up.release()
    await asyncio.wait(tasks)
def looper():
    asyncio.run(loop_main())
second.acquire()
mutex = ctypes.create_string_buffer(40)  # zeros: a pthread_mutex_t that is free
lock_mutex = ctypes.CDLL(None).pthread_mutex_lock
lock_mutex(mutex)
def native():
    up.release()
    lock_mutex(mutex)
tids = {}
def named(function):
    tids[function.__name__] = threading.get_native_id()
    function()
for function in (holder, waiter, deep, looper, native):
    threading.Thread(target=named, args=(function,), name="the " + function.__name__, daemon=True).start()
    up.acquire()
def settled(tid):
    return open("/proc/self/task/%d/stat" % tid).read().rpartition(")")[2].split()[0] == "S"
while not all(map(settled, tids.values())):
    time.sleep(0.01)
time.sleep(0.2)
idents = {t.name: t.ident for t in threading.enumerate()}
stacks = {name: account(sys._current_frames()[ident]) for name, ident in idents.items() if name.startswith("the ")}
print(json.dumps({"tids": {**tids, "main": os.getpid()}, "stacks": stacks}), flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


class Core(NamedTuple):
    path: Path
    bundle: Path
    tids: Dict[str, int]
    stacks: Dict[str, List[List[Any]]]
    minor: int
    free_threaded: bool


def take(python: Any, folder: Path) -> Core:
    with Program(python, PROGRAM, folder) as program:
        said = json.loads(program.lines[-1])
        bundle = folder / "bundle"
        done = finished(start("--observe", "0", "-o", str(bundle), "--pid", str(program.pid)), bundle)
        assert done.status == 0, done.stderr
        minor = getattr(python, "version", sys.version_info[:2])[1]
        free_threaded = getattr(python, "free_threaded", False)
        return Core(done.core(program.pid), bundle, said["tids"], said["stacks"], minor, free_threaded)


@pytest.fixture(scope="module", params=matrix())
def core(request, gdb, tmp_path_factory) -> Core:
    return take(request.param, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def own(gdb, tmp_path_factory) -> Core:
    """Of the tests' own interpreter."""
    return take(sys.executable, tmp_path_factory.mktemp("own"))


def debug(target: Any, *words: str, status: int = 0) -> str:
    """The output of `postmortem debug TARGET WORDS --batch`."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", str(target), *words, "--batch"], capture_output=True, text=True,
        timeout=HANG_S * 2, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "defect of postmortem" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout  # colours are for terminals
    return done.stdout + done.stderr


def commands(target: Any, *named: str) -> Dict[str, str]:
    """The output of each command, by one run of gdb."""
    words = [word for command in named for word in ("-ex", f"echo @@{command}\\n", "-ex", command)]
    parts = re.split(r"^@@(.*)\n", debug(target, *words), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


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
        [str(gdb), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", sys.executable,
         str(own.path), "-ex", f"source {script}", "-ex", "pm-why"],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
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
            [str(gdb), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
             "-p", str(running.pid), "-x", str(script), "-ex", "pm-why"],
            capture_output=True, text=True, check=False, timeout=HANG_S,
        )  # fmt: skip
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
        [sys.executable, "-m", "postmortem", "analyze", str(own.path)], capture_output=True, text=True, check=True,
        timeout=HANG_S * 2, env={**os.environ, "COLUMNS": "80"},
    ).stdout  # fmt: skip
    shown = commands(own.path, "pm-why")["pm-why"]
    signature = re.search(r"Signature \S+", analyzed)[0]
    assert signature in shown
    assert "Signature" in commands(own.bundle, "pm-why")["pm-why"]


def test_compressed_cores_and_bundles(own, tmp_path):
    """A compressed core and a bundle are opened as they are; --pid names one that must be there."""
    packed = tmp_path / "core.gz"
    packed.write_bytes(gzip.compress(own.path.read_bytes(), 1))
    for target in (packed, own.bundle):
        assert "the holder" in debug(target, "-ex", "pm-threads")
    assert "the holder" in debug(own.bundle, "--pid", str(own.tids["main"]), "-ex", "pm-threads")
    assert "holds no core of process 1" in debug(own.bundle, "--pid", "1", "-ex", "pm-threads", status=2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("pm-bt 999999999", "there is no thread with TID 999999999"),
        ("pm-bt all more", "Usage: pm-bt"),
        ("pm-locals x", "Usage: pm-locals"),
        ("pm-tasks no-such-task", "No task is named no-such-task"),
        ("help pm-bt", "Usage: pm-bt [--native] [all | TID]"),
        ("help pm-locks", "Usage: pm-locks"),
    ],
)
def test_errors_and_help_are_sentences(own, words, sentence):
    """What is asked wrongly is told in one sentence; each command has a usage."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", str(own.path), "-ex", words, "--batch"], capture_output=True,
        text=True, timeout=HANG_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_in_any_gdb_by_hand(own, gdb):
    """`source` of the printed script in a plain gdb gives the commands; a live process is read as well."""
    script = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", "--print-script"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(script) == places.shipped("gdb") / "postmortem.py"
    words = [str(gdb), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    empty = subprocess.run(
        [*words, "-ex", f"source {script}", "-ex", "pm-threads"], capture_output=True, text=True, check=False
    )
    assert "there is no core and no process" in empty.stderr
    done = subprocess.run(
        [*words, sys.executable, str(own.path), "-ex", f"source {script}", "-ex", "pm-threads", "-ex", "pm-why"],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert "the holder" in done.stdout
    assert "started by hand" in done.stderr


def test_a_live_process_is_followed(gdb, tmp_path):
    """Attached by hand: the commands read the process as it stands at each stop, not as it once was."""
    program = (
        "import ctypes, sys, threading\n"
        "ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)\n"
        "def before(): sys.stdin.readline()\ndef after(): sys.stdin.readline()\n"
        "print('ready', flush=True)\nbefore()\nprint('now', flush=True)\nafter()\n"
    )
    script = places.shipped("gdb") / "postmortem.py"
    with Program(sys.executable, program, tmp_path) as running:
        session = subprocess.Popen(
            [str(gdb), "-nx", "-q", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
             "-iex", "set pagination off", "-p", str(running.pid), "-x", str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:

            def ask(*lines: str) -> str:
                session.stdin.write("\n".join([*lines, "echo @@end\\n", ""]))
                session.stdin.flush()
                said: List[str] = []
                for line in session.stdout:
                    if "@@end" in line:
                        break
                    said.append(line)
                return "".join(said)

            assert "before at" in ask("pm-bt")
            running.process.stdin.write("\n")
            running.process.stdin.flush()
            shown = ask("tbreak write", "continue", "pm-threads", "pm-bt")
            assert "<module> at" in shown
            assert "before at" not in shown
            ask("detach")
        finally:
            session.kill()
            session.communicate()


def test_a_persons_session(own):
    """Through a terminal: gdb starts, says what is there, answers, colours, and quit ends it with status 0."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "postmortem", "debug", str(own.path)], stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"}, start_new_session=True, close_fds=True,
    )  # fmt: skip
    os.close(follower)
    said = b""

    def until(text: bytes) -> bytes:
        nonlocal said
        end = time.monotonic() + HANG_S
        while text not in said:
            assert time.monotonic() < end, said
            if select.select([leader], [], [], 1.0)[0]:
                said += os.read(leader, 65536)
        found, said = said, b""
        return found

    try:
        assert b"pm-threads" in until(b"(gdb) ")
        os.write(leader, b"set pagination off\npm-threads\n")
        assert b"the holder" in until(b"the looper")
        os.write(leader, b"pm-gil\n")
        until(b"waiters")
        os.write(leader, b"quit\n")
        assert process.wait(HANG_S) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(leader)


def test_without_gdb_it_says_what_to_install(own, tmp_path):
    """No gdb: one sentence and status 1."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", str(own.path), "--batch"], capture_output=True, text=True,
        env={**os.environ, "POSTMORTEM_GDB": str(tmp_path / "none")}, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "gdb is not there" in done.stderr
    assert "apt install gdb" in done.stderr


def test_a_wheel_has_the_commands_too(own, gdb, tmp_path):
    """With the scripts inside the package, as a wheel has them, they find it."""
    package = places.shipped("gdb").parent / "postmortem"
    shutil.copytree(str(package), str(tmp_path / "site" / "postmortem"), ignore=shutil.ignore_patterns("__pycache__"))
    inside = tmp_path / "site" / "postmortem" / "_shipped" / "gdb"
    shutil.copytree(str(places.shipped("gdb")), str(inside))
    done = subprocess.run(
        [str(gdb), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", sys.executable,
         str(own.path), "-x", str(inside / "postmortem.py"), "-ex", "pm-threads",
         "-ex", "python import postmortem.memory; print(postmortem.memory.__file__)"],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert "the holder" in done.stdout, done.stderr
    assert str(tmp_path / "site") in done.stdout.splitlines()[-1]
