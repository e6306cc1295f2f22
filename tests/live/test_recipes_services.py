"""The recipes for services and containers, run: each has its hang diagnosed as the document says."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator

import pytest

from ..support.capturing import HANG_S, wait_until
from ..support.required import lacking
from .recipes import (
    bundles,
    commands,
    environment,
    files,
    lay_out,
    shell,
    verdict,
    words_of,
)

pytestmark = pytest.mark.live


@contextlib.contextmanager
def serving(folder: Path, script: str, **changes: str) -> Iterator[subprocess.Popen[str]]:
    """A block of commands that goes on; its whole group is ended."""
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            ["sh", "-eu", "-c", script],
            cwd=folder,
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
        )
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
        lacking("no user namespaces here")
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
