"""What holds for all tests: whoever opens files outside of `postmortem/foreign` without leave makes the session fail."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Dict, Generator, List, Optional, Tuple

import pluggy
import pytest

from . import opening, opening_hook
from .allowed import ALLOWED
from .support import required
from .support.work import ends

_HERE = Path(__file__).resolve().parent
_PACKAGE = _HERE.parent / "postmortem"
_NAME = "_opening_hook"
_MOST_REPORTS, _MOST_LINES = 2, 80  # of a failed test
#: For each of a test's setup, call and teardown; the longest takes two minutes. A test that native code keeps hanging ends its
#: worker later (faulthandler_timeout in pyproject.toml).
_LIMIT_S = 600.0
_OWNER = pytest.StashKey[Path]()
_ENVIRONMENT = pytest.StashKey[Dict[str, str]]()


def _reach_children() -> None:
    """Put the hook beside the environment's packages; outside of a virtual environment only this process is watched."""
    if sys.prefix == sys.base_prefix:
        return
    site = Path(sysconfig.get_paths()["purelib"])
    source = (_HERE / "opening_hook.py").read_text("utf-8")
    start = f"import os; {opening_hook.VARIABLE!r} in os.environ and __import__({_NAME!r}).begin()\n"
    for name, text in ((f"{_NAME}.py", source), (f"{_NAME}.pth", start)):
        path = site / name
        if not path.exists() or path.read_text("utf-8") != text:
            temporary = site / f"{name}.{os.getpid()}"
            temporary.write_text(text, "utf-8")
            temporary.rename(path)


def _hear_signals() -> None:
    """Undo ignored and blocked signals (nohup, `&` in a script), which programs under test would inherit."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """The first process, which starts the workers and all others, says where notes go."""
    _hear_signals()
    if opening_hook.VARIABLE in os.environ:
        if hasattr(config, "workerinput"):
            opening_hook.install(*os.environ[opening_hook.VARIABLE].split(":"))
        return  # a suite within a test: its interpreter has begun this by itself
    folder = Path(tempfile.mkdtemp(prefix="opening-"))
    folder.chmod(0o711)
    notes = folder / "notes"
    notes.touch()
    notes.chmod(0o666)  # children are other users, too
    config.stash[_OWNER] = notes
    os.environ[opening_hook.VARIABLE] = f"{notes}:{_PACKAGE}:{_HERE}"
    _reach_children()
    opening_hook.install(str(notes), str(_PACKAGE), str(_HERE))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Generator[None, pluggy.Result[None], None]:
    """Fail a test that hangs, so that the others run."""
    with ends(_LIMIT_S):
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what collecting has made out of every later garbage collection: a full one took a second and a half, and tests that
    count descriptors ask for many."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, pluggy.Result[None], None]:
    """Skip a test, or in CI fail it, for which something is missing; limit the time of its fixtures."""
    for marker in item.iter_markers("needs"):
        required.check(marker)
    with ends(_LIMIT_S):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: Optional[pytest.Item]
) -> Generator[None, pluggy.Result[None], None]:
    """Fail the test that leaves the environment other than it was: those after it would fail in its stead."""
    with ends(_LIMIT_S):
        outcome = yield
    outcome.get_result()
    before, after = item.config.stash[_ENVIRONMENT], environment()
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if changed:
        os.environ.clear()
        os.environ.update(before)
        pytest.fail(f"left in the environment: {', '.join(changed)}", pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Show the report of a capture whose test failed: where the program stood tells why the verdict is another."""
    outcome = yield
    report = outcome.get_result()
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and isinstance(folder, Path):
        for text in sorted(folder.glob("*/report.txt"))[:_MOST_REPORTS]:
            lines = text.read_text("utf-8", "replace").splitlines()[:_MOST_LINES]
            report.sections.append((f"the report in {text.parent.name}", "\n".join(lines)))


def environment() -> Dict[str, str]:
    """All variables but the one that pytest sets for each test."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail when a module did what it is not allowed to."""
    notes = session.config.stash.get(_OWNER, None)
    if notes is None:
        return
    broken = violations(notes.read_text("utf-8", "replace"))
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if broken:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if reporter is not None:
            reporter.section("files opened outside of postmortem/foreign", sep="=", red=True)
            for sentence in broken:
                reporter.write_line(sentence)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember the environment that every test is to leave as it was."""
    session.config.stash[_ENVIRONMENT] = environment()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    notes = config.stash.get(_OWNER, None)
    if notes is not None:
        os.environ.pop(opening_hook.VARIABLE, None)
        shutil.rmtree(str(notes.parent), ignore_errors=True)


def violations(notes: str) -> List[str]:
    """A sentence for each module and event that the table does not allow."""
    broken: Dict[Tuple[str, str], str] = {}
    for line in notes.splitlines():
        module, number, event, arguments, test = (line.split("\t") + [""] * 5)[:5]
        if not opening.event_is_allowed(module, event, set(ALLOWED)):
            sentence = f"postmortem/{module.replace('.', '/')}.py:{number}: {event} {arguments}, in {test or 'no test'}"
            broken.setdefault((module, event), sentence)
    return sorted(broken.values())
