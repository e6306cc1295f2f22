"""File systems of a test's own: a small disk, a read-only one, in a mount namespace that nobody else sees (unshare(1))."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Iterator, List

_SCRIPT = 'set -e; mount --make-rprivate /; sh -c "$1"; echo ready; read line'


class Mounts:
    """``inside`` makes words run where the mounts are; ``seen`` is a path there, as we see it."""

    def __init__(self, holder: int) -> None:
        self._holder = holder

    def inside(self, words: List[str]) -> List[str]:
        return ["nsenter", "-t", str(self._holder), "-m", "--", *words]

    def seen(self, path: Path) -> Path:
        return Path(f"/proc/{self._holder}/root{path}")


@contextlib.contextmanager
def mounted(commands: str) -> Iterator[Mounts]:
    """Runs shell commands that mount something; it is gone when the block ends. Raises OSError where that is forbidden."""
    words = ["unshare", "-m", "sh", "-c", _SCRIPT, "sh", commands]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            raise OSError(f"no mounts of our own here: {holder.stderr.read().strip()}")
        try:
            yield Mounts(holder.pid)
        finally:
            holder.stdin.close()


def allowed() -> bool:
    """Whether this machine lets us mount."""
    try:
        with mounted("mount -t tmpfs none /tmp"):
            return True
    except OSError:
        return False
