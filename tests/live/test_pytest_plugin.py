"""`pytest --postmortem-timeout` as its users run it: real suites that hang, each in a process of its own."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional
from xml.etree import ElementTree

import pytest

from .capturing import HANG_S, environment, state, wait_until

pytestmark = pytest.mark.live

LIMIT = "1"
_QUIET = "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n"
#: Keeps the GIL for ever: a mutex that is taken twice, by code that ctypes does not let go of it for. No signal ends it.
_NATIVE = """
import ctypes

def keep_the_gil():
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.PyDLL(None).pthread_mutex_lock
    lock(mutex)
    lock(mutex)
"""


class Ran(NamedTuple):
    status: int
    out: str  # both streams
    folder: Path

    @property
    def cases(self) -> Dict[str, Any]:
        """Name → element of the JUnit file."""
        tree = ElementTree.parse(self.folder / "results.xml")
        return {case.get("name", ""): case for case in tree.iter("testcase")}

    @property
    def suite(self) -> Any:
        return next(ElementTree.parse(self.folder / "results.xml").iter("testsuite"))

    @property
    def bundles(self) -> List[str]:
        return sorted(path.parent.name for path in self.folder.glob("postmortem-bundles/*/report.json"))

    def verdict(self, name: str) -> Optional[str]:
        kept = {p.get("name"): p.get("value") for p in self.cases[name].iter("property")}
        return kept.get("postmortem_verdict")


def run(folder: Path, *words: str, ini: str = "", files: Optional[Dict[str, str]] = None, typed: str = "") -> Ran:
    """One pytest run; it hangs no longer than a test may. Its streams end with it: `communicate` waits for that."""
    (folder / "pytest.ini").write_text(_QUIET + ini)
    for name, source in (files or {}).items():
        (folder / name).write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "pytest", "--junitxml", "results.xml", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment(), input=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=4 * HANG_S, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, folder)


def outcome(case: Any) -> str:
    return next((tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed")


FIVE_HANGS = (
    _NATIVE
    + """
import asyncio
import threading
import time

import pytest


def test_native():
    keep_the_gil()


def test_lock_cycle():
    accounts, journal = threading.Lock(), threading.Lock()
    both = threading.Barrier(2)

    def audit():
        with journal:
            both.wait()
            with accounts:
                pass

    threading.Thread(target=audit, daemon=True).start()
    with accounts:
        both.wait()
        with journal:
            pass


@pytest.mark.asyncio
async def test_blocked_loop():
    async def poll():
        time.sleep(3600)

    polling = asyncio.ensure_future(poll())
    await asyncio.sleep(0)
    await polling


@pytest.fixture
def connection():
    yield
    threading.Event().wait()


def test_teardown(connection):
    pass


def test_exit():
    threading.Thread(target=threading.Event().wait).start()
