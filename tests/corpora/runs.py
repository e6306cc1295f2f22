"""One run of a case for real: the program, without its labels, under ``postmortem capture`` or to its end by a signal; and
the evidence of it, fit to be published."""

from __future__ import annotations

import contextlib
import hashlib
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import msgspec

from postmortem import evidence as ev
from postmortem import places
from postmortem.errors import PostmortemError
from postmortem.pipeline import analyze_target

from ..support.interpreters import find
from .cases import Case
from .scrub import scrub
from .staging import NotStaged, Stage, staged

TIMED_OUT = 124  # capture's status when the timeout struck
CAPTURE_S = 180  # a capture takes seconds; this one never ends
INSTALL_S = 900
_making = threading.Lock()
#: ast.parse in two threads may fail in both: python/cpython#106905, in 3.11 and 3.12.
parsing = threading.Lock()


class NotRecorded(Exception):
    """One sentence: why a case has no new evidence."""


def interpreter(version: str) -> Path:
    """``version`` as "3.12": pyenv's newest patch release of it, else what PATH has. Raises NotRecorded."""
    found = find(version)
    if found is None:
        raise NotRecorded(f"no Python {version}, neither pyenv's nor on PATH")
    return Path(found)


def environment(base: Path, requirements: Sequence[str]) -> Path:
    """The interpreter of a venv that has the requirements: made once, then cached. ``base`` itself without any."""
    if not requirements:
        return base
    key = hashlib.sha256("\n".join([str(base), *requirements]).encode()).hexdigest()[:16]
    venv = places.cache() / "venvs" / key
    python, done = venv / "bin" / "python", venv / ".complete"
    with _making:
        if not done.exists():
            shutil.rmtree(venv, ignore_errors=True)  # what an interrupted run left
            try:
                _run([str(base), "-m", "venv", str(venv)])
                pip = [str(python), "-m", "pip"]
            except NotRecorded:  # no ensurepip, as in Debian's packages: another pip can install there
                shutil.rmtree(venv, ignore_errors=True)
                _run([str(base), "-m", "venv", "--without-pip", str(venv)])
                pip = [sys.executable, "-m", "pip", "--python", str(python)]
            _run([*pip, "install", "--disable-pip-version-check", "--quiet", *requirements])
            done.touch()
    return python


