"""The recipes for test runners and any CI, run; every block of docs/recipes.md belongs to one of three such files."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest
import yaml

from ..support.capturing import HANG_S, ROOT
from .recipes import (
    SECRET,
    blocks,
    commands,
    environment,
    hung,
    lay_out,
    published,
    shell,
    shorter,
    verdict,
)

pytestmark = pytest.mark.live

RUNNERS = {"unittest": 124, "tox": 124, "nox": 1, "ctest": 8, "make": 2, "any other": 124}
SERVICES = {"systemd", "gunicorn", "uvicorn", "celery", "docker"}
BY_SCHEMA = {"github", "gitlab", "kubernetes", "bazel"}
EXAMPLE = "recipes: ci, test runners, services, containers"


def test_no_block_is_left_out() -> None:
    """Every recipe has a test; every file that a block shows is named, or it would be written nowhere."""
    found = blocks()
    assert {block.section for block in found} == {*RUNNERS, *SERVICES, *BY_SCHEMA, EXAMPLE}
    assert len(found) >= 25
    assert {block.language for block in found if block.file is None} == {"sh", "console"}


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_test_runner(runner: str, tmp_path: Path) -> None:
    """The hanging test is diagnosed, and the runner says that it failed."""
    lay_out(tmp_path, runner)
    shutil.copytree(ROOT / "ci", tmp_path / "ci")
    done = shell(tmp_path, shorter("\n".join(commands(runner))), 3 * HANG_S, POSTMORTEM_TIMEOUT="1")
    assert done.returncode == RUNNERS[runner], done.stdout + done.stderr
    shutil.rmtree(tmp_path / "postmortem" / "publish", ignore_errors=True)
    assert verdict(tmp_path) == "self-deadlock", done.stdout + done.stderr


# ---------------------------------------------------------------------- what is published


def test_a_cancelled_job_publishes_no_memory(tmp_path: Path) -> None:
    """TERM to the step's only process, then the step that always runs: a diagnosis for people, programs and the merge
    request, and neither a core nor what was in the program's memory, unless it was asked for."""
    words = ["sh", str(ROOT / "ci" / "postmortem.sh"), "run", sys.executable, hung(tmp_path)]
    settings = environment(POSTMORTEM_TIMEOUT="600", POSTMORTEM_OPTIONS="-k 0.5 --observe 0.2")
    with subprocess.Popen(words, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        job.send_signal(signal.SIGTERM)
        assert job.wait(HANG_S) == 128 + signal.SIGKILL
    summary, outputs = tmp_path / "summary", tmp_path / "outputs"
    on_github: Dict[str, Any] = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
    }
    collected = shell(tmp_path, f"sh {ROOT}/ci/postmortem.sh collect", **on_github)
    assert collected.returncode == 0, collected.stderr
    assert re.search(r"^::error .*file=", collected.stdout, re.M)
    assert "self-deadlock" in summary.read_text()
    assert outputs.read_text() == "publish=postmortem/publish\n"
    uploaded = published(tmp_path / "postmortem" / "publish")
    assert {"report.md", "report.txt", "report.json", "bundle.zip"} <= set(uploaded)
    assert b"self-deadlock" in uploaded["report.json"]
    assert [name for name in uploaded if "core" in name or "raw" in name] == []
    assert [name for name, data in uploaded.items() if SECRET.encode() in data or b"\x7fELF" in data] == []
    assert any(SECRET.encode() in core.read_bytes() for core in (tmp_path / "postmortem").rglob("*.core"))
    assert shell(tmp_path, f"sh {ROOT}/ci/postmortem.sh collect", POSTMORTEM_MEMORY="yes").returncode == 0
    assert (tmp_path / "postmortem" / "publish" / "bundle-with-memory.tar.gz").stat().st_size > 10_000


def test_a_job_that_ends_in_time_publishes_nothing(tmp_path: Path) -> None:
    """Its status is its own."""
    done = shell(tmp_path, f"sh {ROOT}/ci/postmortem.sh run sh -c 'exit 7'")
    assert (done.returncode, done.stderr) == (7, "")
    assert shell(tmp_path, f"sh {ROOT}/ci/postmortem.sh collect").returncode == 0
    assert not (tmp_path / "postmortem" / "publish").exists()


def test_the_action_runs_the_plain_recipe(tmp_path: Path) -> None:
    """Its steps but the installation and the upload, run as GitHub runs them: bash, and the inputs in the environment."""
    steps = {step["name"]: step for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]}
    settings = environment(
        RUNNER_TEMP=str(tmp_path / "temp"),
        GITHUB_ACTION="look",
        GITHUB_ACTION_PATH=str(ROOT),
        POSTMORTEM_TIMEOUT="1",
        POSTMORTEM_OPTIONS="",
        POSTMORTEM_RUN="python -m unittest",
        GITHUB_OUTPUT=str(tmp_path / "outputs"),
    )
    lay_out(tmp_path, "unittest")
    (tmp_path / "temp").mkdir()
    statuses = [
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[name]["run"]],
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            timeout=HANG_S,
            check=False,
        ).returncode
        for name in ("Run", "Collect")
    ]
    assert statuses == [124, 0]
    assert (tmp_path / "outputs").read_text() == f"publish={tmp_path}/temp/postmortem-look/publish\n"
    upload = steps["Upload"]["with"]["path"]
    assert upload == "${{ steps.collect.outputs.publish }}"
