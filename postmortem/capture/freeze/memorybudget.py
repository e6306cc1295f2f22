"""How much a capture may hold in memory and put on the disk without becoming the next problem."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import Iterator, Optional

from ...errors import CaptureFailed
from ...foreign.numbers import is_decimal
from ..procfs import parsers

#: Up to so much is held in memory while a tree is stopped.
HOLD_LIMIT = 1 << 30
#: Where the user asked for every page: a copy in memory takes a fraction of the pause that one to a file does.
HOLD_ALL = 16 << 30
#: Of what is free, we take this share at most: the target may be in the same container, and short of memory.
_SHARE = 4

#: Files that writing a bundle and starting py-spy and gdb may take.
SPARE_DESCRIPTORS = 8

_CGROUPS = Path("/sys/fs/cgroup")


def take_descriptors() -> None:
    """Opens as many files as the hard limit lets us: a tree of hundreds takes some for each process."""
    with contextlib.suppress(OSError, ValueError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def refuse_last_descriptors(descriptor: int) -> None:
    """``descriptor`` is the latest that was opened, and so about the largest: the kernel gives out the lowest. Raises
    CaptureFailed when so few are left that the bundle itself could not be written."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and descriptor + SPARE_DESCRIPTORS >= soft:
        raise CaptureFailed(f"postmortem may open no more than {soft} files", "ulimit -n 4096, before it is started")


def memory_to_hold(root: Path = Path("/"), most: int = HOLD_LIMIT) -> int:
    """Bytes that may be held, ``most`` at the most; 0 when nothing says how much is free. ``root`` is where proc and sys are
    mounted."""
    free = [amount for amount in (_available(root), *_left_in_cgroups(root)) if amount is not None]
    return min(most, max(min(free), 0) // _SHARE) if free else 0


def _available(root: Path) -> Optional[int]:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _left_in_cgroups(root: Path) -> Iterator[int]:
    """What the limits of our own control group leave, version 2 or 1 (Documentation/admin-guide/cgroup-v2.rst)."""
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
