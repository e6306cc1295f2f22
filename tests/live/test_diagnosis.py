"""The whole street, from a command that hangs to its report, as a user walks it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from ..support.diagnosing import LEDGER, capture, capture_pid, postmortem, report
from ..support.interpreters import Program, kinds, matrix

pytestmark = pytest.mark.live


def analyze(target: Path, folder: Path, **env: str) -> Dict[str, Any]:
    done = postmortem("analyze", str(target), "-f", "json", cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    loaded: Dict[str, Any] = json.loads(done.stdout)
    return loaded


def marked(*markers: str) -> List[int]:
    lines = LEDGER.splitlines()
    return [number for number, text in enumerate(lines, 1) if text.split("# ")[-1] in markers]


def assert_ledger(found: Dict[str, Any]) -> None:
    """Proven, with both lines, both locks and both holders."""
    leading = found["findings"][0]
    assert (found["verdict"], leading["confidence"]) == ("lock-order-deadlock", "proven")
    lines = {c["line"] for c in leading["culprits"]}
    assert lines == set(marked("holds-first", "wants-second", "holds-second", "wants-first"))
    process = found["processes"][0]
    names = {t["tid"]: t["name"] for t in process["threads"]}
    locks = [r for r in process["resources"] if r["kind"] == "lock"]
    owners = {r["description"]: (names.get(r["owner_tid"]), r["owner_basis"]) for r in locks}
    assert owners == {"Lock first.lock": ("deposit", "with-slot"), "Lock second.lock": ("withdraw", "with-slot")}


@pytest.mark.parametrize("python", matrix())
def test_a_lock_cycle_from_capture_core_and_bundle(python: str, tmp_path: Path) -> None:
    """The same proven verdict and signature from a capture, from its bundle, from its core alone, and from a bundle
    without program and cores, as on another machine."""
    captured = capture(tmp_path, LEDGER, python)
    assert_ledger(captured)
    bundle = tmp_path / "bundle"
    core = next((bundle / "raw" / "cores").glob("*.core"))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(str(bundle), str(elsewhere), ignore=shutil.ignore_patterns("*.core"))
    (tmp_path / "program.py").rename(tmp_path / "gone.py")
    for target in (bundle, core, elsewhere):
        again = analyze(target, tmp_path)
        assert_ledger(again)
        assert again["signature"] == captured["signature"], target
    source = [c["source"] for c in again["findings"][0]["culprits"]]
    assert all(text and "with" in text for text in source)


NEST = """
import threading
lock = threading.Lock()
def inner():
    print("ready", flush=True)
    with lock: pass
def key(x): return inner()
def middle(): return sorted([1, 2], key=key)
def outer(): return list(map(lambda f: f(), [middle]))
with lock:
    thread = threading.Thread(target=outer, name="nested")
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("python", kinds())
def test_python_frames_stand_at_the_loop_that_runs_them(python: str, tmp_path: Path) -> None:
    """Through calls from C back into Python: each native interpreter loop is right behind the Python frames that it runs,
    stripped or not, and all of them belong to one."""
    with Program(python, NEST, tmp_path) as program:
        found = capture_pid(program.pid, tmp_path)
    stack = next(t["stack"] for t in found["processes"][0]["threads"] if t["name"] == "nested")
    kinds = [f["function"] if f["kind"] == "python" else "*" if _is_loop(f) else "-" for f in stack]
    shown = "".join(f" {kind} " if kind not in "*-" else kind for kind in kinds)
    assert "- inner " in shown and "-*" not in shown, shown
    for caller in ("key", "<lambda>"):
        assert f" {caller} *-" in shown, shown
    assert shown.index(" inner ") < shown.index(" middle ") < shown.index(" outer ")


def _is_loop(frame: Dict[str, Any]) -> bool:
    return str(frame["function"]).startswith("_PyEval_EvalFrameDefault")


EXPLICIT = """
import threading
class Ledger:
    def __init__(self): self.guard = threading.Lock()
    def total(self):
        self.guard.acquire()
        try: return 1
        finally: self.guard.release()
    def close(self):
        self.guard.acquire()
        try: self.total()
        finally: self.guard.release()
Ledger().close()
"""


@pytest.mark.parametrize("python", kinds())
def test_a_holder_by_acquire_is_inferred_and_never_proven(python: str, tmp_path: Path) -> None:
    """Nothing in memory names who called acquire(): its frame and source do, and that is an inference."""
    found = capture(tmp_path, EXPLICIT, python)
    leading = found["findings"][0]
    assert (leading["pattern"], leading["confidence"]) == ("self-deadlock", "likely")
    assert {10, 6} <= {c["line"] for c in leading["culprits"]}
    assert [r["owner_basis"] for r in found["processes"][0]["resources"]] == ["inferred"]


