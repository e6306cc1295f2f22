"""`pytest --postmortem-timeout` beside others: other plugins, debuggers, sessions in tests, and runs that do not ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import List

import pytest

from ..support.capturing import HANG_S, environment, state, wait_until
from .plugged import QUIET, outcome, run

pytestmark = pytest.mark.live


def test_beside_pytest_timeout(tmp_path: Path) -> None:
    """The first timeout fails the test; the other one adds nothing, and the next test runs."""
    source = """
    import time
    def test_hangs(): time.sleep(3600)
    def test_next(): pass
    """
    ran = run(tmp_path, "--timeout", "0.5", "--postmortem-timeout", "30", files={"test_it.py": source})
    assert {name: outcome(case) for name, case in ran.cases.items()} == {"test_hangs": "failure", "test_next": "passed"}
    assert ran.bundles == []
    ran = run(tmp_path, "--timeout", "60", "-o", "faulthandler_timeout=0.5", "--postmortem-timeout", "1")
    assert {name: outcome(case) for name, case in ran.cases.items()} == {"test_hangs": "failure", "test_next": "passed"}
    assert ran.verdict("test_hangs") == "sleeping"
    assert ran.out.count("FAILED test_it.py::test_hangs") == 1


def test_whoever_thinks_takes_time(tmp_path: Path) -> None:
    """Nothing strikes at a breakpoint, however long that takes, nor in what is left of the phase."""
    source = "import time\n\n\ndef test_it():\n    breakpoint()\n    time.sleep(1.2)\n"
    typed = "import time; time.sleep(1.2)\nc\n"
    ran = run(tmp_path, "--postmortem-timeout", "1", files={"test_it.py": source}, typed=typed)
    assert "1 passed" in ran.out, ran.out
    assert ran.bundles == []


def test_it_ends_by_itself_too_late(tmp_path: Path) -> None:
    """What takes longer than its limit fails, also when it ends while it is being looked at; nothing else does."""
    source = """
    import time
    def test_late(): time.sleep(1.2)
    def test_next(): pass
    """
    ran = run(tmp_path, "--postmortem-timeout", "1", files={"test_it.py": source})
    assert {name: outcome(case) for name, case in ran.cases.items()} == {"test_late": "failure", "test_next": "passed"}
    assert "the test took longer than 1 s" in ran.out


def test_a_session_in_a_test(tmp_path: Path) -> None:
    """It has its own limits; those of the test around it, and of the next one, hold as before, and pytest is as it was."""
    source = """
    import time
    import pytest

    INNER = "import time\\ndef test_a(): time.sleep(0.7)\\ndef test_b(): time.sleep(0.7)\\ndef test_hangs(): time.sleep(3600)\\n"

    def test_outer(tmp_path, capfd):
        (tmp_path / "test_inner.py").write_text(INNER)
        before = pytest.CallInfo.from_call
        assert pytest.main(["-p", "no:cacheprovider", "--postmortem-timeout", "1", str(tmp_path)]) == 1
        assert pytest.CallInfo.from_call == before
        assert "1 failed, 2 passed" in capfd.readouterr().out

    @pytest.mark.postmortem_timeout(1)
    def test_next():
        time.sleep(3600)
    """
    ran = run(tmp_path, "--postmortem-timeout", "60", files={"test_it.py": source})
    assert {name: outcome(case) for name, case in ran.cases.items()} == {
        "test_outer": "passed",
        "test_next": "failure",
    }, ran.out
    assert ran.verdict("test_next") == "sleeping"


def test_a_test_that_is_run_again(tmp_path: Path) -> None:
    """Each attempt has all of its time, and the one that hangs is told of under the test's name."""
    again = """
    import pytest
    from _pytest.runner import runtestprotocol

    def pytest_runtest_protocol(item, nextitem):
        for _attempt in range(3):
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        return True
    """
    source = """
    import time
    ATTEMPTS = []
    def test_first(): time.sleep(0.6)
    def test_third_hangs():
        ATTEMPTS.append(1)
        time.sleep(3600 if len(ATTEMPTS) == 3 else 0.6)
    """
    ran = run(tmp_path, "--postmortem-timeout", "1", files={"conftest.py": again, "test_it.py": source})
    assert {name: outcome(case) for name, case in ran.cases.items()} == {
        "test_first": "passed",
        "test_third_hangs": "failure",
    }
    assert ran.bundles == ["test_it-test_third_hangs-call"]


def test_nothing_of_it_is_left(tmp_path: Path) -> None:
    """The watchdog goes with the process, also with one that is killed, and holds none of its pipes meanwhile."""
    source = """
    import os, time
    def test_waits():
        print("ready", os.environ["WATCHDOGS"], flush=True)
        time.sleep(3600)
    """
    (tmp_path / "test_it.py").write_text(textwrap.dedent(source))
    (tmp_path / "pytest.ini").write_text(QUIET)
    words = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "--postmortem-timeout", "600"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment(WATCHDOGS="x"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "ready" not in process.stdout.readline():
        pass
    watchdogs = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _watches(pid, process.pid)]
    assert len(watchdogs) == 1
    process.kill()
    process.communicate(timeout=HANG_S)
    wait_until(lambda: state(watchdogs[0]) is None, "the watchdog's end")


def _watches(pid: int, target: int) -> bool:
    try:
        return f'"pid": {target},' in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_off_it_imports_nothing(tmp_path: Path) -> None:
    """Where it is only installed, two small modules are loaded, and no other process is started."""
    source = """
    import sys
    def test_it():
        ours = {name for name in sys.modules if name.split(".")[0] == "postmortem"}
        assert ours <= {"postmortem", "postmortem.pytest_plugin"}
        assert "ctypes" not in sys.modules
    """
    others = [word for name in ("xdist", "anyio", "asyncio", "timeout") for word in ("-p", f"no:{name}")]
    ran = run(tmp_path, *others, files={"test_it.py": source})
    assert ran.status == 0, ran.out
    assert "1 passed" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--postmortem-timeout", "soon"], "--postmortem-timeout 'soon': expected a decimal number"),
        (["-o", "postmortem_scope=all", "--postmortem-timeout", "1"], "scope 'all' is not one of phase, call, item"),
    ],
)
def test_wrong_wishes_get_a_sentence(tmp_path: Path, words: List[str], said: str) -> None:
    """No traceback, and pytest's own status for wrong usage."""
    ran = run(tmp_path, *words, files={"test_it.py": "def test_it(): pass"})
    assert ran.status == 4
    assert said in ran.out
    assert "Traceback" not in ran.out
