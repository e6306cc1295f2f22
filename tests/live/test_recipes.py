"""Every block of docs/recipes.md is run; those that need somebody's service are checked against its schema."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
import yaml

from postmortem.capture import options

from .capturing import HANG_S, ROOT, wait_until
from .recipes import blocks, commands, files, lay_out, shorter

pytestmark = pytest.mark.live

RUNNERS = {"unittest": 124, "tox": 124, "nox": 1, "ctest": 8, "make": 2, "any other": 124}
SERVICES = {"systemd", "gunicorn", "uvicorn", "celery", "docker"}
BY_SCHEMA = {"github", "gitlab", "kubernetes", "bazel"}
EXAMPLE = "recipes: ci, test runners, services, containers"
#: In the memory of a program, and nowhere else.
SECRET = "in-memory-only"


def environment(**changes: str) -> Dict[str, str]:
    """postmortem on PATH, as the document has it, and nothing of the CI that runs this."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "POSTMORTEM_DIR", "PYTHON"))}
    return {**ours, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **changes}


def shell(folder: Path, script: str, timeout: float = HANG_S, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-eu", "-c", script], cwd=folder, env=environment(**changes), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def bundles(folder: Path) -> List[Path]:
    return [path.parent for path in sorted(folder.rglob("manifest.json"))]


def verdict(folder: Path) -> str:
    """Of the only bundle below a folder."""
    (bundle,) = bundles(folder)
    report: Dict[str, Any] = json.loads((bundle / "report.json").read_bytes())
    return str(report["verdict"])


def test_no_block_is_left_out() -> None:
    """Whoever adds a recipe adds its test; a file that is not named would be written nowhere."""
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


def hung(folder: Path) -> str:
    """A program with a secret in its memory alone, that hangs and does not end with TERM."""
    code = "import signal, threading\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code += f"kept = '-'.join(reversed({SECRET.split('-')[::-1]!r}))\nlock = threading.Lock()\n"
    code += "print('up', flush=True)\nwith lock:\n    with lock:\n        pass\n"
    (folder / "program.py").write_text(code)
    return "program.py"


def published(folder: Path) -> Dict[str, bytes]:
    """Every file that is uploaded, those inside of archives too."""
    found = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            found.update({f"{path.name}/{name}": archive.read(name) for name in archive.namelist()})
    return found


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
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs)}
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
        RUNNER_TEMP=str(tmp_path / "temp"), GITHUB_ACTION="look", GITHUB_ACTION_PATH=str(ROOT), POSTMORTEM_TIMEOUT="1",
        POSTMORTEM_OPTIONS="", POSTMORTEM_RUN="python -m unittest", GITHUB_OUTPUT=str(tmp_path / "outputs"),
    )  # fmt: skip
    lay_out(tmp_path, "unittest")
    (tmp_path / "temp").mkdir()
    statuses = [
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[name]["run"]], cwd=tmp_path, env=settings,
            capture_output=True, timeout=HANG_S, check=False,
        ).returncode
        for name in ("Run", "Collect")
    ]  # fmt: skip
    assert statuses == [124, 0]
    assert (tmp_path / "outputs").read_text() == f"publish={tmp_path}/temp/postmortem-look/publish\n"
    upload = steps["Upload"]["with"]["path"]
    assert upload == "${{ steps.collect.outputs.publish }}"


# ---------------------------------------------------------------------- services


@contextlib.contextmanager
def serving(folder: Path, script: str, **changes: str) -> Iterator[subprocess.Popen[str]]:
    """A block of commands that goes on; its whole group is ended."""
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            ["sh", "-eu", "-c", script], cwd=folder, env=environment(**changes), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked(port: int, path: str) -> socket.socket:
    """A request that has been sent, to a server that may still be starting."""
    until = time.monotonic() + HANG_S
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), 1)
        except OSError:
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.05)
            continue
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return connection


def diagnosed(folder: Path) -> bool:
    return any((bundle / "report.json").exists() for bundle in bundles(folder))


APP = """
import threading
lock = threading.Lock()
def settle():
    with lock:
        with lock:
            pass
def wsgi(environ, start_response):
    settle()
async def asgi(scope, receive, send):
    if scope["type"] == "http" and scope["path"] == "/settle":
        settle()
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body"})
"""


def test_gunicorn(tmp_path: Path) -> None:
    """The worker that hangs is captured before the arbiter kills it."""
    lay_out(tmp_path, "gunicorn", **{"timeout = 60": "timeout = 40", "timeout / 2": "timeout / 20"})
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    with serving(tmp_path, commands("gunicorn")[0].replace("8000", str(port))), asked(port, "/settle"):
        wait_until(lambda: diagnosed(tmp_path), "a diagnosis")
    assert verdict(tmp_path) == "self-deadlock", (tmp_path / "log").read_text()


def test_uvicorn(tmp_path: Path) -> None:
    """It is not captured while it answers; when it does not, the check says why."""
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    start, check = (text.replace("8000", str(port)) for text in commands("uvicorn"))
    with serving(tmp_path, f"{start}\nwait"):
        asked(port, "/health").close()
        healthy = shell(tmp_path, check)
        assert (healthy.returncode, bundles(tmp_path)) == (0, [])
        with asked(port, "/settle"):
            done = shell(tmp_path, check.replace("--max-time 5", "--max-time 1"))
    assert done.returncode == 0, done.stderr
    assert verdict(tmp_path) == "self-deadlock", done.stderr


