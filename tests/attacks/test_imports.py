"""Folders, environments and files that want to run in our programs: the interpreters, gdb and py-spy that we start.

The folder is the working directory of everything here. Whatever of it is run writes a marker with the command line of the
process that ran it; no program of ours may appear there, and the results must be those of a clean folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

from ..support import required
from ..support.capturing import HANG_S, ROOT

pytestmark = pytest.mark.live

#: What our own programs import, or what an interpreter imports by itself at its start.
MODULES = (
    "mmap", "json", "struct", "signal", "contextlib", "subprocess", "tempfile", "typing", "pathlib", "select", "msgspec",
    "ctypes", "sitecustomize", "usercustomize", "gdb", "six",
)  # fmt: skip
MARK = """
with open("/proc/self/cmdline", "rb") as stream:
    line = stream.read().replace(b"\\0", b" ")
with open({marks!r} + "/{name}." + str(abs(hash(line))), "wb") as stream:
    stream.write(line)
"""
#: Constructor of a library; what it is called for decides nothing.
LIBRARY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void run(void) {
    char line[4096], name[4200];
    int in = open("/proc/self/cmdline", O_RDONLY);
    ssize_t size = read(in, line, sizeof line);
    close(in);
    for (ssize_t i = 0; i < size; i++) if (!line[i]) line[i] = ' ';
    snprintf(name, sizeof name, "%s/library.%d", MARKS, (int) getpid());
    int out = open(name, O_WRONLY | O_CREAT, 0666);
    if (size > 0 && write(out, line, size) < 0) return;
    close(out);
}
"""
HUNG = """import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""
SUITE = """import threading

def test_that_hangs():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
GDB = "python open({marks!r} + '/{name}', 'w').write(open('/proc/self/cmdline').read().replace(chr(0), ' '))\n"
SCRIPT = '#!/bin/sh\necho "$0 $*" > {marks}/{name}.$$\nexit 1\n'


class Hostile:
    """``folder`` is the working directory; ``environment`` what its owner could set for those who work there."""

    def __init__(self, base: Path) -> None:
        self.folder, self.marks = base / "work", base / "marks"
        self.folder.mkdir()
        self.marks.mkdir()
        for name in MODULES:
            (self.folder / f"{name}.py").write_text(MARK.format(marks=str(self.marks), name=name))
        config = self.folder / "config" / "gdb"
        config.mkdir(parents=True)
        for path in (
            self.folder / ".gdbinit",
            self.folder / "gdbinit",
            self.folder / ".gdbearlyinit",
            config / "gdbinit",
            config / "gdbearlyinit",
            self.folder / "gdb-gdb.gdb",
            self.folder / "program-gdb.gdb",
        ):
            path.write_text(GDB.format(marks=str(self.marks), name=path.name))
        (self.folder / "program-gdb.py").write_text(MARK.format(marks=str(self.marks), name="program-gdb"))
        (self.folder / ".gdb_history").write_text("shell false\n")
        for name in ("gdb", "py-spy", "journalctl", "zstd", "git", "python3"):
            (self.folder / name).write_text(SCRIPT.format(marks=str(self.marks), name=name))
            (self.folder / name).chmod(0o755)
        (self.folder / "app.py").write_text(HUNG)
        self._program()
        self.environment = {
            **os.environ,
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "GDBHISTFILE": str(self.folder / ".gdb_history"),
            "GUILE_LOAD_PATH": str(self.folder),
            "PATH": f":.:{os.environ['PATH']}",
        }
        for name in [name for name in self.environment if name.startswith(("PYTHON", "PYTEST_", "COV"))]:
            del self.environment[name]

    def _program(self) -> None:
        """An interpreter of the target's own, beside which gdb's scripts for it lie."""
        self.program = self.folder / "program"
        shutil.copy(os.path.realpath(sys.executable), str(self.program))

    @property
    def target(self) -> List[str]:
        home = ["env", f"PYTHONHOME={sys.base_prefix}", f"LD_LIBRARY_PATH={sys.base_prefix}/lib"]
        return [*home, str(self.program), "-I", "app.py"]

    def library(self, name: str) -> Path:
        compiler = required.compiler()
        source = self.folder.parent / "library.c"
        source.write_text(f'#define MARKS "{self.marks}"\n{LIBRARY}')
        subprocess.run([compiler, "-shared", "-fPIC", "-o", name, str(source)], cwd=self.folder, check=True)
        return self.folder / name

    def run(self, *words: str, status: int = 0, **changes: str) -> str:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env={**self.environment, **changes},
            timeout=2 * HANG_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout

    @property
    def ran(self) -> Dict[str, str]:
        """Marker → the command line of what ran it."""
        return {path.name: path.read_text("utf-8", "replace") for path in sorted(self.marks.iterdir())}


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


