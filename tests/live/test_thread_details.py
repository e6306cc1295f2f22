"""What a report says of a single thread: who collects garbage, what is raised, which expression runs, what variables
hold; each from a capture of a program that does it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple, Union

import pytest

from ..interpreters.wanted import Interpreter
from ..support.capturing import wait_until
from ..support.diagnosing import postmortem, report
from ..support.interpreters import kinds, matrix

pytestmark = pytest.mark.live

#: A library with functions called as the garbage collector's are, and one that blocks with an exception set.
LIBRARY = """
#include <unistd.h>
extern void *PyExc_LookupError;
extern void PyErr_SetString(void *, const char *);
void my_stats_collector_wait(void) { for (;;) pause(); }
void collect(void) { for (;;) pause(); }
void fail(void) { PyErr_SetString(PyExc_LookupError, "hun" "ter2"); for (;;) pause(); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "library.c").write_text(LIBRARY)
    built = folder / "library.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-g", "-o", str(built), str(folder / "library.c")], check=True, timeout=60
    )
    return built


def capture(folder: Path, source: str, python: Union[str, Interpreter] = sys.executable, **env: str) -> Dict[str, Any]:
    """The report.json of a program that has said that it is ready, and all of whose threads sleep since."""
    (folder / "program.py").write_text(source)
    program = subprocess.Popen(
        [os.fspath(python), "program.py"], cwd=folder, env={**os.environ, **env}, stdin=subprocess.DEVNULL
    )
    try:
        wait_until((folder / "ready").exists, "the program is ready")
        wait_until(lambda: asleep(program.pid), "all threads sleep")
        done = postmortem("capture", "--pid", str(program.pid), "--observe", "0.1", "-o", "bundle", cwd=folder)
        assert done.returncode == 0, done.stderr
    finally:
        program.kill()
        program.wait()
    return report(folder / "bundle")


def asleep(pid: int) -> bool:
    """Return whether no thread runs, or waits for the disk."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)


def threads_of(found: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    return {thread["name"]: thread for thread in found["processes"][0]["threads"]}


COLLECTS = """
import ctypes, gc, os, threading
library = ctypes.CDLL(os.environ["LIBRARY"])
gate = threading.Lock()
gate.acquire()
class Trap:
    def __del__(self): gate.acquire()
def garbage():
    trap = Trap()
    trap.itself = trap
    del trap
    gc.collect()
if os.environ["GARBAGE"] == "yes":
    threading.Thread(target=garbage, name="garbage", daemon=True).start()
for name in ("my_stats_collector_wait", "collect"):
    threading.Thread(target=getattr(library, name), name=name, daemon=True).start()
open("ready", "w").close()
threading.Event().wait()
"""


@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_who_collects(python: Interpreter, library: Path, tmp_path: Path) -> None:
    """The thread whose __del__ blocks the collection runs it; functions of a library that are called alike do not. A
    stripped interpreter says that a collection is going on, and not of whom it is not known."""
    found = capture(tmp_path, COLLECTS, python, LIBRARY=str(library), GARBAGE="yes")
    assert found["processes"][0]["interpreters"][0]["collecting"] is True
    says = {name: thread["gc"] for name, thread in threads_of(found).items()}
    others = {"MainThread", "my_stats_collector_wait", "collect"}
    if says["garbage"] is None:
        assert python.origin != "pyenv", "symbols are there"
        assert {says[name] for name in others} == {None}
    else:
        assert says["garbage"] is True and {says[name] for name in others} == {False}
        assert "runs the garbage collector" in " ".join((tmp_path / "bundle" / "report.txt").read_text().split())


def test_nobody_collects(library: Path, tmp_path: Path) -> None:
    """Without a collection nobody runs one, whatever functions are called."""
    found = capture(tmp_path, COLLECTS, LIBRARY=str(library), GARBAGE="no")
    assert found["processes"][0]["interpreters"][0]["collecting"] is False
    assert {thread["gc"] for thread in found["processes"][0]["threads"]} == {False}


RAISES = """
import ctypes, os, sys
library = ctypes.PyDLL(os.environ["LIBRARY"])
def calls():
    open("ready", "w").close()
    library.fail()