def _run(command: List[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.CalledProcessError as exc:
        said = exc.stderr.strip() or exc.stdout.strip()
        raise NotRecorded(f"{' '.join(command)}: {said[-300:]}") from exc


@contextlib.contextmanager
def peer(case: Case) -> Iterator[List[str]]:
    """The other side of a case's connections, outside the tree that is captured; yields its address as an argument."""
    if case.peer is None:
        yield []
        return
    command = [sys.executable, str(case.folder / case.peer)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield [process.stdout.readline().strip()]
        finally:
            process.kill()


def record(case: Case, version: str, beside: str = "") -> bytes:
    """Return scrubbed evidence of one run; ``beside``: code that starts with every interpreter of it. Raises NotRecorded."""
    if case.record == "synthesised":
        return _compact(runpy.run_path(str(case.folder / "evidence.py"))["evidence"]())
    base = interpreter(version)
    python = environment(base, case.requirements)
    with contextlib.ExitStack() as stack:
        outer = Path(tempfile.mkdtemp(prefix="postmortem-case-"))
        stack.callback(shutil.rmtree, outer, ignore_errors=True)  # a child may still write there
        address = stack.enter_context(peer(case))
        try:
            stage = stack.enter_context(staged(case.within))
        except NotStaged as exc:
            raise NotRecorded(str(exc)) from exc
        scratch = outer / "app" / "scratch"
        scratch.mkdir(parents=True)
        case.copy_to(outer / "app")
        joined: List[str] = []
        if beside:
            (outer / "beside").mkdir()
            (outer / "beside" / "sitecustomize.py").write_text(beside, "utf-8")
            joined = ["env", f"PYTHONPATH={outer / 'beside'}"]
        program = [*stage.enter, *joined, str(python), "program.py", *case.args, *address]
        taken = {"capture": _captured, "core": _left}[case.record]
        raw = taken(case, stage, outer, program)
        return _compact(ev.decode(scrub(raw, _folders(outer, base, python))))


def _compact(evidence: ev.Evidence) -> bytes:
    """Without the white space that makes a third of a bundle's evidence: there are hundreds of these."""
    return msgspec.json.format(ev.encode(evidence), indent=-1) + b"\n"


def _surroundings(stage: Stage, outer: Path) -> Dict[str, str]:
    scratch = str(outer / "app" / "scratch")
    return {**os.environ, **stage.environment, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"}


def _captured(case: Case, stage: Stage, outer: Path, program: List[str]) -> bytes:
    """evidence.json of the tree under ``capture``; one that will be frozen runs by itself and is looked at by its pid,
    because nobody can end it."""
    bundle = outer / "bundle"
    command = [*stage.session, sys.executable, "-m", "postmortem", "capture", "-o", str(bundle)]
    running = None
    if stage.freeze is None:
        command += ["-t", f"{case.timeout:g}", "--", *program]
    else:
        running = subprocess.Popen(
            program,
            cwd=outer / "app",
            env=_surroundings(stage, outer),
            stdin=stage.stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(case.timeout)
        stage.freeze()
        command += ["--pid", str(running.pid)]
    done = subprocess.run(
        command,
        cwd=outer / "app",
        env=_surroundings(stage, outer),
        stdin=stage.stdin,
        capture_output=True,
        text=True,
        timeout=CAPTURE_S,
        check=False,
    )
    if done.returncode != (TIMED_OUT if running is None else 0):
        raise NotRecorded(f"capture ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    if not (bundle / "evidence.json").exists():
        raise NotRecorded(f"no evidence: {done.stderr.strip()[-300:]}")
    return (bundle / "evidence.json").read_bytes()


def _left(case: Case, stage: Stage, outer: Path, program: List[str]) -> bytes:
    """Evidence of the core that the program, or one of its children, leaves in its working directory."""
    app = outer / "app"
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "/" in pattern or pattern.startswith("|"):
        raise NotRecorded(f"the kernel's core_pattern is {pattern!r}: cores do not land in the working directory")

    # a run in the background has SIGQUIT and SIGINT ignored, and so would the program
    unlimited = ["env", "--default-signal", "/bin/sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh"]
    process = subprocess.Popen(
        [*unlimited, *program],
        cwd=app,
        env=_surroundings(stage, outer),
        stdin=stage.stdin,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(case.timeout)
    except subprocess.TimeoutExpired:
        if case.signal is not None:
            process.send_signal(getattr(signal, f"SIG{case.signal}"))
            process.wait(60)
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    cores = sorted(app.glob("core*"), key=lambda path: path.stat().st_mtime)
    if not cores:
        raise NotRecorded(f"the program ended with {process.returncode} and left no core")
    try:
        with parsing:
            found, _diagnosis = analyze_target(str(cores[-1]))
    except PostmortemError as exc:
        raise NotRecorded(str(exc)) from exc
    return ev.encode(found)


def _folders(outer: Path, base: Path, python: Path) -> Dict[str, str]:
    """Where things lay → what the published evidence calls it. Both spellings, where a link is in the way."""
    installed = base.resolve().parent.parent
    names = {outer / "app": "/app", outer: "/scratch", installed: "/python"}
    if python != base:
        names[python.parent.parent] = "/venv"
    system = {Path("/"), Path("/usr"), Path("/usr/local")}  # no secret, and a part of many paths
    both = [(spelling, name) for folder, name in names.items() for spelling in (folder, folder.resolve())]
    return {str(folder): name for folder, name in both if folder not in system}