#: The command, as it is installed.
POSTMORTEM = str(Path(sys.executable).with_name("postmortem"))


def verdict(report: Path) -> str:
    return str(json.loads(report.read_bytes())["verdict"])


def captured(hostile: Hostile, **changes: str) -> Path:
    bundle = hostile.folder.parent / "bundle"
    words = [POSTMORTEM, "capture", "-t", "1", "--observe", "0.3", "-o", str(bundle), "--", *hostile.target]
    hostile.run(*words, status=124, **changes)
    return bundle


def test_a_capture(hostile: Hostile) -> None:
    """A capture in the folder of a hostile program has the verdict and native stacks; nothing of the folder has run."""
    bundle = captured(hostile)
    assert hostile.ran == {}
    assert verdict(bundle / "report.json") == "self-deadlock"
    evidence = json.loads((bundle / "evidence.json").read_bytes())
    frames = [f for process in evidence["processes"] for thread in process["threads"] for f in thread["stack"]]
    assert any(frame.get("module", "").endswith("libc.so.6") for frame in frames)


def test_an_analysis_and_a_debugger(hostile: Hostile) -> None:
    """The bundle's core is read in the folder, beside the program's own scripts for gdb; none of them runs."""
    bundle = captured(hostile)
    core = next(iter((bundle / "raw" / "cores").glob("*.core")))
    found = json.loads(hostile.run(POSTMORTEM, "analyze", "--exe", str(hostile.program), "-f", "json", str(core)))
    assert found["verdict"] == "self-deadlock"
    words = ["debug", "--exe", str(hostile.program), str(core), "-ex", "pm-threads", "--batch"]
    assert "MainThread" in hostile.run(POSTMORTEM, *words)
    assert hostile.ran == {}


def test_a_library_for_threads_beside_the_target_s(hostile: Hostile) -> None:
    """gdb finds libthread_db where the target's own libpthread lies; here that is the target's folder."""
    libc = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc.so.6" in line]
    if not libc:
        pytest.skip("the tests' interpreter runs on another libc")
    for name in ("libc.so.6", "libpthread.so.0"):
        found = Path(libc[0]).with_name(name)
        if found.exists():
            shutil.copy(str(found), str(hostile.folder / name))
    hostile.library("libthread_db.so.1")
    bundle = hostile.folder.parent / "bundle"
    home = ["env", f"PYTHONHOME={sys.base_prefix}", f"LD_LIBRARY_PATH={hostile.folder}:{sys.base_prefix}/lib"]
    command = [*home, str(hostile.program), "-I", "app.py"]
    hostile.run(POSTMORTEM, "capture", "-t", "1", "--observe", "0.3", "-o", str(bundle), "--", *command, status=124)
    core = next(iter((bundle / "raw" / "cores").glob("*.core")))
    hostile.run(POSTMORTEM, "debug", "--exe", str(hostile.program), str(core), "-ex", "info threads", "--batch")
    assert verdict(bundle / "report.json") == "self-deadlock"
    assert hostile.ran == {}


def test_libraries_that_the_environment_names(hostile: Hostile) -> None:
    """What LD_PRELOAD, LD_AUDIT and GCONV_PATH ask for runs in the command under capture and in ``postmortem`` itself, for
    whom they were set; never in gdb, py-spy or an interpreter that we start."""
    library = hostile.library("evil.so")
    bundle = captured(hostile, LD_PRELOAD=str(library), GCONV_PATH=str(hostile.folder))
    assert verdict(bundle / "report.json") == "self-deadlock"
    ours = [line for line in hostile.ran.values() if "app.py" not in line]
    assert [line for line in hostile.ran.values() if line.split()[-1:] == ["app.py"]]  # it does work
    assert [line for line in ours if "postmortem" not in line or "-nx" in line or "record" in line] == []


