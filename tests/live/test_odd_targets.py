"""Targets as users have them: without their files, embedded, several in one, made and unmade; what is said of them is true,
and what cannot be said is a gap with a remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from postmortem.evidence import Process, PythonFrame
from postmortem.extract.assemble.cores import from_core
from postmortem.extract.assemble.how import How
from tests.support.bundles import evidence_of

from ..support import required
from ..support.interpreters import Program, find, matrix
from ..support.inwords import reason, remedy
from ..support.takingcores import kernel_core, sparse_core

pytestmark = pytest.mark.live

LOCKED = """
import sys, threading, time
lock = threading.Lock()
def waiter():
    lock.acquire()  # wanted
def main():
    with lock:
        threading.Thread(target=waiter, name="waiter", daemon=True).start()
        time.sleep(0.2)
        print("ready", flush=True)
        sys.stdin.read()
main()
"""


def _stacks(process: Process) -> Dict[str, List[Tuple[str, object, str]]]:
    return {t.name or str(t.tid): [(f.file, f.line, f.function) for f in t.python] for t in process.threads}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are started, and where the kernel leaves their cores."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("python", matrix())
def test_python_stacks_need_no_file(python: object, folder: Path) -> None:
    """An interpreter that was upgraded while it ran has left a core, and no file of its build is anywhere: threads, names and
    frames are those that are read with the files; that native stacks are poor is a gap with a remedy."""
    with Program(os.fspath(python), LOCKED, folder) as program:  # type: ignore[call-overload]
        core = kernel_core(program, folder)
    whole, bare = from_core(core), from_core(core, How(sysroot=folder / "nothing is here"))
    here, there = whole.processes[0], bare.processes[0]
    assert next(iter(_stacks(here)["waiter"]))[2] == "waiter"
    assert _stacks(there) == _stacks(here)
    assert there.python == here.python
    assert {t.tid: t.wait.kind for t in there.threads if t.wait} == {t.tid: t.wait.kind for t in here.threads if t.wait}
    assert [remedy(gap) for gap in bare.gaps if gap.source == "gdb"]


EMBEDDED = """
import sys, time
def held():
    if last:
        print("ready", flush=True)
    time.sleep(1000)
held()
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program in C, not called python, that loads libpythons."""
    compiler = required.compiler()
    program = tmp_path_factory.mktemp("host") / "server"
    source = Path(__file__).with_name("embedding.c")
    subprocess.run([compiler, "-g", "-o", str(program), str(source), "-ldl", "-lpthread"], check=True)
    return program


def _library(version: str) -> str:
    """The shared libpython of an interpreter that has one."""
    python = find(version)
    prefix = Path(os.path.realpath(python)).parents[1] if python else Path("/nowhere")
    library = prefix / "lib" / f"libpython{version}.so.1.0"
    if not library.exists():
        required.lacking(f"no shared libpython{version}: install it with pyenv and --enable-shared")
    return str(library)


@pytest.mark.parametrize("mode", [[], ["-m"], ["-r"]], ids=["loaded", "namespace", "initialised twice"])
def test_an_interpreter_in_a_thread_of_another_program(host: Path, mode: List[str], folder: Path) -> None:
    """The program is no python, its main thread has never heard of it, the library's symbols are local: the thread that runs
    Python has its frames in place, and the main thread is detached."""
    with Program(host, EMBEDDED, folder, *mode, _library("3.12")) as program:
        process = from_core(kernel_core(program, folder)).processes[0]
    main, other = sorted(process.threads, key=lambda thread: not thread.is_main)
    assert process.python is not None and process.python.version.startswith("3.12.")
    assert [frame.function for frame in other.python] == ["held", "<module>"]
    assert other.python[0].line == EMBEDDED.splitlines().index("    time.sleep(1000)") + 2
    first = next(at for at, frame in enumerate(other.stack) if isinstance(frame, PythonFrame))
    assert 0 < first < len(other.stack) - 1, "Python frames stand among native ones"
    assert (main.python, main.gil, other.gil) == ((), "detached", "detached")


def test_of_two_interpreters_the_other_is_named(host: Path, folder: Path) -> None:
    """One is shown, the other is a gap; of the thread that runs the other's Python nothing is claimed."""
    with Program(host, EMBEDDED, folder, "-m", _library("3.11"), _library("3.12")) as program:
        evidence = from_core(kernel_core(program, folder))
    process = evidence.processes[0]
    assert process.python is not None
    other = "3.11" if process.python.version.startswith("3.12") else "3.12"
    assert [gap for gap in evidence.gaps if f"not shown: CPython {other}." in reason(gap)]
    shown = [thread for thread in process.threads if thread.python]
    assert [[frame.function for frame in thread.python] for thread in shown] == [["held", "<module>"]]
    assert {thread.gil for thread in process.threads if thread not in shown} == {"unknown"}


