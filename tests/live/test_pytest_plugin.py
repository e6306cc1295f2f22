"""`pytest --postmortem-timeout` as its users run it: what hangs is diagnosed, fails, and lets the others be."""

from __future__ import annotations

import re
import stat
import textwrap
from pathlib import Path

import pytest

from .plugged import outcome, run

pytestmark = pytest.mark.live

LIMIT = "1"
#: Keeps the GIL for ever: a mutex that is taken twice, by code that ctypes does not let go of it for. No signal ends it.
_NATIVE = """
import ctypes

def keep_the_gil():
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.PyDLL(None).pthread_mutex_lock
    lock(mutex)
    lock(mutex)
"""


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
        "test_native": "failure",
        "test_lock_cycle": "failure",
        "test_blocked_loop": "failure",
        "test_teardown": "error",
        at_exit: "error",
    }, ran.out
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
        "test_first": "passed",
        "test_skipped": "skipped",
        "test_unittest": "failure",
        "test_anyio": "failure",
        "test_elsewhere": "passed",
        "test_native": "failure",
    }, ran.out
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
        "test_leaves_a_thread": "passed",
        "exit of the process": "error",
    }
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
        "test_in_all": "failure",
        "test_each": "passed",
        "test_body_alone": "passed",
    }, ran.out
    ini = "postmortem_timeout = 60\npostmortem_collection_timeout = 1\n"
    ran = run(tmp_path, "--continue-on-collection-errors", "-k", "each", ini=ini, files={"test_import.py": hangs})
    assert "ERROR test_import.py" in ran.out, ran.out
    assert "collection took longer than 1 s" in ran.out
    assert outcome(ran.cases["test_each"]) == "passed"
