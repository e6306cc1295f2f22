"""Processes in namespaces of their own, with another root: a container without a container engine.

The root holds an interpreter and what it links. Under the same names this machine has *other* files: a reader that takes
the host's finds a wrong program, wrong symbols and wrong source lines.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Iterator, List, NamedTuple

import pytest

from .capturing import HANG_S, environment
from .required import lacking

#: Two threads that want each other's lock, a child, and the main thread, which waits for the child.
PROGRAM = """
import subprocess, sys, threading
first, second, met = threading.Lock(), threading.Lock(), threading.Barrier(3)
def take(one, other):
    with one:
        met.wait()
        with other:
            pass
for pair in ((first, second), (second, first)):
    threading.Thread(target=take, args=pair, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
met.wait()
print("ready", flush=True)
child.wait()
"""
#: As root of the new namespaces: the root, how its processes come to have it, their interpreter's home, the command.
ENTER = """
set -e
root=$1 how=$2 home=$3; shift 3
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
export LD_LIBRARY_PATH="$home/lib" PYTHONHOME="$home"
if [ "$how" = chroot ]; then exec chroot . "$@"; fi
pivot_root . old
cd /
exec "$@"
"""
_LEFT_OUT = shutil.ignore_patterns(
    "test", "site-packages", "__pycache__", "config-*", "idlelib", "ensurepip", "lib2to3", "*.a"
)


class Root(NamedTuple):
    """``path``: of the folder here; ``home`` and ``program``: names inside."""

    path: Path
    home: Path
    python: Path
    program: Path

    def command(self, how: str) -> List[str]:
        """Return the command that runs the program with this root; ``how``: chroot or pivot_root."""
        unshare = ["unshare", "--pid", "--mount", "--user", "--map-root-user", "--fork", "--kill-child"]
        return [
            *unshare,
            "sh",
            "-c",
            ENTER,
            "sh",
            str(self.path),
            how,
            str(self.home),
            str(self.python),
            str(self.program),
        ]


@pytest.fixture(scope="module", name="root")
def other_root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The tests' own interpreter with its library and its standard library, in a tree of its own; decoys beside it."""
    probe = ["unshare", "--pid", "--mount", "--user", "--map-root-user", "--fork", "true"]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        message = "no user namespaces here: sysctl kernel.unprivileged_userns_clone=1, and unshare of util-linux"
        lacking(message)
    folder = tmp_path_factory.mktemp("other")
    home, inside = folder / "home", folder / "root"
    for name in ("proc", "tmp", "old", f".{home}/bin", f".{home}/lib", f".{folder}/work"):
        (inside / name).mkdir(parents=True, exist_ok=True)
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    found = Root(inside, home, home / "bin" / base.name, folder / "work" / "program.py")
    stdlib = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib, f"{inside}{home}/lib/{stdlib.name}", ignore=_LEFT_OUT, symlinks=True)
    shutil.copy(base, f"{inside}{found.python}")
    Path(f"{inside}{found.program}").write_text(PROGRAM)
    for library in _libraries(base):
        there = Path(f"{inside}{home}/lib/{library.name}" if "python" in library.name else f"{inside}{library}")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, there)
        if "python" in library.name:
            decoy = home / "lib" / library.name
            decoy.parent.mkdir(parents=True)
            shutil.copy("/bin/sh", decoy)
    (home / "bin").mkdir(parents=True)
    shutil.copy("/bin/sh", found.python)
    found.program.parent.mkdir()
    found.program.write_text("# not what runs there\n" * 20)
    return found


def _libraries(program: Path) -> List[Path]:
    """Return the shared libraries that ldd lists."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    words = [word for line in said.splitlines() for word in line.split() if word.startswith("/")]
    return [Path(word) for word in words]


@contextlib.contextmanager
def running(root: Root, how: str) -> Iterator[int]:
    """The process inside, by our number for it."""
    with subprocess.Popen(root.command(how), stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            assert started.stdout.readline() == "ready\n"
            yield int(Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text())
        finally:
            started.kill()


def capture(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a capture to its end."""
    command = [sys.executable, "-m", "postmortem", "capture", "--observe", "2", *words]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False)
