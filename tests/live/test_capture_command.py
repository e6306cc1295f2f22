"""The command under ``capture``: statuses, streams, signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Set

import pytest

from ..support.capturing import DRIVER, HANG_S, capture, environment, finished, start, state, wait_until
from ..support.targets import COUNTS_SIGNALS

pytestmark = pytest.mark.live


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -SEGV $$", 139), ("exit 124", 124)],
)
def test_a_command_that_ends_in_time_keeps_its_status(tmp_path: Path, script: str, status: int) -> None:
    """Its own status, 128+N for signal N, not a word on stderr and no bundle."""
    done = capture(tmp_path, "--", "sh", "-c", script, timeout=30)
    assert (done.status, done.stderr) == (status, "")
    assert not done.bundle.exists()


def test_a_command_that_cannot_be_found_or_run(tmp_path: Path) -> None:
    """127 and 126 as timeout(1) has it, with one sentence."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    missing = capture(tmp_path, "--", "/no/such/program")
    forbidden = capture(tmp_path, "--", str(plain))
    assert (missing.status, forbidden.status) == (127, 126)
    assert missing.stderr == "postmortem: cannot run '/no/such/program': No such file or directory\n"
    assert "Permission denied" in forbidden.stderr


def test_nothing_and_what_is_below_a_file(tmp_path: Path) -> None:
    """No name is not found, what is below a plain file cannot be run: as timeout(1) has it."""
    plain = tmp_path / "plain"
    plain.write_text("no folder")
    nothing, below = capture(tmp_path, "--", ""), capture(tmp_path, "--", str(plain / "x"))
    assert (nothing.status, below.status) == (127, 126)
    assert nothing.stderr == "postmortem: cannot run '': No such file or directory\n"
    assert "Not a directory" in below.stderr


@pytest.mark.parametrize(("where", "told"), [("&-", "Bad file descriptor"), ("/dev/full", "No space left on device")])
def test_help_that_cannot_be_written(where: str, told: str) -> None:
    """One sentence, as for everything that postmortem fails in."""
    script = f'exec "$0" -m postmortem capture -t 1 --help >{where}'
    words = ["sh", "-c", script, sys.executable]
    done = subprocess.run(words, check=False, stderr=subprocess.PIPE, text=True, env=environment(), timeout=HANG_S)
    assert (done.returncode, done.stderr) == (125, f"postmortem: stdout cannot be written: {told}\n")


def test_a_thread_is_no_process(tmp_path: Path) -> None:
    """It has a folder below /proc as well; what to name instead is said."""
    code = "import threading; t = threading.Thread(target=input); t.start(); print(t.native_id, flush=True)"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        thread = int(target.stdout.readline())
        done = finished(start("--pid", str(thread), "-o", str(tmp_path / "bundle")), tmp_path / "bundle")
        target.communicate("\n", timeout=HANG_S)
    said = f"postmortem: {thread} is a thread of process {target.pid}; postmortem capture --pid {target.pid}\n"
    assert (done.status, done.stderr) == (125, said)
    assert not done.bundle.exists()


def test_a_name_moves_no_cursor(tmp_path: Path) -> None:
    """What is printed of it is one line."""
    done = capture(tmp_path / "\x1b[2J\n", "--", "sleep", "600")
    assert done.status == 124
    assert "\\x1b[2J\\n/bundle" in done.stderr.splitlines()[0]


def test_a_script_without_an_interpreter_line_is_run_by_the_shell(tmp_path: Path) -> None:
    """As execvp does it, and so every shell."""
    script = tmp_path / "script"
    script.write_text("echo $1; exit 5\n")
    script.chmod(0o755)
    done = capture(tmp_path, "--", str(script), "word", timeout=30)
    assert (done.status, done.stdout) == (5, "word\n")


def test_wrong_usage_is_125_with_a_hint(tmp_path: Path) -> None:
    """One sentence, and where to read on; the command has not run."""
    trace = tmp_path / "trace"
    done = finished(start("-t", "soon", "--", "touch", str(trace)), tmp_path)
    assert done.status == 125
    assert done.stderr.count("\n") == 1
    assert "--help" in done.stderr
    assert not trace.exists()


