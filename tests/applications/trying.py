"""Runs of one state of one application: start it, bring it there, capture it with the real tool, end it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

from tests.interpreters.steps import Unavailable

from . import services
from .judging import unmarked
from .specs import Application, State

_REACH_S = 120
_SETTLE_S = 2.0
_CAPTURE_S = 180
_TYPING_S = 0.5


def report(application: Application, state: State, environment: Path, work: Path, bundle: Path) -> Dict[str, Any]:
    """Return the report of a capture in this state; the bundle is written to ``bundle``. Raise Unavailable."""
    work.mkdir(parents=True)
    for path in application.program.iterdir():
        if path.suffix == ".py":
            (work / path.name).write_text(unmarked(path.read_text()))
    with tempfile.TemporaryDirectory(prefix="services-") as scratch, services.started(
        application.services, Path(scratch)
    ) as found:
        port = services.free_port()
        # The names are free of hints: whoever reads the environment learns nothing.
        env = {
            **_bare_environment(), **found,
            "PORT": str(port), "READY": str(work / "ready"), "STATE": state.name, "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        values = {
            "python": str(environment / "bin" / "python"), "bin": str(environment / "bin"),
            "port": str(port), "state": state.name, "work": str(work),
        }  # fmt: skip
        with contextlib.ExitStack() as stack:
            process, terminal = stack.enter_context(
                _group(application.command, values, env, work, application.terminal)
            )
            if application.driver:
                stack.enter_context(_group(application.driver, values, env, work, False, "driver.log"))
            _reach(application, state, process, terminal, port, work)
            return _captured(process.pid, bundle)


def again(bundle: Path) -> Dict[str, Any]:
    """Return the report that this checkout makes of a bundle that was kept."""
    target = bundle / "again.json"
    _postmortem("analyze", str(bundle), "--report", str(target))
    said: Dict[str, Any] = json.loads(target.read_text())
    return said


def _bare_environment() -> Dict[str, str]:
    keep = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER")
    return {**{name: os.environ[name] for name in keep if name in os.environ}, "TERM": "xterm"}


@contextlib.contextmanager
def _group(
    command: Sequence[str], values: Dict[str, str], env: Dict[str, str], work: Path, terminal: bool, log: str = "log"
) -> Iterator[tuple[subprocess.Popen[bytes], Optional[int]]]:
    """Run a command in a session of its own, which ends with the block; with its terminal, if it has one."""
    words = [word.format(**values) for word in command]
    master: Optional[int] = None
    try:
        with (work / log).open("wb") as out:
            if terminal:
                master, slave = pty.openpty()
                # The shell is what makes the terminal a controlling one; exec keeps the process id.
                process = subprocess.Popen(
                    [sys.executable, "-c", _ON_TERMINAL, os.ttyname(slave), *words],
                    cwd=work, env=env, start_new_session=True, stdin=slave, stdout=slave, stderr=slave,
                )  # fmt: skip
                os.close(slave)
                threading.Thread(target=_drain, args=(master, work / log), daemon=True).start()
            else:
                process = subprocess.Popen(
                    words, cwd=work, env=env, start_new_session=True, stdin=subprocess.PIPE, stdout=out, stderr=out
                )
        try:
            yield process, master
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
    finally:
        if master is not None:
            with contextlib.suppress(OSError):
                os.close(master)


_ON_TERMINAL = "import os, sys; os.open(sys.argv[1], os.O_RDWR); os.execv(sys.argv[2], sys.argv[2:])"


def _drain(master: int, log: Path) -> None:
    """Read what the program writes, so that it never waits for its terminal."""
    with contextlib.suppress(OSError), log.open("ab") as out:
        while True:
            out.write(os.read(master, 4096))
            out.flush()


def _reach(
    application: Application, state: State, process: subprocess.Popen[bytes], terminal: Optional[int],
    port: int, work: Path,
) -> None:  # fmt: skip
    """Bring it into the state. Raise Unavailable."""
    reached = work / "ready"

    def alive() -> None:
        if process.poll() is not None:
            said = (work / "log").read_text(errors="replace").strip().splitlines() or ["nothing"]
            raise Unavailable(f"it ended with {process.returncode}, and said: {said[-1]}")

    def at_port() -> bool:
        alive()
        return services.answers(port)

    def at_file() -> bool:
        alive()
        return reached.exists()

    if application.http:
        services.until(at_port, "it did not listen", _REACH_S)
        _request(port, "/")
    for path in state.requests:
        threading.Thread(target=_request, args=(port, path), daemon=True).start()
    if terminal is not None:
        time.sleep(1)
        for line in state.typed:
            os.write(terminal, line.encode() + b"\r")
            time.sleep(_TYPING_S)
    if not (application.http and state.idle):
        services.until(at_file, "it did not reach the state", _REACH_S)
    time.sleep(_SETTLE_S)
    alive()


def _request(port: int, path: str) -> None:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=600) as answer:
        answer.read()


def _captured(pid: int, bundle: Path) -> Dict[str, Any]:
    target = bundle.with_suffix(".json")
    _postmortem("capture", "--pid", str(pid), "-o", str(bundle), "--report", str(target))
    said: Dict[str, Any] = json.loads(target.read_text())
    target.unlink()
    return said


def _postmortem(*arguments: str) -> None:
    command: List[str] = [sys.executable, "-m", "postmortem", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_CAPTURE_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"postmortem {arguments[0]} did not end within {_CAPTURE_S} s") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise Unavailable(f"postmortem {arguments[0]} failed: {said[-1]}")


def forget(folder: Path) -> None:
    """Remove a bundle or a work folder."""
    shutil.rmtree(folder, ignore_errors=True)
