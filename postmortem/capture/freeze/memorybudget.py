"""Limits on the memory, disk space and descriptors that a capture takes."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import Iterator, Optional

from ...errors import CaptureFailed
from ...foreign.numbers import is_decimal
from ..procfs import parsers

#: Bytes held in memory at most while a tree is stopped.
HOLD_LIMIT = 1 << 30
#: Bytes held at most where every page was asked for: a copy into memory takes a fraction of the pause of one to a file.
HOLD_ALL = 16 << 30
#: One part in so many of the free memory at most: the target may share our container, and be short of memory.
_SHARE = 4

#: Descriptors reserved for writing a bundle and starting py-spy and gdb.
SPARE_DESCRIPTORS = 8

_CGROUPS = Path("/sys/fs/cgroup")


def take_descriptors() -> None:
    """Raise the soft limit of open files to the hard limit: a tree of hundreds takes several for each process."""
    with contextlib.suppress(OSError, ValueError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def refuse_last_descriptors(descriptor: int) -> None:
    """Raise CaptureFailed when too few descriptors are left for writing the bundle.

    ``descriptor``: the latest that was opened, and so about the largest, since the kernel returns the lowest free
    number.
    """
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and descriptor + SPARE_DESCRIPTORS >= soft:
        raise CaptureFailed(f"postmortem may open at most {soft} files", "run ulimit -n 4096 before starting it")


def memory_to_hold(root: Path = Path("/"), most: int = HOLD_LIMIT) -> int:
    """Return the bytes that may be held, at most ``most``; 0 when the free memory is unknown.

    ``root``: where proc and sys are mounted.
    """
    free = [amount for amount in (_available(root), *_left_in_cgroups(root)) if amount is not None]
    return min(most, max(min(free), 0) // _SHARE) if free else 0


def _available(root: Path) -> Optional[int]:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _left_in_cgroups(root: Path) -> Iterator[int]:
    """Yield what the memory limits of our own control group leave, version 2 or 1.

    Source: Documentation/admin-guide/cgroup-v2.rst.
    """
    base = root / _CGROUPS.relative_to("/")
    for line in _text(root / "proc/self/cgroup").splitlines():
        _number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            folder, limit, usage = base / path.lstrip("/"), "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            folder, limit, usage = base / "memory" / path.lstrip("/"), "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
        if is_decimal(most) and is_decimal(used):
            yield int(most) - int(used)


def _text(path: Path) -> str:
    try:
        return parsers.text(parsers.read(str(path)))
    except OSError:
        return ""