def test_a_taken_directory_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    """A bundle is never overwritten, and nobody waits for the deadline to hear that."""
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "precious").write_text("kept")
    trace = tmp_path / "trace"
    done = capture(tmp_path, "--", "touch", str(trace))
    assert done.status == 125
    assert "never overwritten" in done.stderr
    assert not trace.exists()
    assert (tmp_path / "bundle" / "precious").read_text() == "kept"


@pytest.mark.parametrize("becomes", ["a bundle", "a file", "a link"])
def test_a_directory_that_is_taken_while_the_command_runs(tmp_path: Path, becomes: str) -> None:
    """What took so long to come about is kept in the temporary folder, and it is said why."""
    place, temporary = tmp_path / "bundle", tmp_path / "temporary"
    temporary.mkdir()
    script = {
        "a bundle": f"mkdir {place} && echo kept > {place}/precious",
        "a file": f"echo kept > {place}",
        "a link": f"ln -s /proc/self/fdinfo {place}",
    }[becomes]
    driver = f"import os; os.environ['TMPDIR'] = {str(temporary)!r}\n" + DRIVER
    done = capture(tmp_path, "--", "sh", "-c", f"{script}; exec sleep 600", driver=driver)
    (elsewhere,) = temporary.glob("postmortem-*/postmortem-*")
    assert done.status == 124
    assert f"{place} already exists and is never overwritten; writing to the temporary folder instead\n" in done.stderr
    assert f"diagnosed {elsewhere} as text" in done.stderr
    assert len(os.listdir(str(place))) == 1 if becomes == "a bundle" else not (place / "manifest.json").exists()


@pytest.mark.parametrize("name", ["n" * 300, "missing/" + "n" * 300, "/".join(["n" * 200] * 30)])
def test_a_name_that_is_too_long_is_refused_before_the_command_runs(tmp_path: Path, name: str) -> None:
    """One sentence, which does not repeat all of it."""
    trace = tmp_path / "trace"
    done = capture(tmp_path / name, "--", "touch", str(trace))
    assert done.status == 125
    assert "File name too long" in done.stderr
    assert len(done.stderr) < 400
    assert not trace.exists()


def test_a_timeout_is_124_and_diagnosed(tmp_path: Path) -> None:
    """The diagnosis gets the bundle and what the user asked for; stdout stays the command's alone."""
    done = capture(tmp_path, "-f", "json", "--report", "x.json", "--", "sh", "-c", "echo mine; exec sleep 600")
    assert (done.status, done.stdout) == (124, "mine\n")
    assert f"diagnosed {done.bundle} as json ['x.json']" in done.stderr
    assert done.manifest["trigger"] == {"kind": "timeout", "seconds": 0.5, "signal": None}
    assert done.manifest["command"] == ["sh", "-c", "echo mine; exec sleep 600"]


def test_in_a_pipe_each_step_is_a_line(tmp_path: Path) -> None:
    """Short and plain: a log keeps them."""
    done = capture(tmp_path, "--", "sleep", "600")
    expected = [
        f"postmortem: sleep has not ended in time: capturing into {done.bundle}",
        "postmortem: watching 1 process for 0.2 s",
        "postmortem: stopped 1 process for N ms",
        f"postmortem: analysing {done.bundle}",
        f"diagnosed {done.bundle} as text []",
    ]
    assert re.sub(r"for [\d.]+ ms", "for N ms", done.stderr).splitlines() == expected


def test_a_diagnosis_that_fails_leaves_the_capture(tmp_path: Path) -> None:
    """One sentence that says how to try again; the status stays 124."""
    broken = DRIVER.replace("stream.write", "raise RuntimeError")
    done = capture(tmp_path, "--", "sleep", "600", driver=broken)
    assert done.status == 124
    assert f"the capture is kept: postmortem analyze {done.bundle}" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.core().exists()


def test_environment_folder_and_streams_are_untouched(tmp_path: Path) -> None:
    """Also in the C locale, where the interpreter would add a variable of its own."""
    code = "import os,sys; print(sorted(os.environ.items()), os.getcwd(), sys.stdin.read())"
    command = [sys.executable, "-c", code]
    settings: Any = {"cwd": str(tmp_path), "capture_output": True, "input": "to read", "text": True}
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": environment()["PYTHONPATH"], "LC_ALL": "", "LANG": "C"}
    direct = subprocess.run(command, check=True, env=bare, **settings)
    under = subprocess.run([sys.executable, "-c", DRIVER, "-t", "60", "--", *command], check=True, env=bare, **settings)
    assert under.stdout == direct.stdout
    assert "to read" in under.stdout


