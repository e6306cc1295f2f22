"""The same bundle gives the same bytes: on another day, in another place, by another process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from postmortem import evidence as ev
from postmortem import pipeline, report
from postmortem.bundle import Bundle
from tests.corpora.cases import ROOT

from ...support.samples import NAMES, hostile


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """What a capture leaves, without its cores."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    found = ev.decode((ROOT / "pipe-deadlock/console-audit" / "evidence.json").read_bytes())
    threads = (*found.processes[0].threads, *hostile(NAMES["wide"])[0].processes[0].threads)
    found = ev.replace(found, processes=(ev.replace(found.processes[0], threads=threads), *found.processes[1:]))
    (folder / "evidence.json").write_bytes(ev.encode(found))
    manifest = {"schema": "postmortem.manifest/1", "steps": [], "timings": {"pause_s": 0.01, "classify_s": 0.0123}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def written(bundle: Path, folder: Path, **environment: str) -> Dict[str, bytes]:
    """Every format that `postmortem report` writes in a process of its own."""
    folder.mkdir()
    names = [f"r{known.suffix}" for known in report.FORMATS.values() if known.suffix]
    files = [word for name in names for word in ("--report", str(folder / name))]
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "report", str(bundle), "-f", "github", *files],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(report.__file__).parents[2]), **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {"stdout": done.stdout, **{name: (folder / name).read_bytes() for name in names}}


def test_two_processes_write_the_same(bundle: Path, tmp_path: Path) -> None:
    """Whatever hash seed, working directory, locale and time zone they have, and a minute later."""
    one = written(bundle, tmp_path / "a", PYTHONHASHSEED="1", LC_ALL="C.UTF-8", TZ="UTC")
    other = written(bundle, tmp_path / "b", PYTHONHASHSEED="4711", LC_ALL="C", TZ="Asia/Kathmandu", COLUMNS="200")
    assert one == other
    timings = json.loads(one["r.json"])["timings"]
    assert timings["classify_s"] == 0.0123, "as the capture measured it"


def test_a_bundle_without_times_has_none(bundle: Path) -> None:
    """What the capture did not measure is unknown: how long this reading took is not the capture's."""
    (bundle / "manifest.json").write_text('{"schema": "postmortem.manifest/1", "timings": []}')
    for found, _ in (pipeline.load_bundle(bundle), pipeline.analyze_target(str(bundle))):
        assert found.timings.classify_s is None
        assert found.timings.extract_s is not None


def test_the_report_of_a_capture_is_made_again_alike(tmp_path: Path) -> None:
    """What `capture` leaves in its bundle is what `report` and `analyze` say of it."""
    folder = tmp_path / "bundle"
    (folder / "raw").mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    (folder / "manifest.json").write_text('{"schema": "postmortem.manifest/1", "timings": {"pause_s": 0.5}}')
    said = io.StringIO()
    pipeline.diagnose_captured(Bundle.resume(folder), stream=said)
    assert json.loads((folder / "manifest.json").read_text())["timings"]["classify_s"] >= 0
    assert said.getvalue() == (folder / "report.txt").read_text("utf-8")
    for name in [name for name, known in report.FORMATS.items() if known.kept]:
        again = [pipeline.load_bundle(folder), pipeline.analyze_target(str(folder))]
        kept = (folder / f"report{report.FORMATS[name].suffix}").read_text("utf-8")
        assert [report.render(name, *found) for found in again] == [kept, kept]
    kept_names = {f"report{known.suffix}" for known in report.FORMATS.values() if known.kept}
    assert {path.name for path in folder.glob("report*")} == kept_names