@pytest.mark.parametrize("mode", ["-n", "-f"], ids=["never initialised", "finalised"])
def test_a_library_without_an_interpreter(host: Path, mode: str, folder: Path) -> None:
    """libpython is mapped and nothing runs in it: native stacks, and one gap that says so and what to do."""
    with Program(host, EMBEDDED, folder, mode, _library("3.12")) as program:
        evidence = from_core(kernel_core(program, folder))
    (process,) = evidence.processes
    assert process.python is None
    assert all(thread.native and thread.gil == "unknown" for thread in process.threads)
    (gap,) = [gap for gap in evidence.gaps if gap.source == "cpython"]
    assert "not initialised" in reason(gap) and reason(gap).count("libpython3.12") == 1
    assert remedy(gap)


def test_a_program_that_was_deleted_while_it_runs(host: Path, folder: Path) -> None:
    """A capture takes along what nobody else has: native stacks are whole, and no remedy asks for a file."""
    server = folder / "upgraded server"
    shutil.copy(host, server)
    with Program(server, EMBEDDED, folder, _library("3.12")) as program:
        server.unlink()
        sparse_core(program, folder)
    evidence = evidence_of(folder / "b")
    (process,) = evidence.processes
    main = next(thread for thread in process.threads if thread.is_main)
    assert "main" in [frame.function for frame in main.native]
    assert not [gap for gap in evidence.gaps if "deleted" in reason(gap) or "main program" in gap.subject]


ODD = """
import os, sys, threading, time
NAMES = ["a\\nb", "\\x1b[31mred\\x07", "n" * 300, "\\udc80low"]
FILES = ["<ipython-input-1>", "a\\nb\\x1b[31m.py", "", "/dev/zero"]
reading, writing = os.pipe()
def named():
    os.write(writing, b"x")
    time.sleep(1000)
for name in NAMES:
    threading.Thread(target=named, name=name, daemon=True).start()
    os.read(reading, 1)
time.sleep(0.2)  # for the last steps into sleep(), which no handshake can see
def within(files):
    if not files:
        print("ready", flush=True)
        time.sleep(1000)
    namespace = {}
    exec(compile("def f(inner, files):\\n    sorted([files], key=inner)", files[0], "exec"), namespace)
    namespace["f"](within, files[1:])
class Late:
    def __del__(self, within=within, files=FILES):
        sys.settrace(lambda frame, event, argument: None)
        within(files)
if sys.argv[1] == "late":
    sys.modules["late"] = Late()
else:
    Late()
"""


#: The files of the main thread of ODD, innermost frame first.
_OWN = "program.py"
_ODD_FILES = [_OWN, "/dev/zero", _OWN, "", _OWN, "a\nb\x1b[31m.py", _OWN, "<ipython-input-1>", _OWN, _OWN]


def _odd_files(process: Process) -> List[str]:
    main = next(thread for thread in process.threads if thread.is_main)
    assert {frame.line for frame in main.python if frame.function == "f"} == {2}
    return [os.path.basename(frame.file) if frame.file.endswith(_OWN) else frame.file for frame in main.python]


@pytest.mark.parametrize("python", matrix())
def test_names_that_are_no_names(python: object, folder: Path) -> None:
    """C functions and a finalizer stand between Python frames, files are called anything or nothing, threads are named to
    hurt a terminal: all as the interpreter has them, lone surrogates escaped; none of it is a gap."""
    with Program(os.fspath(python), ODD, folder, "now") as program:  # type: ignore[call-overload]
        evidence = from_core(kernel_core(program, folder))
    process = evidence.processes[0]
    assert _odd_files(process) == [*_ODD_FILES, _OWN]
    names = {thread.name for thread in process.threads if thread.python and not thread.is_main}
    assert names == {"a\nb", "\x1b[31mred\x07", "n" * 300, "\\udc80low"}
    assert not [gap for gap in evidence.gaps if gap.source == "cpython"]


@pytest.mark.parametrize("python", matrix())
def test_a_finalizer_that_the_end_of_the_interpreter_runs(python: object, folder: Path) -> None:
    """Its modules are being torn down, the names of types and threads with them: its frames are all there, and
    that the states of daemon threads have been removed is a gap."""
    with Program(os.fspath(python), ODD, folder, "late") as program:  # type: ignore[call-overload]
        evidence = from_core(kernel_core(program, folder))
    process = evidence.processes[0]
    assert process.python is not None and process.python.finalizing is True
    assert _odd_files(process) == _ODD_FILES
    lost = [thread for thread in process.threads if not thread.python]
    assert not lost or [remedy(gap) for gap in evidence.gaps if f"no longer knows {len(lost)} thread" in reason(gap)]