LENT = """
import contextlib, threading, time
lock, lent = threading.Lock(), threading.Event()
class Lending:
    def __init__(self, guard): self.guard = guard
    def __enter__(self): self.guard.release()
    def __exit__(self, *_): self.guard.acquire()
def borrower():
    lock.acquire()
    lent.set()
    time.sleep(3000)
def main():
    with lock:
        threading.Thread(target=borrower).start()
        with Lending(lock):
            lent.wait()
main()
"""
MANAGERS = """
import contextlib, threading
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
class Guard:
    def __init__(self, lock): self._lock = lock
    def __enter__(self): self._lock.acquire()
    def __exit__(self, *_): self._lock.release()
@contextlib.contextmanager
def holding(lock):
    lock.acquire()
    try: yield
    finally: lock.release()
def one():
    with Guard(first):
        both.wait()
        with Guard(second): pass
def two():
    with holding(second):
        both.wait()
        with holding(first): pass
for f in (one, two): threading.Thread(target=f, name=f.__name__).start()
"""


@pytest.mark.parametrize("python", kinds())
def test_a_body_that_lends_its_lock_proves_nothing(python: str, tmp_path: Path) -> None:
    """The `with` slot is still there, but the lock is somebody else's by now: no self-deadlock, nothing proven."""
    found = capture(tmp_path, LENT, python)
    assert "self-deadlock" not in [f["pattern"] for f in found["findings"]]
    assert "proven" not in [f["confidence"] for f in found["findings"]]


@pytest.mark.parametrize("python", kinds())
def test_holders_behind_context_managers(python: str, tmp_path: Path) -> None:
    """A class whose __enter__ acquires and a generator that did: the cycle is found, as an inference."""
    leading = capture(tmp_path, MANAGERS, python)["findings"][0]
    assert (leading["pattern"], leading["confidence"]) == ("lock-order-deadlock", "likely")
    assert {14, 18} <= {c["line"] for c in leading["culprits"]}


def test_a_running_process_is_diagnosed_and_left_running(tmp_path: Path) -> None:
    """--pid gives 0 and the same verdict, and the process goes on."""
    with Program(sys.executable, LEDGER, tmp_path) as program:
        found = capture_pid(program.pid, tmp_path)
        assert program.process.poll() is None
        assert_ledger(found)


@pytest.mark.parametrize("hidden", ["gdb", "py-spy"])
def test_without_a_tool_the_rest_is_had(hidden: str, tmp_path: Path) -> None:
    """Missing gdb or py-spy: the diagnosis comes from the core all the same, one gap names the tool and the remedy."""
    empty = tmp_path / "bin"
    empty.mkdir()
    if hidden == "gdb":
        env = {"PATH": str(empty), "POSTMORTEM_GDB": str(tmp_path / "no-gdb")}
    else:
        env = {"POSTMORTEM_PYSPY": str(tmp_path / "no-py-spy")}
    found = capture(tmp_path, LEDGER, **env)
    assert_ledger(found)
    gaps = [g for g in found["gaps"] if g["source"] == hidden]
    assert len(gaps) == 1 and gaps[0]["reason"] and "install" in gaps[0]["remedy"]
    if hidden == "gdb":
        assert all(not t["native"] for t in found["processes"][0]["threads"])


FRAGMENTED = """
import mmap, threading
pages = mmap.mmap(-1, 6000 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, 6000, 2):
    pages[page * 4096] = 1
lock = threading.Lock()
with lock:
    with lock:
        pass
"""


def test_memory_in_thousands_of_pieces(tmp_path: Path) -> None:
    """Every second page touched: more regions than the kernel tells at once; the core is whole all the same."""
    found = capture(tmp_path, FRAGMENTED)
    assert (found["verdict"], found["findings"][0]["confidence"]) == ("self-deadlock", "proven")
    assert [g for g in found["gaps"] if g["source"] in ("core", "freeze")] == []
    assert {c["line"] for c in found["findings"][0]["culprits"]} == {7, 8}


def test_closed_streams_lose_nothing(tmp_path: Path) -> None:
    """With stderr closed there is nobody to tell, but the bundle is whole; so with stdout of `analyze`."""
    (tmp_path / "program.py").write_text(LEDGER)
    command = f"{sys.executable} -m postmortem capture -t 1.5 -o bundle -- {sys.executable} program.py 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=str(tmp_path), timeout=60, check=False).returncode == 124
    assert_ledger(report(tmp_path / "bundle"))
    again = f"{sys.executable} -m postmortem analyze bundle >&-"
    assert subprocess.run(["sh", "-c", again], cwd=str(tmp_path), timeout=60, check=False).returncode == 0


