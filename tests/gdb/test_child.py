"""The child behind the commands: how it is found, and what is said when it dies, hangs or talks nonsense."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem import places

from ..support.capturing import HANG_S, ROOT
from ..support.interpreters import Program
from ..support.memorycontract import CHECKS, PROGRAM
from .debugging import Core, Terminal, take

pytestmark = pytest.mark.live

SCRIPT = places.shipped("gdb") / "postmortem.py"


@pytest.fixture(scope="module")
def own(gdb: Path, tmp_path_factory: pytest.TempPathFactory) -> Core:
    """Take a core of the tests' own interpreter."""
    return take(sys.executable, tmp_path_factory.mktemp("own"))


def quiet(gdb: Path) -> List[str]:
    return [str(gdb), "-nx", "-q", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]


def engine(code: str, *words: str) -> Dict[str, str]:
    """An environment in which some other program is the child. ``code``: Python, which finds the socket as ``gdb``."""
    begin = "import json, os, socket, struct, sys, time\ngdb = socket.socket(fileno=int(sys.argv[-1]))\n"
    handed = {"words": [sys.executable, "-I", "-c", begin + code, *words], "environment": {"PATH": os.defpath}}
    return {**os.environ, "POSTMORTEM_ENGINE": json.dumps(handed)}


def asked(gdb: Path, own: Core, *words: str, env: Dict[str, str]) -> subprocess.CompletedProcess[str]:
    ex = [word for each in words for word in ("-ex", each)]
    return subprocess.run(
        [*quiet(gdb), "-batch", sys.executable, str(own.path), "-x", str(SCRIPT), *ex],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env=env,
    )


FRAME = "def say(data): gdb.sendall(struct.pack('<I', len(data)) + data)\n"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("sys.exit('no such module')", "has ended without an answer, status 1: no such module"),
        ("os.kill(os.getpid(), 9)", "has ended without an answer, status -9"),
        ("gdb.sendall(b'\\xff' * 100)", "cannot be understood"),
        (FRAME + "say(b'[1, 2]')", "cannot be understood"),
        (FRAME + "say(b'{\"lines\": 4}')", "cannot be understood"),
        (FRAME + "say(b'[' * 100000)", "cannot be understood"),
        (FRAME + "say(b'{}')", "cannot be understood"),
        (FRAME + "say(b'{\"lines\": [[\"\", \"cut\"]]}'); sys.exit(3)", "has ended without an answer, status 3"),
        (FRAME + "while True: say(json.dumps({'lines': [['', 'x']] * 10000}).encode())", "more than 500,000 lines"),
    ],
)  # fmt: skip
def test_a_child_that_fails_is_one_sentence(gdb: Path, own: Core, code: str, sentence: str) -> None:
    """It dies, says nothing that is an answer, or never ends to say something; the next command has another child."""
    done = asked(gdb, own, "set pagination off", "pm-threads", env=engine(code + "\ntime.sleep(600)"))
    assert re.search(rf"^(Error: )?.*pm-threads: .*{re.escape(sentence)}", done.stderr, re.M), done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_child_s_text_steers_no_terminal(gdb: Path, own: Core) -> None:
    """Whatever it says, no control character comes through."""
    answer = r"""say(b'{"lines": [["", "\\u001b]0;x\\u0007a\\nb"]]}'); say(b'{"end": true}')"""
    done = asked(gdb, own, "pm-threads", env=engine(FRAME + answer + "\ntime.sleep(600)"))
    assert "?]0;x?a?b\n" in done.stdout, done.stderr


def test_a_gdb_with_many_files_open(gdb: Path, own: Core) -> None:
    """The socket's number is above those that select() takes."""
    answer = """say(b'{"lines": [["", "an answer"]]}'); say(b'{"end": true}')"""
    many = (
        "python import os, resource; hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard)); held = [os.dup(0) for _ in range(1100)]; "
        "print('HELD', max(held) > 1023)"
    )
    done = asked(gdb, own, many, "pm-threads", env=engine(FRAME + answer + "\ntime.sleep(600)"))
    assert done.stdout.endswith("HELD True\nan answer\n"), done.stdout + done.stderr


def test_a_child_that_hangs_is_given_up(gdb: Path, own: Core, tmp_path: Path) -> None:
    """After the deadline there is a sentence, and the child is no more."""
    code = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    short = "python import postmortem_gdb.engine; postmortem_gdb.engine.DEADLINE_S = 1.5"
    done = asked(gdb, own, short, "pm-threads", env=engine(code))
    assert "no answer in 1.5 s" in done.stderr
    assert gone(int((tmp_path / "pid").read_text()))


