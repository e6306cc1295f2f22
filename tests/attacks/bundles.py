"""Bundles written by hand: one process, one thread, the stack that py-spy saw of it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

import msgspec

from postmortem.evidence import Gap
from tests.support.capturing import environment
from tests.support.inwords import reason

PID = 7
#: What no report may show.
SECRET = "s3cret-of-root"


def secret(path: Path, mode: int = 0o600) -> Path:
    """A file of root's; each of its lines tells."""
    path.write_text(f"x = '{SECRET}'\n" * 20)
    path.chmod(mode)
    return path


def write_bundle(folder: Path, source: str, **facts: Any) -> Path:
    """A process that is at line 2 of ``source``; ``facts`` go into its process.json."""
    where = {"filename": source, "line": 2}
    frames = [("thread (7): MainThread", {}), ("<module>", where)]
    events = [{"ph": "B", "name": name, "ts": 0, "tid": 1, "args": args} for name, args in frames]
    events += [{"ph": "E", "name": name, "ts": 1_000_000, "tid": 1, "args": {}} for name, _args in reversed(frames)]
    files: Dict[str, Any] = {
        "manifest.json": {"schema": "postmortem.manifest/1", "processes": [PID], "root_pid": PID, "steps": []},
        f"raw/proc/{PID}/process.json": {"pid": PID, "argv": ["python"], "threads": {str(PID): {}}, **facts},
        f"raw/pyspy/{PID}.chrometrace.json": events,
    }
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return folder


def zipped(folder: Path, target: Path) -> Path:
    """The same as one archive; links in it are the files that they lead to."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return target


def postmortem(*words: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """The command line, until it ends."""
    command = [sys.executable, "-m", "postmortem", *words]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=seconds, check=False)


@contextlib.contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[int]:
    """A program, from when it has said "up" until the block ends."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process.pid
        finally:
            process.kill()


_ANALYZE = """
import pathlib, sys
from postmortem import evidence
from postmortem.pipeline import analyze_target
sysroot = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
sys.stdout.buffer.write(evidence.encode(analyze_target(sys.argv[1], sysroot=sysroot)[0]))
"""


def analyzed(target: Path, *sysroot: Path) -> Dict[str, Any]:
    """The evidence of a bundle or core, which must come without complaint: all lines that any report could show."""
    command = [sys.executable, "-c", _ANALYZE, str(target), *map(str, sysroot)]
    done = subprocess.run(command, env=environment(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def reasons(evidence: Dict[str, Any]) -> List[str]:
    """Why facts could not be read, in words."""
    return [reason(msgspec.convert(gap, Gap)) for gap in evidence["gaps"]]


def lines(evidence: Dict[str, Any]) -> str:
    """All source lines, as one text."""
    return json.dumps(evidence["sources"])