def test_a_program_that_is_no_python(tmp_path: Path) -> None:
    """`sleep 60`: not Python, in nanosleep, and for how long."""
    done = postmortem("capture", "-t", "1", "-o", "bundle", "--", "sleep", "60", cwd=tmp_path)
    assert done.returncode == 124
    assert "not a Python program" in done.stderr and "nanosleep" in done.stderr
    found = report(tmp_path / "bundle")
    assert found["processes"][0]["python"] is None
    assert found["processes"][0]["threads"][0]["wait"]["timeout_s"] == 60


SERVER = "import http.server; print('ready', flush=True); http.server.test(port=0, bind='127.0.0.1')"
BATCH = """
import math
def load(n): return [math.sin(i) for i in range(n)]
def clean(rows): return [r for r in rows if r > -0.5]
def fit(rows): return sum(r * r for r in rows) / len(rows)
print("ready", flush=True)
for station in range(100000):
    rows = load(20000 + station % 7)
    rows = clean(rows)
    print(station, fit(rows), flush=True)
"""


@pytest.mark.parametrize("source", [SERVER, BATCH], ids=["idle-server", "batch"])
def test_healthy_programs_get_nothing_above_possible(source: str, tmp_path: Path) -> None:
    """An idle http.server and a batch job at work are not accused."""
    with Program(sys.executable, source, tmp_path) as program:
        found = capture_pid(program.pid, tmp_path)
    assert [f for f in found["findings"] if f["confidence"] != "possible"] == []


def test_the_whole_tree_is_read(tmp_path: Path) -> None:
    """A parent that waits for its Python child: both processes, and the child's own line is the answer."""
    (tmp_path / "child.py").write_text("import time\ndef nap():\n    time.sleep(3600)\nnap()\n")
    source = "import subprocess, sys\ndef build():\n    subprocess.run([sys.executable, 'child.py'])\nbuild()\n"
    found = capture(tmp_path, source)
    assert len(found["processes"]) == 2
    patterns = [f["pattern"] for f in found["findings"]]
    assert patterns == ["sleeping", "child-wait"]
    assert found["findings"][0]["culprits"][0]["line"] == 3
    assert found["findings"][1]["because_of"] == ["sleeping"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p.write_text("hello " * 50), "not a core file"),
        (lambda p: p.mkdir(), "bundle"),
        (lambda p: None, "no file"),
        (lambda p: p.symlink_to(sys.executable), "not a core"),
    ],
    ids=["text", "empty-folder", "missing", "program"],
)
def test_bad_targets_get_one_sentence(make: Any, says: str, tmp_path: Path) -> None:
    """What is no core and no bundle is named in one line, status 1, no traceback."""
    make(tmp_path / "target")
    done = postmortem("analyze", "target", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1 and says in done.stderr, done.stderr


@pytest.mark.parametrize("python", kinds())
def test_a_sleep_is_as_long_as_the_program_asked_for(python: str, tmp_path: Path) -> None:
    """Whichever system call sleeps: up to 3.10 it is select, in whose memory the kernel leaves what remains."""
    found = capture(tmp_path, "import time\ntime.sleep(3600)\n", python)
    (thread,) = found["processes"][0]["threads"]
    assert (thread["wait"]["kind"], thread["wait"]["timeout_s"]) == ("sleep", 3600.0)


#: A thread that was to say that it is ready has failed, or says so later.
POLLS = """
import sys, threading, time

class Loader:
    def __init__(self):
        self.ready = False

    def load(self):
        time.sleep(0.1)
        if sys.argv[1] == "fails":
            sys.exit()
        time.sleep(600)
        self.finish()

    def finish(self):
        self.ready = True

def wait_for(loader):
    while not loader.ready:
        time.sleep(0.05)  # polls

def main():
    loader = Loader()
    threading.Thread(target=loader.load, daemon=True).start()
    threading.Timer(0.4, print, ("ready",), {"flush": True}).start()
    wait_for(loader)

main()
"""


@pytest.mark.parametrize(("does", "told"), [("fails", ("missed-wakeup", True)), ("sleeps", ("sleeping", True))])
def test_a_variable_that_nobody_is_left_to_set(does: str, told: Tuple[str, bool], tmp_path: Path) -> None:
    """Polling it is a wait without an end; if a thread's code stores it, what that thread waits for comes first."""
    with Program(sys.executable, POLLS, tmp_path, does) as program:
        leading = capture_pid(program.pid, tmp_path)["findings"][0]
    sure = leading["confidence"] in ("likely", "proven")
    assert (leading["pattern"], sure) == told, leading["summary"]
    assert ("loader.ready" if does == "fails" else "600 s") in leading["summary"]