"""
)


def test_five_hangs_among_two_hundred_tests(tmp_path: Path) -> None:
    """On two workers: a diagnosis for each, one of them of a worker that had to be ended and one of a worker's exit; every
    other result; one JUnit file; five bundles."""
    plain = "import pytest\n\n\n@pytest.mark.parametrize('n', range(65))\ndef test_plain_{0}(n):\n    pass\n"
    files = {f"test_{name}.py": plain.format(name) for name in ("a", "m", "z")}
    files["test_hangs.py"] = FIVE_HANGS
    ran = run(tmp_path, "-n", "2", "--postmortem-timeout", LIMIT, files=files)
    assert ran.status == 1, ran.out
    cases = ran.cases
    passed = [name for name, case in cases.items() if outcome(case) == "passed"]
    assert len([name for name in passed if name.startswith("test_plain_")]) == 195, ran.out
    assert "test_exit" in passed
    hung = {name: outcome(case) for name, case in cases.items() if outcome(case) != "passed"}
    (at_exit,) = [name for name in hung if name.startswith("exit of gw")]
    assert hung == {
        "test_native": "failure", "test_lock_cycle": "failure", "test_blocked_loop": "failure",
        "test_teardown": "error", at_exit: "error",
    }, ran.out  # fmt: skip
    assert ran.verdict("test_lock_cycle") == "lock-order-deadlock"
    assert "lock-order-deadlock, proven" in ran.out  # our own handler of a signal is none that could help
    assert ran.verdict("test_blocked_loop") == "blocking-call-in-coroutine"
    assert ran.verdict("test_native") in ("gil-held-by-native", "self-deadlock")
    assert ran.verdict(at_exit) == "shutdown-join", ran.out
    assert int(ran.suite.get("tests")) == len(cases)
    assert len(ran.bundles) == 5
    assert "in keep_the_gil" in ran.out
    assert len(re.findall(r"^-+ postmortem -+$", ran.out, re.M)) == 4  # the sections of the reports


def test_what_cannot_be_interrupted_ends_pytest_and_keeps_the_results(tmp_path: Path) -> None:
    """Without workers: those that can be interrupted fail and the next one runs; native code that keeps the GIL ends it
    all, with the diagnosis on the terminal, and every result so far in a JUnit file that the watchdog writes."""
    source = """
    import os, threading, time, unittest
    import pytest

    def test_first(): pass

    @pytest.mark.skip(reason="not now")
    def test_skipped(): pass

    class TestCase(unittest.TestCase):
        def test_unittest(self):
            threading.Event().wait()
        def tearDown(self):
            self.torn_down = True

    @pytest.mark.anyio
    async def test_anyio():
        time.sleep(3600)

    def test_elsewhere(tmp_path):
        os.chdir(tmp_path)
        child = os.fork()
        if child == 0:
            time.sleep(1.5)  # it would be struck, if anybody watched it
            os._exit(7)
        assert os.wait() == (child, 7 << 8)
        with pytest.raises(ChildProcessError):
            os.wait()  # there is nobody else: the watchdog is no child

    def test_native():
        keep_the_gil()

    def test_never(): pass
    """
    source = _NATIVE + textwrap.dedent(source)
    conftest = "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    marker = source.replace("def test_elsewhere", "@pytest.mark.postmortem_timeout(30)\ndef test_elsewhere")
    ran = run(tmp_path, "--postmortem-timeout", LIMIT, files={"test_it.py": marker, "conftest.py": conftest})
    found = {name: outcome(case) for name, case in ran.cases.items()}
    assert found == {
        "test_first": "passed", "test_skipped": "skipped", "test_unittest": "failure", "test_anyio": "failure",
        "test_elsewhere": "passed", "test_native": "failure",
    }, ran.out  # fmt: skip
    assert ran.status == -9, ran.out
    assert "test_native cannot be interrupted" in ran.out
    assert "in keep_the_gil" in ran.out
    assert [ran.suite.get(name) for name in ("tests", "errors", "failures", "skipped")] == ["6", "0", "3", "1"]
    assert stat.S_IMODE((tmp_path / "postmortem-bundles").stat().st_mode) == 0o700
    assert len(ran.bundles) == 3


def test_the_exit_of_the_interpreter(tmp_path: Path) -> None:
    """After the summary nobody waits for ever: the diagnosis is on stderr, the JUnit file has one more case, the status
    says that it failed."""
    source = """
    import threading
    def test_leaves_a_thread():
        threading.Thread(target=threading.Event().wait, name="left").start()
    """
    ini = "postmortem_timeout = 60\npostmortem_exit_timeout = 1\n"
    ran = run(tmp_path, files={"test_it.py": source}, ini=ini)
    assert ran.status == 1, ran.out
    assert "1 passed" in ran.out
    assert "the interpreter's exit took longer than 1 s: shutdown-join" in ran.out
    assert {name: outcome(case) for name, case in ran.cases.items()} == {
        "test_leaves_a_thread": "passed", "exit of the process": "error"
    }  # fmt: skip
    assert ran.verdict("exit of the process") == "shutdown-join"


def test_collection_setup_and_the_whole_item(tmp_path: Path) -> None:
    """An import that hangs is an error of its module; a marker alone switches it on for its test, with its own scope."""
    hangs = "import threading\nthreading.Event().wait()\n"
    marked = """
    import time
    import pytest

    @pytest.fixture
    def slow():
        time.sleep(0.6)
        yield
        time.sleep(0.6)

    @pytest.mark.postmortem_timeout(1, scope="item")
    def test_in_all(slow):
        time.sleep(3600)

    @pytest.mark.postmortem_timeout(1)
    def test_each(slow):
        time.sleep(0.6)

    @pytest.mark.postmortem_timeout(0.3, scope="call")
    def test_body_alone(slow):
        pass
    """
    ran = run(tmp_path, files={"test_marked.py": marked})
    assert {name: outcome(case) for name, case in ran.cases.items()} == {
        "test_in_all": "failure", "test_each": "passed", "test_body_alone": "passed"
    }, ran.out  # fmt: skip
    ini = "postmortem_timeout = 60\npostmortem_collection_timeout = 1\n"
    ran = run(tmp_path, "--continue-on-collection-errors", "-k", "each", ini=ini, files={"test_import.py": hangs})
    assert "ERROR test_import.py" in ran.out, ran.out
    assert "collection took longer than 1 s" in ran.out
    assert outcome(ran.cases["test_each"]) == "passed"


def test_beside_pytest_timeout(tmp_path: Path) -> None:
    """Whoever is first fails the test; the other one has nothing to add, and the next test runs."""
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
    assert {name: outcome(case) for name, case in ran.cases.items()} == {"test_outer": "passed", "test_next": "failure"}, ran.out
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
    assert {name: outcome(case) for name, case in ran.cases.items()} == {"test_first": "passed", "test_third_hangs": "failure"}
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
    (tmp_path / "pytest.ini").write_text(_QUIET)
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
        (["--postmortem-timeout", "soon"], "--postmortem-timeout 'soon': a decimal number"),
        (["-o", "postmortem_scope=all", "--postmortem-timeout", "1"], "scope 'all' is none of phase, call, item"),
    ],
)
def test_wrong_wishes_get_a_sentence(tmp_path: Path, words: List[str], said: str) -> None:
    """No traceback, and pytest's own status for wrong usage."""
    ran = run(tmp_path, *words, files={"test_it.py": "def test_it(): pass"})
    assert ran.status == 4
    assert said in ran.out
    assert "Traceback" not in ran.out
