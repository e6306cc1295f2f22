"""A Chromium without a screen, and reports in it. Needs the packages chromium (Debian) and playwright (PyPI)."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report.html import page as html
from tests.corpora.cases import ROOT
from tests.support.crowds import crowd, thrashing
from tests.support.samples import BAD_IN_HTML, hostile

from ..support.diagnosed import classify
from ..support.required import lacking

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: One of each kind: tasks, circles in one process and in several, pipes, crashes, nothing wrong at all.
CASES = (
    "gil-thrash/websocket-testclient",
    "busy-event-loop/dock-planner",
    "lock-order-deadlock/worker-process",
    "async-deadlock/account-transfers",
    "blocking-call-in-coroutine/gauge-console",
    "pipe-deadlock/console-audit",
    "mp-join-before-drain/genome-scan",
    "native-abort/relay-service",
    "lock-contention/parts-counter",
    "healthy/idle-asyncio-server",
)
Sample = Tuple[ev.Evidence, fi.Diagnosis]


def missing(what: str, remedy: str) -> None:
    """CI must have it; elsewhere its absence is named."""
    lacking(f"{what} is not here: {remedy}")


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    program = shutil.which("chromium")
    if program is None:
        missing("chromium", "apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        missing("playwright", "pip install '.[test]'")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which looks for what shuts people out."""
    try:
        import axe_playwright_python  # noqa: PLC0415
    except ImportError:
        missing("axe-playwright-python", "pip install '.[test]'")
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


def recorded(name: str) -> Sample:
    evidence = ev.decode((ROOT / name / "evidence.json").read_bytes())
    return evidence, classify(evidence)


_MADE: Dict[str, Callable[[], Sample]] = {
    "crowd": crowd,
    "thrashing": thrashing,
    "hostile": lambda: hostile(BAD_IN_HTML + "x" * 10_000),
}


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Name of a case, or of evidence made by hand → its report, rendered once."""
    folder = tmp_path_factory.mktemp("reports")

    def of(name: str) -> Path:
        path = folder / f"{name.replace('/', '--')}.html"
        if not path.exists():
            sample = _MADE[name]() if name in _MADE else recorded(name)
            path.write_text(html.render(*sample), "utf-8")
        return path

    return of


class Opened:
    """A report in a tab: ``complaints`` has what the browser said against it, ``asked`` every address but its own."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, motion: str = "reduce") -> None:
        self.tab = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion=motion)
        self.tab.set_default_timeout(30_000)
        self.complaints: List[str] = []
        self.asked: List[str] = []
        self.tab.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        address = path.as_uri()
        self.tab.on("request", lambda request: self.asked.append(request.url) if request.url != address else None)
        self.tab.goto(address)
        self.tab.wait_for_selector("[data-ready]", state="attached")

    def until(self, expression: str) -> None:
        """Waits until it holds. Playwright's own way would have the page evaluate a string, which its policy forbids."""
        deadline = time.monotonic() + 30
        while not self.tab.evaluate(expression):
            assert time.monotonic() < deadline, expression
            self.tab.wait_for_timeout(30)

    def focused(self) -> str:
        """The accessible name of what has the focus."""
        return self.tab.evaluate(
            "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
        )


@pytest.fixture
def opened(browser: Any, written: Callable[[str], Path]) -> Iterator[Callable[..., Opened]]:
    tabs: List[Opened] = []

    def of(name: str, **options: Any) -> Opened:
        tabs.append(Opened(browser, written(name), **options))
        return tabs[-1]

    yield of
    for one in tabs:
        one.tab.close()
