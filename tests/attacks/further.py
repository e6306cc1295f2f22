"""What the further attacks share: a directory of another user's, a file of root's beside it, and what must hold after each."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from tests.support.capturing import state

from .bundles import SECRET, postmortem, secret

OTHER = 65534
AS_OTHER: Dict[str, Any] = {"user": OTHER, "group": OTHER, "extra_groups": []}
PYTHON = "/usr/bin/python3"  # one that every user may run
#: A capture or an analysis of so little takes some seconds of processor time; what takes longer would never end.
CPU_BOUND_S = 40.0
#: The same on the clock, where other programs may have most of the machine.
BOUND_S = 300.0
#: What a defect looks like, whatever its cause: a traceback, or a step's own word for one.
_DEFECTS = ("Traceback", "a defect of postmortem", "inside postmortem", "the diagnosis failed", "this is a defect")


class Place(NamedTuple):
    """``theirs`` is the other user's; ``ours`` is root's, with a file that only root may read."""

    base: Path
    theirs: Path
    ours: Path
    hidden: Path


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """A new one, which every user may enter."""
    with tempfile.TemporaryDirectory(prefix="postmortem-test-") as name:
        base = Path(name)
        base.chmod(0o755)
        found = Place(base, base / "theirs", base / "ours", base / "ours" / "secret.py")
        found.theirs.mkdir()
        os.chown(found.theirs, OTHER, OTHER)
        found.ours.mkdir()
        secret(found.hidden)
        yield found
        assert [path.name for path in found.ours.iterdir()] == ["secret.py"], "something was written among root's files"
        assert found.hidden.read_text().startswith(f"x = '{SECRET}'\n") and found.hidden.stat().st_mode & 0o777 == 0o600


def give(path: Path) -> Path:
    """To the other user, with all that is below it."""
    for each in (path, *path.rglob("*")):
        os.lchown(each, OTHER, OTHER)
    return path


def harmless(done: subprocess.CompletedProcess[str], statuses: Sequence[int]) -> None:
    """One of the statuses, no defect, nothing of root's, and nothing that a terminal obeys."""
    said = done.stdout + done.stderr
    assert done.returncode in statuses, (done.returncode, said[-3000:])
    assert not [word for word in _DEFECTS if word in said], said[-3000:]
    assert SECRET not in said
    assert not [ch for ch in said if ch in "\x1b\x07\x08\x7f\x9b\u202e" or "\x80" <= ch < "\xa0"], said[-3000:]


def kept(bundle: Path, programs: bool = True) -> str:
    """All that a bundle holds, but for memory, or also for programs and libraries; each file that opens is a plain one."""
    texts: List[str] = []
    for path in sorted(bundle.rglob("*")):
        assert not path.is_symlink(), path
        if path.is_file() and path.suffix != ".core":
            read = path.read_bytes()
            if programs or not read.startswith(b"\x7fELF"):
                texts.append(read.decode("utf-8", "replace"))
    return "\n".join(texts)


def _children_cpu_s() -> float:
    """Return the processor time, in seconds, of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def captured(pid: int, bundle: Path, *words: str, statuses: Sequence[int] = (0,), lives: bool = True) -> Dict[str, Any]:
    """A capture of a process; its report, empty without one. The process lives on and is not left stopped."""
    options = ("--observe", "0.1", "-o", str(bundle), *words)
    before = _children_cpu_s()
    done = postmortem("capture", "--pid", str(pid), *options, seconds=BOUND_S)
    assert _children_cpu_s() - before < CPU_BOUND_S
    harmless(done, statuses)
    if lives:
        assert state(pid) not in (None, "Z", "X", "T", "t")
    if not (bundle / "manifest.json").exists():
        assert done.returncode != 0
        return {}
    everything = kept(bundle)
    assert SECRET not in everything
    said = kept(bundle, programs=False)  # an interpreter's own file has such words
    assert not [word for word in _DEFECTS if word in said]
    report: Dict[str, Any] = json.loads((bundle / "report.json").read_bytes())
    return report


@contextlib.contextmanager
def running(place: Place, program: str, *words: str, python: Sequence[str] = (PYTHON,), **ids: Any) -> Iterator[int]:
    """A program in the other user's directory, and as that user, until the block ends; it has said "up" by then."""
    app = place.theirs / "app.py"
    app.write_text(program)
    os.chown(app, OTHER, OTHER)
    with subprocess.Popen(
        [*python, str(app), *words],
        stdout=subprocess.PIPE,
        cwd=place.theirs,
        text=True,
        start_new_session=True,
        **(ids or AS_OTHER),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.endswith("up\n"), line
            yield int(line.split()[0]) if line != "up\n" else process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
