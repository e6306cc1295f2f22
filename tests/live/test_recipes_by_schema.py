"""The recipes for what no machine of ours can run: GitHub, GitLab, Kubernetes and Bazel, against their schemas."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
import yaml

from ..support.capturing import HANG_S, ROOT
from .recipes import (
    SECRET,
    commands,
    environment,
    files,
    hung,
    lay_out,
    published,
    shell,
    words_of,
)

pytestmark = pytest.mark.live


def schema(name: str, *paths: Path) -> Tuple[int, str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    return done.returncode, done.stdout


def test_what_github_and_gitlab_read(tmp_path: Path) -> None:
    """The schemas are their own, as SchemaStore has them."""
    lay_out(tmp_path, "github")
    lay_out(tmp_path, "gitlab")
    assert schema("github-actions", ROOT / "action.yml") == (0, "ok -- validation done\n")
    assert schema("github-workflows", tmp_path / ".github" / "workflows" / "test.yml")[0] == 0
    assert schema("gitlab-ci", ROOT / "ci" / "gitlab.yml", tmp_path / ".gitlab-ci.yml")[0] == 0
    used = yaml.safe_load((tmp_path / ".github" / "workflows" / "test.yml").read_text())["jobs"]["test"]["steps"][-1]
    assert set(used["with"]) <= set(yaml.safe_load((ROOT / "action.yml").read_text())["inputs"])
    job = yaml.safe_load((tmp_path / ".gitlab-ci.yml").read_text())["test"]
    assert len([words for line in job["script"] for words in words_of(line)]) == 1


def test_what_gitlab_publishes(tmp_path: Path) -> None:
    """The template's own commands, on a bundle: its artifact has no memory either, and JUnit has the hang."""
    template = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".postmortem"]
    folders = {"BUNDLE": ".postmortem", "PUBLISH": "postmortem"}
    settings: Dict[str, Any] = {f"POSTMORTEM_{name}": str(tmp_path / folder) for name, folder in folders.items()}
    words = 'postmortem capture -t 1 -k 0.5 --on-cancel capture -o "$POSTMORTEM_BUNDLE" -- '
    shell(tmp_path, f"{words}{sys.executable} {hung(tmp_path)}", **settings)
    done = shell(tmp_path, "\n".join(template["after_script"]), **settings)
    assert done.returncode == 0, done.stderr
    uploaded = {
        name: data for path in template["artifacts"]["paths"] for name, data in published(tmp_path / path).items()
    }
    assert {"report.txt", "report.xml", "bundle.zip"} <= set(uploaded)
    assert [name for name, data in uploaded.items() if "raw" in name or SECRET.encode() in data] == []


def test_what_kubernetes_reads() -> None:
    """A pod of API v1, its fields by name; and capture's options in what kubectl runs."""
    pod = yaml.safe_load(files("kubernetes")["pod.yaml"])
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert set(pod) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(pod["spec"]) == {"shareProcessNamespace", "containers"} and pod["spec"]["shareProcessNamespace"] is True
    for container in pod["spec"]["containers"]:
        assert set(container) <= {"name", "image", "command", "securityContext"}
    assert pod["spec"]["containers"][1]["securityContext"] == {"capabilities": {"add": ["SYS_PTRACE"]}}
    assert words_of(commands("kubernetes")[0]) == [["--pid", "1", "--tree", "-o", "/tmp/hang"]]


def test_what_bazel_reads(tmp_path: Path) -> None:
    """A rule in a subset of Python, an option of `test`; the script is run as Bazel runs it."""
    known = files("bazel")
    (rule,) = ast.parse(known["tools/BUILD"]).body
    assert isinstance(rule, ast.Expr) and isinstance(rule.value, ast.Call)
    assert {word.arg for word in rule.value.keywords} == {"name", "srcs", "visibility"}
    assert re.fullmatch(r"# .bazelrc\ntest --run_under=//tools:postmortem\n", known[".bazelrc"])
    lay_out(tmp_path, "bazel")
    for name in ("temp", "outputs"):
        (tmp_path / name).mkdir()
    folders: Dict[str, Any] = {
        "TEST_TMPDIR": str(tmp_path / "temp"),
        "TEST_UNDECLARED_OUTPUTS_DIR": str(tmp_path / "outputs"),
    }
    words = f"bash -e tools/postmortem.sh {sys.executable} {hung(tmp_path)}"
    done = shell(tmp_path, words, TEST_TIMEOUT="46", **folders)
    assert done.returncode == 124, done.stderr
    assert [name for name, data in published(tmp_path / "outputs").items() if SECRET.encode() in data] == []
    assert (tmp_path / "outputs" / "postmortem.zip").exists()


def test_the_shell_is_clean() -> None:
    """shellcheck finds nothing in what users run."""
    script = str(ROOT / "ci" / "postmortem.sh")
    checked = subprocess.run(["shellcheck", script], env=environment(), capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
