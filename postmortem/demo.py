"""A labelled hang from the corpora, run under `capture` as by a user: one program, its pinned requirements, its timeout.

The program gets a virtual environment of its own, kept in the cache, and a fresh folder, kept for the user. Everything
runs as subprocesses: the demo shows the command line, not this process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import places, programs
from .errors import CaptureFailed, PostmortemError, TargetNotFound, ToolFailed, ToolMissing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT = "gil-thrash/websocket-testclient"

_TIMED_OUT = 124  # capture's status after a timeout
_INSTALL_S = 600  # enough for a slow registry
_CAPTURE_S = 300
_NOT_COPIED = ("case.toml", "evidence.json", "__pycache__")  # files with the answers
_MARKER = re.compile(r"[ \t]*# CULPRIT.*$", re.M)  # labels of the corpus, which the diagnosis must not see

Progress = Callable[[str], None]


class Case(NamedTuple):
    """A folder ``corpora/<pattern>/<case>`` with its ``case.toml``."""

    name: str  # "<pattern>/<case>"
    folder: Path
    title: str
    requirements: Tuple[str, ...]
    args: Tuple[str, ...]
    pythons: Tuple[str, ...]  # supported versions, such as "3.12"
    timeout_s: float


def cases() -> List[Case]:
    """Return the available hangs, by name: all in a checkout, the default one in an installed package."""
    found = (_case(path) for path in sorted(places.shipped("corpora").glob("*/*/case.toml")))
    return [case for case in found if case is not None]


def run(name: Optional[str], progress: Progress) -> Path:
    """Run a case under capture; return the path of the bundle.

    Raises:
    - TargetNotFound: unknown name
    - ToolMissing, ToolFailed: the environment cannot be made
    - CaptureFailed: no bundle was made
    """
    case = _named(name or DEFAULT)
    python = _environment(case, progress)
    folder = _fresh_folder(case)
    _copy(case, folder)
    bundle = folder / "bundle"
    words = ["capture", "-t", f"{case.timeout_s:g}", "-o", str(bundle), "--", str(python), "program.py", *case.args]
    command = programs.python("postmortem.__main__", words)
    progress(f"{case.name}: {case.title}")
    progress(f"running postmortem capture -t {case.timeout_s:g} -- python program.py, in {folder}")
    status, log = _run_logged(command, folder / "capture.log", folder, _CAPTURE_S)
    if status == 0:
        raise CaptureFailed(
            "the program ended in time on this machine", "there is nothing to diagnose; try another case"
        )
    if status != _TIMED_OUT or not bundle.exists():
        raise CaptureFailed(f"capture ended with status {status}: {_last_line(log)}", f"all its output is in {log}")
    return bundle


def _named(name: str) -> Case:
    known = cases()
    for case in known:
        if name in (case.name, case.folder.name):
            return case
    raise TargetNotFound(f"no demo {name!r}", f"available: {', '.join(case.name for case in known) or 'none'}")


def _case(path: Path) -> Optional[Case]:
    try:
        table: Dict[str, Any] = tomllib.loads(path.read_text("utf-8"))["case"]
    except (OSError, ValueError, KeyError) as exc:
        raise PostmortemError(f"{path} cannot be read: {exc}") from exc
    if table.get("kind", "hang") != "hang":
        return None
    return Case(
        name=f"{path.parent.parent.name}/{path.parent.name}",
        folder=path.parent,
        title=str(table.get("title", "")),
        requirements=tuple(table.get("requirements", ())),
        args=tuple(str(arg) for arg in table.get("args", ())),
        pythons=tuple(str(version) for version in table.get("pythons", ())),
        timeout_s=float(table.get("timeout", 2.0)),
    )


def _fresh_folder(case: Case) -> Path:
    name = f"postmortem-demo-{case.folder.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
    here = Path.cwd()
    # kept where the user finds it; a read-only directory is no reason to fail
    folder = (here if os.access(here, os.W_OK) else Path(tempfile.gettempdir())) / name
    folder.mkdir(mode=0o700)
    return folder


def _copy(case: Case, folder: Path) -> None:
    for source in sorted(case.folder.iterdir()):
        if source.name not in _NOT_COPIED and source.is_file():
            text = source.read_text("utf-8")
            (folder / source.name).write_text(_MARKER.sub("", text) if source.suffix == ".py" else text, "utf-8")


def _environment(case: Case, progress: Progress) -> Path:
    """Return the interpreter with the case's requirements, from the cache or installed now."""
    python = _interpreter(case)
    if not case.requirements:
        return python
    key = hashlib.sha256("\n".join([_version(python) or "", str(python), *case.requirements]).encode()).hexdigest()[:16]
    base = places.cache() / "demo"
    base.mkdir(mode=0o700, exist_ok=True)
    venv, done = base / key, base / key / ".complete"
    with _locked(base / f"{key}.lock"):
        if not done.exists():
            progress(f"installing {', '.join(case.requirements)} for {python} (once)")
            shutil.rmtree(venv, ignore_errors=True)  # left by an interrupted run
            _make_venv(python, venv, case.requirements, base / f"{key}.log")
            done.touch()
    return venv / "bin" / "python"


def _make_venv(python: Path, venv: Path, requirements: Sequence[str], log: Path) -> None:
    status, _ = _run_logged([str(python), "-I", "-m", "venv", str(venv)], log, venv.parent, _INSTALL_S)
    if status != 0:
        raise ToolMissing(
            f"{python} cannot make a virtual environment: {_last_line(log)}", "apt-get install python3-venv"
        )
    install = [str(venv / "bin" / "python"), "-I", "-m", "pip", "install", "--disable-pip-version-check", *requirements]
    status, _ = _run_logged(install, log, venv.parent, _INSTALL_S)
    if status != 0:
        raise ToolFailed(
            f"pip could not install {', '.join(requirements)}: {_last_line(log)}",
            f"check the network and try again (pip's output is in {log})",
        )


def _interpreter(case: Case) -> Path:
    """Return our own interpreter if the case supports it, else a supported one on PATH."""
    ours = Path(getattr(sys, "_base_executable", None) or sys.executable)
    names = [str(ours)] + [f"python{version}" for version in reversed(case.pythons)]
    for name in names:
        path = programs.find(name)
        if path and (not case.pythons or _version(Path(path)) in case.pythons):
            return Path(path)
    raise ToolMissing(
        f"{case.name} needs Python {', '.join(case.pythons)}", "install one of them, so that it is on PATH"
    )


def _version(python: Path) -> Optional[str]:
    """Return a version such as ``3.12``; None when it does not run, such as a version manager's unselected shim."""
    command = [str(python), "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = programs.run("python", command, capture_output=True, timeout=30, check=True, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(done.stdout).strip()


def _run_logged(command: Sequence[str], log: Path, folder: Path, deadline_s: float) -> Tuple[int, Path]:
    """Run a command with all its output in ``log``; return (exit status, log)."""
    with open(log, "ab") as output:
        try:
            done = programs.run(
                "python",
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                folder=str(folder),  # our own
                env=programs.environment("python", programs.for_pip()),
                timeout=deadline_s,
            )
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"{Path(command[0]).name} did not end within {deadline_s:g} s", f"see {log}") from None
        except OSError as exc:
            raise ToolFailed(f"{command[0]} cannot be run: {exc.strerror}") from exc
    return done.returncode, log


def _last_line(log: Path) -> str:
    """Return the reason in a tool's output: its last line with an error mark, else its last line."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "postmortem:"))]
    return (errors or lines or ["no output"])[-1]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock, so that concurrent demos make the environment once."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