def test_a_limit_of_pytest_s(hostile: Hostile) -> None:
    """pytest's examiner and watchdog, started in the suite's folder and with the environment that pytest had: the verdict
    is right, and of ours nothing has imported anything from there. pytest itself may: it was told to."""
    (hostile.folder / "tests").mkdir()
    (hostile.folder / "tests" / "test_it.py").write_text(SUITE)
    site = hostile.folder / "site"
    site.mkdir()
    (hostile.folder / "sitecustomize.py").rename(site / "sitecustomize.py")
    out = hostile.run(
        str(Path(sys.executable).with_name("pytest")),
        "-p",
        "no:cacheprovider",
        "--postmortem-timeout",
        "1",
        "tests",
        status=1,
        PYTHONPATH=str(site),
    )
    reports = list((hostile.folder / "postmortem-bundles").glob("*/report.json"))
    assert [verdict(report) for report in reports] == ["self-deadlock"], out
    assert [line for line in hostile.ran.values() if "postmortem-timeout" not in line] == []
    assert hostile.ran  # it does work


def test_a_limit_of_pytest_s_in_a_folder_with_modules_alone(hostile: Hostile) -> None:
    """The same without a word in the environment: what is tried is the working directory."""
    (hostile.folder / "tests").mkdir()
    (hostile.folder / "tests" / "test_it.py").write_text(SUITE)
    pytests = str(Path(sys.executable).with_name("pytest"))
    out = hostile.run(pytests, "-p", "no:cacheprovider", "--postmortem-timeout", "1", "tests", status=1)
    assert [verdict(path) for path in hostile.folder.glob("postmortem-bundles/*/report.json")] == ["self-deadlock"], out
    assert hostile.ran == {}


def test_the_doctor(hostile: Hostile) -> None:
    """It asks the real tools, wherever they lie, and none of the folder's, which PATH names by a relative word."""
    said = hostile.run(POSTMORTEM, "doctor")
    assert [tool for tool in ("gdb", "py-spy", "journalctl") if f"{hostile.folder}/{tool}" in said] == []
    assert "with Python" in said
    assert hostile.ran == {}


def test_python_dash_m(hostile: Hostile) -> None:
    """``python -m postmortem`` puts the folder first; it is dropped before anything else is imported. (A package
    ``postmortem``, or a module that Python itself imports for -m, would still be run: the command is the safe form.)"""
    for name in ("contextlib", "typing", "sitecustomize", "usercustomize"):
        (hostile.folder / f"{name}.py").unlink()  # runpy's own, before any word of ours
    bundle = captured(hostile)
    said = hostile.run(sys.executable, "-m", "postmortem", "report", str(bundle))
    assert "self-deadlock" in said
    assert "Usage: postmortem" in hostile.run(sys.executable, "-m", "postmortem", "capture", "--help")
    assert hostile.ran == {}


def test_no_other_program_is_started(hostile: Hostile) -> None:
    """What a capture, an analysis and a report start, as the interpreter itself tells of it: py-spy, gdb, the command."""
    told = hostile.folder.parent / "told"
    hook = f"""
import sys
def hook(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.spawn", "pty.spawn"):
        with open({str(told)!r}, "a") as stream:
            stream.write(str(arguments[0]) + "\\n")
sys.addaudithook(hook)
from postmortem.__main__ import main
sys.exit(main())
"""
    bundle = hostile.folder.parent / "bundle"
    run = [sys.executable, "-I", "-c", f"import sys; sys.path.append({str(ROOT)!r})\n{hook}"]
    hostile.run(*run, "capture", "-t", "1", "--observe", "0.3", "-o", str(bundle), "--", *hostile.target, status=124)
    hostile.run(*run, "report", str(bundle))
    started = set(told.read_text().split("\n")[:-1])
    assert {Path(name).name for name in started} == {"env", "gdb", "py-spy"}
    assert all(Path(name).is_absolute() for name in started - {"env"})  # the command is the user's own
    assert [name for name in started if name.startswith(str(hostile.folder))] == []