def gone(pid: int) -> bool:
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_ctrl_c_ends_the_wait_and_the_child(gdb: Path, own: Core, tmp_path: Path) -> None:
    """A person who does not want to wait has gdb's prompt back at once."""
    code = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + ' ')\ntime.sleep(600)"
    words = [*quiet(gdb), sys.executable, str(own.path), "-x", str(SCRIPT)]
    with Terminal(words, {**engine(code), "TERM": "dumb"}) as terminal:
        terminal.until(b"(gdb) ")
        terminal.write(b"pm-threads\n")
        end = time.monotonic() + HANG_S
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.3)
        terminal.write(b"\x03")
        terminal.until(b"(gdb) ")
        assert gone(int((tmp_path / "pid").read_text()))
        terminal.write(b"quit\n")
        assert terminal.process.wait(HANG_S) == 0


def test_gdb_s_end_is_the_child_s(gdb: Path, own: Core, tmp_path: Path) -> None:
    """However gdb ends: the real child sees its socket closed."""
    words = [
        "python import postmortem_gdb.engine as e; print('CHILD', e.Engine.current._process.pid); import gdb; gdb.flush()"
    ]
    env = {**os.environ, "POSTMORTEM_PYTHON": sys.executable}
    done = asked(gdb, own, "pm-gil", *words, "python import os; os.kill(os.getpid(), 9)", env=env)
    assert done.returncode == -9
    assert gone(int(re.findall(r"CHILD (\d+)", done.stdout)[0]))


def test_without_an_interpreter_one_sentence_says_what_to_do(gdb: Path, own: Core, tmp_path: Path) -> None:
    """Scripts that lie in no installation, in a gdb by hand: `postmortem debug`, or a variable; a relative name is none, and
    one that cannot be started is named."""
    alone = tmp_path / "gdb"
    alone.mkdir()
    for script in SCRIPT.parent.glob("*.py"):
        (alone / script.name).write_text(script.read_text())
    base = {name: value for name, value in os.environ.items() if name != "POSTMORTEM_PYTHON"}
    for value, sentence in (
        (None, "start with `postmortem debug CORE`"),
        ("python3", "start with `postmortem debug CORE`"),
        ("/no/such/python", "/no/such/python cannot be started: No such file"),
        ("/bin/false", "(/bin/false) has ended without an answer, status 1"),
    ):
        done = subprocess.run(
            [*quiet(gdb), "-batch", sys.executable, str(own.path), "-x", str(alone / "postmortem.py"), "-ex", "pm-why"],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
            env=base if value is None else {**base, "POSTMORTEM_PYTHON": value},
        )
        assert "pm-why: " in done.stderr
        assert sentence in done.stderr
        assert "POSTMORTEM_PYTHON" in done.stderr or value is not None


#: Run as the child, with postmortem at hand: the process that gdb has stopped, against what it says of itself.
CONTRACT = """
sys.path.insert(0, {root!r})
from postmortem.gdbchild.inferior import Inferior
from postmortem.gdbchild.wire import Link
from tests.support import memorycontract as contract
link = Link(gdb.detach())
told, question = link.receive(), link.receive()
memory, facts = Inferior(link, told, lambda name: name), contract.Facts({line!r})
results = []
for check in contract.CHECKS:
    try:
        check(memory, facts)
    except BaseException as exc:
        results.append(["", "%s: %r" % (check.__name__, exc)])
link.send({{"lines": results + [["", "pid %d threads %d" % (memory.pid, len(memory.threads))]]}})
link.send({{"end": True}})
time.sleep(600)
"""


def test_memory_that_gdb_reads_is_the_process_s(gdb: Path, tmp_path: Path) -> None:
    """The contract of Memory, over the socket: exact bytes, zeros where nothing was written, faults where nothing is."""
    with Program(sys.executable, PROGRAM, tmp_path) as program:
        environment = engine(CONTRACT.format(root=str(ROOT), line=program.lines[-1]))
        done = subprocess.run(
            [*quiet(gdb), "-batch", "-p", str(program.pid), "-x", str(SCRIPT), "-ex", "pm-why"],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
            env=environment,
        )
    assert len(CHECKS) > 3
    shown: List[Any] = [line for line in done.stdout.splitlines() if re.match(r"\w+: \w+\(|pid ", line)]
    assert shown == [f"pid {program.pid} threads 1"], done.stdout + done.stderr


def test_nothing_of_the_working_directory_is_imported(gdb: Path, own: Core, tmp_path: Path) -> None:
    """Modules that lie there, and PYTHONPATH to it: neither gdb's side nor the child takes them."""
    for name in ("json", "socket", "msgspec", "postmortem", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    env = {**os.environ, "POSTMORTEM_PYTHON": sys.executable}
    handed = "python import os; os.environ['PYTHONPATH'] = os.environ['PYTHONSTARTUP'] = os.getcwd()"
    done = subprocess.run(
        [*quiet(gdb), "-batch", sys.executable, str(own.path), "-x", str(SCRIPT), "-ex", handed, "-ex", "pm-threads"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env=env,
        cwd=str(tmp_path),
    )
    assert "the holder" in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()
