"""The demo's plumbing, with a corpus of two cases and an interpreter that is a shell script."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import List

import pytest

from postmortem import demo, places
from postmortem.errors import CaptureFailed, PostmortemError, TargetNotFound, ToolFailed, ToolMissing

OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One hang, one healthy case, and caches of their own."""
    folder = tmp_path / "corpora"
    hang = folder / "sleeping" / "plain"
    hang.mkdir(parents=True)
    (hang / "program.py").write_text("import time\ntime.sleep(60)  # CULPRIT\n", "utf-8")
    (hang / "evidence.json").write_text("{}", "utf-8")
    (hang / "case.toml").write_text(
        f'[case]\ntitle = "A sleep"\nkind = "hang"\ntimeout = 0.5\nargs = ["-x"]\npythons = ["{OURS}"]\n', "utf-8"
    )
    healthy = folder / "healthy" / "idle"
    healthy.mkdir(parents=True)
    (healthy / "case.toml").write_text('[case]\ntitle = "Idle"\nkind = "healthy"\n', "utf-8")
    monkeypatch.setattr(places, "shipped", lambda name: tmp_path / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


def fake_python(folder: Path, install_status: int = 0) -> Path:
    """Answers what version it is, makes a "virtual environment" with itself inside, and logs what it is asked."""
    script = folder / "fake-python"
    script.write_text(
        f"""#!/bin/sh
echo "$@" >> {folder}/asked
case "$*" in
*sys.version_info*) echo {OURS} ;;
*"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
*"pip install"*) echo "ERROR: No matching distribution found for x"; exit {install_status} ;;
esac
""",
        "utf-8",
    )
    script.chmod(0o755)
    return script


def asked(folder: Path) -> List[str]:
    return (folder / "asked").read_text("utf-8").splitlines()


def test_hangs_are_listed_and_healthy_cases_are_not(corpus: Path) -> None:
    """There is nothing to show about a healthy program."""
    assert [(case.name, case.title, case.timeout_s) for case in demo.cases()] == [("sleeping/plain", "A sleep", 0.5)]


def test_the_copy_has_neither_labels_nor_answers(corpus: Path, tmp_path: Path) -> None:
    """Line numbers stay, the marker and the recorded evidence do not come along."""
    (case,) = demo.cases()
    target = tmp_path / "copy"
    target.mkdir()
    demo._copy(case, target)
    assert [path.name for path in target.iterdir()] == ["program.py"]
    assert (target / "program.py").read_text("utf-8") == "import time\ntime.sleep(60)\n"


def test_an_unknown_name_says_which_there_are(corpus: Path) -> None:
    """Full and short names work, others name the known ones."""
    assert demo._named("plain").name == demo._named("sleeping/plain").name == "sleeping/plain"
    with pytest.raises(TargetNotFound, match="no demo 'nonsense'") as caught:
        demo.run("nonsense", print)
    assert "sleeping/plain" in caught.value.sentence()


def test_a_damaged_case_is_one_sentence(corpus: Path) -> None:
    """TOML that does not parse names its file."""
    (corpus / "sleeping" / "plain" / "case.toml").write_text("[case", "utf-8")
    with pytest.raises(PostmortemError, match=r"case\.toml cannot be read"):
        demo.cases()


def test_a_case_without_requirements_runs_on_the_plain_interpreter(corpus: Path) -> None:
    """No environment is made for it."""
    (case,) = demo.cases()
    python = demo._environment(case, print)
    assert python == Path(sys._base_executable)  # type: ignore[attr-defined]
    assert not (places.cache() / "demo").exists()


def test_the_environment_is_made_once(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run finds it and asks pip for nothing."""
    monkeypatch.setattr(sys, "_base_executable", str(fake_python(tmp_path)))
    case = demo.cases()[0]._replace(requirements=("x==1",))
    said: List[str] = []
    first = demo._environment(case, said.append)
    assert demo._environment(case, said.append) == first
    assert os.access(first, os.X_OK)
    assert len([line for line in asked(tmp_path) if "pip install" in line]) == 1
    assert len(said) == 1
    assert "x==1" in said[0]


def test_a_half_made_environment_is_made_again(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted run left is thrown away, not trusted."""
    monkeypatch.setattr(sys, "_base_executable", str(fake_python(tmp_path)))
    case = demo.cases()[0]._replace(requirements=("x==1",))
    venv = demo._environment(case, print).parents[1]
    (venv / ".complete").unlink()
    (venv / "rubbish").touch()
    demo._environment(case, print)
    assert not (venv / "rubbish").exists()
    assert (venv / ".complete").exists()


def test_a_registry_that_cannot_be_reached_is_one_sentence(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It carries pip's own reason, and the next run tries again."""
    monkeypatch.setattr(sys, "_base_executable", str(fake_python(tmp_path, install_status=1)))
    case = demo.cases()[0]._replace(requirements=("x==1",))
    for _ in range(2):
        with pytest.raises(ToolFailed, match="pip could not install x==1: ERROR: No matching distribution") as caught:
            demo._environment(case, print)
    assert "check the network" in caught.value.sentence()
    assert len([line for line in asked(tmp_path) if "pip install" in line]) == 2


def test_no_supported_interpreter_is_one_sentence(corpus: Path) -> None:
    """The versions that would do are named."""
    case = demo.cases()[0]._replace(pythons=("2.0",))
    with pytest.raises(ToolMissing, match=r"sleeping/plain needs Python 2\.0"):
        demo._interpreter(case)


@pytest.mark.live
def test_a_case_that_ends_in_time_is_said(corpus: Path) -> None:
    """A fast machine is no failure of the diagnosis, and no success either."""
    (corpus / "sleeping" / "plain" / "program.py").write_text("", "utf-8")
    (corpus / "sleeping" / "plain" / "case.toml").write_text("[case]\ntimeout = 60.0\npythons = []\n", "utf-8")
    with pytest.raises(CaptureFailed, match="ended in time"):
        demo.run("plain", lambda text: None)


@pytest.mark.live
def test_a_demo_leaves_a_bundle_in_a_fresh_private_folder(corpus: Path) -> None:
    """The whole way: capture, bundle, path; the folder lies here and is nobody else's to read."""
    bundle = demo.run("plain", lambda text: None)
    assert bundle.parent.parent == Path.cwd()
    assert bundle.parent.stat().st_mode & 0o777 == 0o700
    assert (bundle / "manifest.json").exists()
