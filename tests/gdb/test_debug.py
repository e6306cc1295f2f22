"""`postmortem debug`: what it opens, what it refuses, a person at it, and gdb without it."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from postmortem import places

from ..support.capturing import HANG_S
from ..support.interpreters import Program
from .debugging import Core, Terminal, debug, take

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def own(gdb: Path, tmp_path_factory: pytest.TempPathFactory) -> Core:
    """Take a core of the tests' own interpreter."""
    return take(sys.executable, tmp_path_factory.mktemp("own"))


def test_compressed_cores_and_bundles(own: Core, tmp_path: Path) -> None:
    """A compressed core and a bundle are opened as they are; --pid names one that must be there."""
    packed = tmp_path / "core.gz"
    packed.write_bytes(gzip.compress(own.path.read_bytes(), 1))
    for target in (packed, own.bundle):
        assert "the holder" in debug(target, "-ex", "pm-threads")
    assert "the holder" in debug(own.bundle, "--pid", str(own.tids["main"]), "-ex", "pm-threads")
    assert "holds no core of process 1" in debug(own.bundle, "--pid", "1", "-ex", "pm-threads", status=2)


#: gdb on the core that is open, whatever its path leads to by now.
ATTACHED = """
import os, sys
from pathlib import Path
from postmortem.native.interactive import Opened, interact
core, exe = map(Path, sys.argv[1:])
held = os.open(core, os.O_RDONLY)
core.with_name("another").write_bytes(b"another file")
core.with_name("another").replace(core)
sys.exit(interact(Opened(core, exe, None, None, held), ["-ex", "pm-threads", "-batch"], {}))
"""


def test_gdb_has_the_core_that_was_opened(own: Core, tmp_path: Path) -> None:
    """Given a descriptor, gdb and the commands in it read that, not what lies under the path by then."""
    core = tmp_path / "core"
    shutil.copyfile(own.path, core)
    done = subprocess.run(
        [sys.executable, "-c", ATTACHED, str(core), os.path.realpath(sys.executable)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert "the holder" in done.stdout, done.stdout + done.stderr


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
def test_errors_and_help_are_sentences(own: Core, words: str, sentence: str) -> None:
    """What is asked wrongly is told in one sentence; each command has a usage."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", str(own.path), "-ex", words, "--batch"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_in_any_gdb_by_hand(own: Core, gdb: Path) -> None:
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
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert "the holder" in done.stdout
    assert "Signature of this diagnosis" in done.stdout, done.stderr


def test_a_live_process_is_followed(gdb: Path, tmp_path: Path) -> None:
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
            [
                str(gdb),
                "-nx",
                "-q",
                "-iex",
                "set auto-load off",
                "-iex",
                "set debuginfod enabled off",
                "-iex",
                "set pagination off",
                "-p",
                str(running.pid),
                "-x",
                str(script),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:

            def ask(*lines: str) -> str:
                assert session.stdin is not None and session.stdout is not None
                session.stdin.write("\n".join([*lines, "echo @@end\\n", ""]))
                session.stdin.flush()
                said: List[str] = []
                for line in session.stdout:
                    if "@@end" in line:
                        break
                    said.append(line)
                return "".join(said)

            assert "before at" in ask("pm-bt")
            assert running.process.stdin is not None
            running.process.stdin.write("\n")
            running.process.stdin.flush()
            shown = ask("tbreak write", "continue", "pm-threads", "pm-bt")
            assert "<module> at" in shown
            assert "before at" not in shown
            ask("detach")
        finally:
            session.kill()
            session.communicate()


def test_a_persons_session(own: Core) -> None:
    """Through a terminal: gdb starts, says what is there, answers, colours, and quit ends it with status 0."""
    words = [sys.executable, "-m", "postmortem", "debug", str(own.path)]
    with Terminal(words, {**os.environ, "TERM": "xterm", "COLUMNS": "200"}) as terminal:
        assert b"pm-threads" in terminal.until(b"(gdb) ")
        terminal.write(b"set pagination off\npm-threads\n")
        assert b"the holder" in terminal.until(b"the looper")
        terminal.write(b"pm-gil\n")
        terminal.until(b"waiters")
        terminal.write(b"quit\n")
        assert terminal.process.wait(HANG_S) == 0


def test_without_gdb_it_says_what_to_install(own: Core, tmp_path: Path) -> None:
    """No gdb: one sentence and status 1."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "debug", str(own.path), "--batch"],
        capture_output=True,
        text=True,
        env={**os.environ, "POSTMORTEM_GDB": str(tmp_path / "none")},
        check=False,
    )
    assert done.returncode == 1
    assert "gdb is not installed" in done.stderr
    assert "apt install gdb" in done.stderr


def test_a_wheel_has_the_commands_too(own: Core, gdb: Path, tmp_path: Path) -> None:
    """With the scripts inside the package, as a wheel has them, they find it."""
    package = places.shipped("gdb").parent / "postmortem"
    shutil.copytree(str(package), str(tmp_path / "site" / "postmortem"), ignore=shutil.ignore_patterns("__pycache__"))
    inside = tmp_path / "site" / "postmortem" / "_shipped" / "gdb"
    shutil.copytree(str(places.shipped("gdb")), str(inside))
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
            "-x",
            str(inside / "postmortem.py"),
            "-ex",
            "pm-threads",
            "-ex",
            "python import postmortem_gdb.engine as engine; print(engine.__file__, engine._root())",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env={**os.environ, "POSTMORTEM_PYTHON": sys.executable},
    )
    assert "the holder" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == f"{inside / 'engine.py'} {tmp_path / 'site'}"
