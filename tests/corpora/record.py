"""Records evidence.json of corpus cases anew: runs each program, without its labels, under `postmortem capture`.

    python -m tests.corpora.record [--cases GLOB] [--python X.Y] [--check]

Prints the verdict against the label, case by case. The exit status is 1 when a case could not be recorded or the
diagnosis does not fit its label. With --check nothing is written.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

from postmortem import evidence as ev
from postmortem import places
from postmortem.classify.engine import classify

from ..live.interpreters import find
from .cases import Case, all_cases
from .judge import judge
from .scrub import scrub

TIMED_OUT = 124  # capture's status when the timeout struck
CAPTURE_S = 180  # a capture takes seconds; this one never ends
INSTALL_S = 600


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
    if not done.exists():
        shutil.rmtree(venv, ignore_errors=True)  # what an interrupted run left
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        for command in ([str(base), "-m", "venv", str(venv)], [*pip, *requirements]):
            try:
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
            except subprocess.CalledProcessError as exc:
                raise NotRecorded(f"{' '.join(command)}: {exc.stderr.strip()[-300:]}") from exc
        done.touch()
    return python


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


def record(case: Case, version: str) -> bytes:
    """Scrubbed evidence of one run. Raises NotRecorded."""
    base = interpreter(version)
    python = environment(base, case.requirements)
    with tempfile.TemporaryDirectory() as outer, peer(case) as address:
        app, bundle, scratch = Path(outer, "app"), Path(outer, "bundle"), Path(outer, "app", "scratch")
        scratch.mkdir(parents=True)
        case.copy_to(app)
        command = [sys.executable, "-m", "postmortem", "capture", "-t", f"{case.timeout:g}", "-o", str(bundle), "--"]
        command += [str(python), "program.py", *case.args, *address]
        surroundings = {**os.environ, "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command,
            cwd=app,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CAPTURE_S,
            check=False,
        )
        if done.returncode != TIMED_OUT:
            raise NotRecorded(f"capture ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        written = bundle / "evidence.json"
        if not written.exists():
            raise NotRecorded(f"no evidence: {done.stderr.strip()[-300:]}")
        raw = written.read_bytes()
        return ev.encode(ev.decode(scrub(raw, _folders(Path(outer), base, python))))


def _folders(outer: Path, base: Path, python: Path) -> Dict[str, str]:
    """Where things lay → what the published evidence calls it. Both spellings, where a link is in the way."""
    installed = base.resolve().parent.parent
    names = {outer / "app": "/app", outer: "/work", installed: "/python"}
    if python != base:
        names[python.parent.parent] = "/venv"
    system = {Path("/"), Path("/usr"), Path("/usr/local")}  # no secret, and a part of many paths
    both = [(spelling, name) for folder, name in names.items() for spelling in (folder, folder.resolve())]
    return {str(folder): name for folder, name in both if folder not in system}


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpora.record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default="*", metavar="GLOB", help="pattern/case, such as 'sleeping/*'")
    parser.add_argument("--python", metavar="X.Y", help="instead of the version in case.toml")
    parser.add_argument("--check", action="store_true", help="compare with the labels, write nothing")
    options = parser.parse_args(argv)
    chosen = [case for case in all_cases() if fnmatch.fnmatch(case.name, options.cases)]
    if not chosen:
        parser.error(f"no case is named {options.cases}")
    bad = 0
    for case in chosen:
        version = options.python or case.recorded_with
        try:
            recorded = record(case, version)
        except (NotRecorded, subprocess.TimeoutExpired) as exc:
            print(f"{case.name} ({version}): NOT RECORDED: {exc}", flush=True)
            bad += 1
            continue
        if not options.check:
            case.evidence.write_bytes(recorded)
        verdict = judge(case, classify(ev.decode(recorded)))
        culprit = {True: "culprit found", False: "culprit missed", None: ""}[verdict.culprit]
        said = f"{verdict.verdict} ({verdict.confidence})" if verdict.verdict else "silent"
        told = [part for part in (said, culprit, verdict.remarks) if part]
        print(f"{case.name} ({version}): {', '.join(told)}", flush=True)
        bad += not verdict.right
    print(f"{len(chosen) - bad} of {len(chosen)} as labelled")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
