"""Clean cores to damage: of ``target.py`` under one interpreter each, taken once and kept.

A seed means the same damage only on the same core, so they stay in a folder outside the tree until it is deleted.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Optional

from ...interpreters import wanted
from ...support.capturing import DRIVER, HANG_S, finished, start

TARGET = Path(__file__).with_name("target.py")
KINDS = ("own", "kernel")


class Base(NamedTuple):
    python: str  # id in the matrix of interpreters
    kind: str  # who wrote it: "own" (postmortem capture) | "kernel"
    core: Path


class NotTaken(Exception):
    """No core could be had; says why."""


def home() -> Path:
    """Where cores are kept; POSTMORTEM_FUZZ chooses another folder."""
    chosen = os.environ.get("POSTMORTEM_FUZZ")
    return Path(chosen).absolute() if chosen else wanted.home().parent / "fuzz"


def base(python: str, kind: str = "own", folder: Optional[Path] = None) -> Base:
    """The clean core of an interpreter, taken now if there is none yet. Raises NotTaken."""
    found = wanted.find(wanted.BY_ID[python])
    if found is None:
        raise NotTaken(wanted.missing(wanted.BY_ID[python]))
    digest = hashlib.sha256(TARGET.read_bytes() + found.path.encode()).hexdigest()[:12]
    place = (folder or home()) / f"{python}-{kind}-{digest}"
    core = place / "core"
    if not core.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=str(place.parent)) as scratch:
            taken = (_own if kind == "own" else _kernel)(found.path, Path(scratch))
            place.mkdir(exist_ok=True)
            taken.replace(core)
    return Base(python, kind, core)


def _started(python: str, folder: Path) -> subprocess.Popen[str]:
    """The target, parked. One arena, so that its cores are small."""
    script = folder / "target.py"
    shutil.copy(str(TARGET), str(script))
    process = subprocess.Popen(
        [python, str(script)],
        cwd=str(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    assert process.stdout is not None
    resource.prlimit(process.pid, resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    said = process.stdout.readline().strip()
    if said != "ready":
        raise NotTaken(f"the target ended under {python} with {process.wait(HANG_S)}")
    return process


def _own(python: str, folder: Path) -> Path:
    process = _started(python, folder)
    try:
        bundle = folder / "bundle"
        words = ["--pid", str(process.pid), "--observe", "0.1", "-o", str(bundle)]
        done = finished(start(*words, driver=DRIVER), bundle)
    finally:
        process.kill()
        process.communicate()
    core = bundle / "raw" / "cores" / f"{process.pid}.core"
    if not core.is_file():
        raise NotTaken(f"the capture wrote no core: {done.stderr.strip()}")
    return core


def _kernel(python: str, folder: Path) -> Path:
    process = _started(python, folder)
    process.send_signal(signal.SIGABRT)
    process.wait(HANG_S)
    process.communicate()
    core = next(iter(folder.glob("core*")), None)
    if core is None:
        raise NotTaken("the kernel wrote no core into the working directory; see /proc/sys/kernel/core_pattern")
    return core


def stored_ranges(core: Path) -> List[range]:
    """Offsets of what the file really holds, its holes left out."""
    found, at = [], 0
    fd = os.open(str(core), os.O_RDONLY)
    try:
        end = os.fstat(fd).st_size
        while at < end:
            try:
                start = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                break
            at = os.lseek(fd, start, os.SEEK_HOLE)
            found.append(range(start, at))
    finally:
        os.close(fd)
    return found