try:
    raise OSError(int("5"), "x")     # handled
except OSError:
    calls()
"""


@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_an_exception_on_its_way(python: Interpreter, library: Path, tmp_path: Path) -> None:
    """C code that has set an exception and does not return: it shows before the one that is being handled; neither
    shows what it says."""
    found = capture(tmp_path, RAISES, python, LIBRARY=str(library))
    (thread,) = found["processes"][0]["threads"]
    assert [(e["state"], e["type"]) for e in thread["exceptions"]] == [
        ("raised", "LookupError"),
        ("handled", "OSError"),
    ]
    assert thread["exceptions"][1]["line"] == 1 + RAISES.splitlines().index(
        '    raise OSError(int("5"), "x")     # handled'
    )
    assert [e["message"] for e in thread["exceptions"]] == [None, None]


KEEPS = """
import threading
gate = threading.Event()
class Session:
    def __init__(self, word): self.user, self.password = "ann", word
def serve(number, token, headers, session):
    label = "visible" + str(number)
    try:
        raise ValueError("message of " + token)
    except ValueError:
        answers = [1]; answers[len(answers)] = len(headers) + int(gate.wait() or 7)
word = "".join(["hun", "ter2"])
threading.Thread(
    target=serve, name="serve", args=(42, word, {"Authorization": word, "Host": "h"}, Session(word)),
).start()
open("ready", "w").close()
gate.wait()
"""


def outputs(folder: Path, *options: str) -> str:
    """All that a user gets to see: the bundle's files but the raw ones, and what analyze prints."""
    bundle = folder / "bundle"
    kept = [path.read_text() for path in sorted(bundle.iterdir()) if path.is_file()]
    done = postmortem("analyze", str(bundle), "-f", "json", "--report", "analyzed.txt", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return "\n".join([*kept, done.stdout, (folder / "analyzed.txt").read_text()])


@pytest.mark.parametrize("python", kinds())
def test_locals_only_on_request(python: Interpreter, tmp_path: Path) -> None:
    """No variable and no message is anywhere without --locals; with it, variables are there, and what names call a
    secret is not. From 3.11 on the text report marks the expression that runs."""
    found = capture(tmp_path, KEEPS, python)
    plain = outputs(tmp_path)
    assert (
        "hunter2" not in plain and "visible42" not in plain and "message of" not in plain.replace('"message of "', "")
    )
    asked = outputs(tmp_path, "--locals")
    assert "label = 'visible42'" in asked and "password=<redacted>" in asked and "token = <redacted>" in asked
    assert "'Authorization': <redacted>, 'Host': 'h'" in asked
    check_columns(found, plain.splitlines(), python.version)


def check_columns(found: Dict[str, Any], report_lines: List[str], version: Tuple[int, int]) -> None:
    frame = next(f for f in threads_of(found)["serve"]["python"] if f["function"] == "serve")
    if version < (3, 11):
        assert frame["column"] is None
        return
    assert KEEPS.splitlines()[frame["line"] - 1][frame["column"] : frame["end_column"]] == "gate.wait()"
    at = next(n for n, line in enumerate(report_lines) if line.strip().startswith("answers = [1]"))
    assert report_lines[at + 1].rstrip() == " " * report_lines[at].index("gate.wait()") + "~~~~~~~~~^^"


def test_capture_with_locals(tmp_path: Path) -> None:
    """`capture --locals` keeps them in the bundle, where another machine finds them."""
    (tmp_path / "program.py").write_text(KEEPS)
    words = ("capture", "-t", "100", "--stall", "0.7", "--locals", "-o", "bundle", "--", "python3", "program.py")
    assert postmortem(*words, cwd=tmp_path).returncode == 124
    frames = threads_of(report(tmp_path / "bundle"))["serve"]["python"]
    serve = next(frame for frame in frames if frame["function"] == "serve")
    shown = {local["name"]: local["text"] for local in serve["locals"]}
    assert shown["label"] == "'visible42'" and shown["token"] == "<redacted>"
    assert shown["session"] == "<Session user='ann', password=<redacted>>"