HEAVY = {"argparse", "asyncio", "click", "collections", "contextlib", "ctypes", "dataclasses", "enum", "functools",
         "importlib.metadata", "inspect", "json", "logging", "msgspec", "pathlib", "pygments", "re", "shutil", "signal",
         "socket", "struct", "subprocess", "tempfile", "threading", "types", "typing"}  # fmt: skip


def _imported(code: str) -> Set[str]:
    """The modules that are there once the code has called ``show()``."""
    given = "import atexit, os, sys\ndef show(*_, **__):\n    print(*sys.modules, flush=True); os._exit(0)\n"
    words = [sys.executable, "-S", "-c", given + code]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment(), timeout=HANG_S)
    return set(done.stdout.split())


@pytest.mark.parametrize("place", ["os.posix_spawnp = show", "atexit.register(show)"])
@pytest.mark.parametrize(
    "words", ["-t5 -k1", "-t5 -s INT -f json --report x.txt", "--stall 600 -t600", "--on-signal USR1"]
)
def test_nothing_heavy_is_imported_before_the_deadline(place: str, words: str) -> None:
    """Beside what the bare interpreter has: each of these costs tenths of milliseconds that every run would pay,
    before the command starts or after it has ended."""
    call = f"from postmortem.__main__ import main\nmain(['capture', *{words.split()}, 'true'])"
    under = _imported(f"{place}\n{call}")
    assert "postmortem.capture.run.command" in under
    assert not (under - _imported("show()")) & HEAVY


def test_waiting_uses_no_cpu() -> None:
    """It sleeps until a signal comes: no tick of the clock is spent in 2 s."""
    process = start("-t", "60", "--", "sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    wait_until(lambda: state(process.pid) == "S", "postmortem's rest")
    before = _cpu_ticks(process.pid)
    time.sleep(2)
    assert _cpu_ticks(process.pid) - before <= 1  # one may have been under way
    process.communicate("end\n", timeout=HANG_S)


def test_looking_for_a_stall_uses_next_to_none() -> None:
    """Ten looks at a dozen processes: a hundredth of the time is more than they need."""
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 600 & done; echo up; wait"
    process = start("--stall", "30", "--", "sh", "-c", script, start_new_session=True)  # a group of its own
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    wait_until(lambda: state(process.pid) == "S", "postmortem's rest")
    time.sleep(1)  # what is imported for it
    before = _cpu_ticks(process.pid)
    time.sleep(4)
    assert _cpu_ticks(process.pid) - before <= 4
    process.terminate()
    process.communicate(timeout=HANG_S)


def _cpu_ticks(pid: int) -> int:
    line = Path(f"/proc/{pid}/stat").read_text()
    fields = line[line.rindex(")") + 2 :].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_signals_are_passed_on_once(tmp_path: Path, number: signal.Signals) -> None:
    """What another process sends to postmortem reaches the command, once; its status is its own."""
    process = start("-t", "60", "--", sys.executable, "-c", COUNTS_SIGNALS, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"{number.name}\n"
    done_out, _err = process.communicate("end\n", timeout=HANG_S)
    assert (process.returncode, done_out) == (7, f"all: {number.name}\n")


def test_an_interrupt_reaches_a_command_of_a_background_job(tmp_path: Path) -> None:
    """A shell without job control starts `cmd &` with INT ignored; the command must not inherit that."""
    script = f'"{sys.executable}" -c "$1" -t 60 -- sleep 600 & echo $!; wait $!; echo status $?'
    shell = subprocess.Popen(["sh", "-c", script, "sh", DRIVER], stdout=subprocess.PIPE, text=True, env=environment())
    assert shell.stdout is not None
    pid = int(shell.stdout.readline())
    _wait_for_child(pid)
    os.kill(pid, signal.SIGINT)
    out, _err = shell.communicate(timeout=HANG_S)
    assert out == "status 130\n"


def _wait_for_child(pid: int) -> None:
    def has_child() -> bool:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(Path(f"/proc/{child}/comm").read_text().strip() == "sleep" for child in children)

    wait_until(has_child, "the command's start")
