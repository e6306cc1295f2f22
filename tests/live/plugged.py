"""Real suites that hang, under `pytest --postmortem-timeout`, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional
from xml.etree import ElementTree

from ..support.capturing import HANG_S, environment

#: What is in every suite's ini file.
QUIET = "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n"


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
    (folder / "pytest.ini").write_text(QUIET + ini)
    for name, source in (files or {}).items():
        (folder / name).write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "pytest", "--junitxml", "results.xml", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=4 * HANG_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout, folder)


def outcome(case: Any) -> str:
    return next((tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed")
