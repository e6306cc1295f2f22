"""The module that pytest loads wherever postmortem is installed (entry point ``pytest11``).

It is imported by every run of pytest, so it imports nothing but pytest and defines only options. The plugin itself is
in ``postmortem.pytesting``, imported on first use (``--postmortem-timeout``, the ini option, or a marker).
"""

from __future__ import annotations

import sys
from operator import attrgetter

import pytest

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

MARKER = "postmortem_timeout"  # as in pytesting, which nobody imports who wants nothing of it
_MARKERS, _PARENT = attrgetter("own_markers"), attrgetter("parent")
_MARKER_HELP = (
    f"{MARKER}(seconds, scope='phase'): how long each of setup, call and teardown may take before postmortem reports what it "
    "waits for and makes it fail; scope='call': the test's body alone; scope='item': all of it together; 0: no limit."
)


def pytest_addoption(parser: Any) -> None:
    """Add the options."""
    group = parser.getgroup("postmortem", "hangs, diagnosed from outside (postmortem)")
    group.addoption(
        "--postmortem-timeout",
        metavar="SECONDS",
        help="Diagnose, and make fail, what takes longer: setup, call or teardown of a test, the import of a test module, the "
        "interpreter's exit. 5, 0.5, 2m; 0: no limit.",
    )
    group.addoption(
        "--postmortem-scope",
        choices=("phase", "call", "item"),
        help="What the limit applies to: each phase of a test (default), its body alone, or all of it together.",
    )
    group.addoption(
        "--postmortem-dir", metavar="DIR", help="Where bundles go; default: postmortem-bundles in the root directory."
    )
    parser.addini("postmortem_timeout", "same as --postmortem-timeout")
    parser.addini("postmortem_scope", "same as --postmortem-scope")
    parser.addini("postmortem_collection_timeout", "limit for one module's import; default: the limit, at least 30 s")
    parser.addini("postmortem_exit_timeout", "limit for the interpreter's exit; default: the limit, at least 5 s")
    parser.addini("postmortem_dir", "same as --postmortem-dir, relative to the root directory")


def pytest_configure(config: Any) -> None:
    """Register the marker; switch the plugin on if a timeout was set."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if config.getoption("postmortem_timeout") or config.getini("postmortem_timeout"):
        _switch_on(config)


def pytest_collection_finish(session: Any) -> None:
    """Switch the plugin on if any test has a marker; tests without markers cost no Python step each."""
    if session.config.pluginmanager.hasplugin("postmortem-guard"):
        return
    nodes = [item for item in session.items if item.own_markers] if any(map(_MARKERS, session.items)) else []
    parents = set(map(_PARENT, session.items))
    while parents:
        nodes += parents
        parents = {node.parent for node in parents if node.parent is not None} - set(nodes)
    if any(mark.name == MARKER for node in nodes for mark in node.own_markers):
        _switch_on(session.config, under_way=True)


def _switch_on(config: Any, under_way: bool = False) -> None:
    """Import the plugin and switch it on.

    pytest's import hook, which rewrites asserts, is left out: it would double the time to import our modules, and keep
    pytest alive until the interpreter's end.
    """
    finders = sys.meta_path
    sys.meta_path = [finder for finder in finders if not type(finder).__module__.startswith("_pytest.")]
    try:
        from .pytesting.guard import switch_on  # noqa: PLC0415 - costs nothing where it is not used
    finally:
        sys.meta_path = finders
    switch_on(config, under_way)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any) -> None:
    """Explain the crash of a pytest-xdist worker, if its watchdog has recorded the reason."""
    from .pytesting.workers import explain_crash  # noqa: PLC0415

    explain_crash(crashitem, report)
