"""What `import postmortem` offers, and what it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Tuple

import pytest

import postmortem
from postmortem import errors, evidence
from postmortem.bundle import Bundle
from postmortem.evidence import Evidence
from postmortem.findings import Diagnosis

from ..support.diagnosed import classify
from ..support.samples import sleeper, thrash

ROOT = Path(__file__).resolve().parents[2]


def written(path: Path, found: Tuple[Evidence, Diagnosis]) -> Path:
    """A bundle as a capture without cores leaves it."""
    with Bundle.create(path) as bundle:
        bundle.write("evidence.json", evidence.encode(found[0]))
    return path


def test_import_loads_nothing_else() -> None:
    """`capture` imports the package on its fast path: names are imported when they are asked for."""
    code = (
        "import sys; before = set(sys.modules); import postmortem; "
        "print(sorted(set(sys.modules) - before)); postmortem.PostmortemError; print('msgspec' in sys.modules); "
        "postmortem.analyze; print('postmortem.pipeline' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines()[:2] == ["['__future__', 'postmortem']", "False"], done.stderr


def test_every_public_name_is_there() -> None:
    """And is in dir(); every other one is an AttributeError that names it."""
    for name in postmortem.__all__:
        assert getattr(postmortem, name) is not None
        assert name in dir(postmortem)
    assert postmortem.PostmortemError is errors.PostmortemError
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        getattr(postmortem, "analyse")  # noqa: B009 - as `from postmortem import` does


def test_a_report_is_what_the_command_line_has(tmp_path: Path) -> None:
    """The same objects, and the same text in every format."""
    found, _ = thrash()
    report = postmortem.analyze(written(tmp_path / "bundle", thrash()))
    expected = classify(found)
    assert (report.verdict, report.signature) == (expected.verdict, expected.signature)
    assert report.findings == expected.findings
    assert [process.pid for process in report.processes] == [process.pid for process in found.processes]
    assert report.gaps == report.evidence.gaps
    assert report.render().startswith(f"Verdict: {expected.verdict}")
    assert report.as_json()["verdict"] == expected.verdict
    with pytest.raises(postmortem.UsageError, match="no format 'poem'"):
        report.render("poem")


def test_a_target_may_be_a_str(tmp_path: Path) -> None:
    """As well as a path."""
    report = postmortem.analyze(str(written(tmp_path / "bundle", sleeper())))
    assert report.verdict == classify(sleeper()[0]).verdict


def test_what_is_wrong_is_an_error_of_the_tree(tmp_path: Path) -> None:
    """One sentence, and what to do next."""
    (tmp_path / "text").write_text("no core")
    for target, kind in ((tmp_path / "gone", postmortem.TargetNotFound), (tmp_path / "text", postmortem.NotACore)):
        with pytest.raises(kind) as caught:
            postmortem.analyze(target)
        assert isinstance(caught.value, postmortem.PostmortemError)
        assert caught.value.slug and str(target) in caught.value.sentence()


def test_the_documentations_example_runs(tmp_path: Path) -> None:
    """docs/api.md is typed as it stands, on a bundle of the name that it has; its output is what it says."""
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    code, output = re.findall(r"^```(?:python|text)\n(.*?)^```", page, re.M | re.S)[:2]
    written(tmp_path / "postmortem-pytest-20250101T020304Z-4711", thrash())
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (output, "")
    for name in ("verdict", "signature", "findings", "processes", "gaps", "evidence", "diagnosis", "render", "as_json"):
        assert hasattr(postmortem.Report, name) and f"`{name}" in page
    assert all(f"`{name}`" in page for name in postmortem.__all__ if name != "__version__" and name != "analyze")