def test_celery(tmp_path: Path) -> None:
    """The process of the task is captured at its soft limit."""
    lay_out(tmp_path, "celery", **{"soft_time_limit=300": "soft_time_limit=1"})
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    (tmp_path / "celeryconfig.py").write_text(
        "broker_url = 'filesystem://'\nbroker_transport_options = {'data_folder_in': 'queue', 'data_folder_out': 'queue',"
        " 'control_folder': 'control'}\nworker_state_db = None\n"
    )
    with serving(tmp_path, commands("celery")[0]):
        sent = shell(tmp_path, "python -c 'import tasks; tasks.settle.delay()'")
        assert sent.returncode == 0, sent.stderr
        wait_until(lambda: diagnosed(tmp_path), "a diagnosis")
    assert verdict(tmp_path) == "self-deadlock", (tmp_path / "log").read_text()


def unit() -> Dict[str, str]:
    lines = files("systemd")["orders.service"].splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_systemd(tmp_path: Path) -> None:
    """The unit is one that systemd takes; its command answers the watchdog's signal with a diagnosis, and goes on."""
    known = unit()
    command = known["ExecStart"].replace("/var/lib/orders", str(tmp_path))
    (tmp_path / "serve.py").write_text(f"import os\nos.write(1, b'up\\n')\n{APP}settle()\n")
    with subprocess.Popen(shlex.split(command), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE) as main:
        assert main.stdout is not None
        assert main.stdout.readline() == b"up\n"
        main.send_signal(getattr(signal, known["WatchdogSignal"]))
        wait_until(lambda: diagnosed(tmp_path), "a diagnosis")
        assert main.poll() is None
        main.terminate()
    assert verdict(tmp_path) == "self-deadlock"
    text = files("systemd")["orders.service"].replace("ExecStart=postmortem", f"ExecStart={sys.executable}")
    (tmp_path / "orders.service").write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "orders.service")]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert [line for line in done.stderr.splitlines() if "orders.service" in line] == []
    shown = commands("systemd")[0]
    assert words_of(shown) == [["--pid", "$(systemctl show --property MainPID --value orders.service)"]]


#: `docker run --pid=container:NAME IMAGE COMMAND`: COMMAND in the pid namespace of a container, with other files.
DOCKER = """#!/bin/sh
set -e
[ "$1" = run ]
shift
while :; do
    case $1 in
    --pid=container:*) target=$(cat "$CONTAINERS/${1#--pid=container:}") ;;
    --volume) shift; out=${1%:/out} ;;
    --rm | --cap-add=SYS_PTRACE) ;;
    *) break ;;
    esac
    shift
done
shift # the image
exec nsenter --target "$target" --user --pid --preserve-credentials unshare --mount sh -c '
    mount -t proc proc /proc
    out=$1; shift
    for word; do shift; case $word in /out*) word=$out${word#/out} ;; esac; set -- "$@" "$word"; done
    exec "$@"' sh "$out" "$@"
"""


def test_docker(tmp_path: Path) -> None:
    """Where no engine is, namespaces made by hand stand in for it: the same pids, other mounts, the capability to trace."""
    probe = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.fail("no user namespaces here") if os.environ.get("CI") else pytest.skip("no user namespaces here")
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    (tmp_path / "serve.py").write_text(f"import os\nos.write(1, b'up\\n')\n{APP}settle()\n")
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
    with subprocess.Popen([*inside, sys.executable, "serve.py"], cwd=tmp_path, stdout=subprocess.PIPE) as container:
        assert container.stdout is not None
        assert container.stdout.readline() == b"up\n"
        child = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().strip()
        (tmp_path / "web").write_text(child)
        (command,) = commands("docker")
        path = f"{tmp_path / 'bin'}:{environment()['PATH']}"
        done = shell(tmp_path, command, CONTAINERS=str(tmp_path), PATH=path)
        container.kill()
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdict(tmp_path / "hang") == "self-deadlock"


# ---------------------------------------------------------------------- by schema


def words_of(script: str) -> List[List[str]]:
    """The words of every `postmortem capture` in a script, checked by the parser that will read them."""
    found = []
    for text in re.findall(r"postmortem capture ([^|;&\n]*)", script.replace("\\\n", " ")):
        words = shlex.split(text if text.count("'") % 2 == 0 else text.rstrip("' "))
        numbers = ["1" if word.startswith("$") and before in ("--pid", "-t") else word
                   for before, word in zip(["", *words], words)]  # fmt: skip
        options.parse(numbers)
        found.append(words)
    return found


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
    settings = {"POSTMORTEM_BUNDLE": str(tmp_path / ".postmortem"), "POSTMORTEM_PUBLISH": str(tmp_path / "postmortem")}
    words = "postmortem capture -t 1 -k 0.5 --on-cancel capture -o \"$POSTMORTEM_BUNDLE\" -- "
    shell(tmp_path, f"{words}{sys.executable} {hung(tmp_path)}", **settings)
    done = shell(tmp_path, "\n".join(template["after_script"]), **settings)
    assert done.returncode == 0, done.stderr
    uploaded = {name: data for path in template["artifacts"]["paths"] for name, data in published(tmp_path / path).items()}
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
    assert words_of(commands("kubernetes")[0]) == [["--pid", "1", "-o", "/tmp/hang"]]


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
    folders = {"TEST_TMPDIR": str(tmp_path / "temp"), "TEST_UNDECLARED_OUTPUTS_DIR": str(tmp_path / "outputs")}
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
