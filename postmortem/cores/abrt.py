"""abrt's problem directories (``/var/spool/abrt/ccpp-*``) → the core inside.

Layout: abrt's doc/problem-directory items and src/hooks/abrt-hook-ccpp.c (2.14): a file an item, the core in
``coredump``. ``environ`` is never read.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Iterator, Optional

from ..errors import CoreGone, PermissionRefused
from ..evidence import Gap, Origin
from .store import Stored, exists, readable, signal_name, whose, words

_MARKS = ("analyzer", "type", "reason", "time")
_CORES = ("coredump", "coredump.zst", "coredump.lz4", "coredump.xz", "coredump.gz")
_MOST = 64 << 10
_SIGNAL = re.compile(r"killed by SIG([A-Z0-9]+)|killed by signal (\d{1,3})")
_KEEPS = "abrt keeps at most MaxCrashReportsSize of /etc/abrt/abrt.conf, and abrt-action-trim-files removes the largest"


def is_problem(folder: Path) -> bool:
    """Has a directory the items that all of abrt's have?"""
    try:
        return sum((folder / mark).is_file() for mark in _MARKS) >= 2 and (
            (folder / "time").is_file() or any((folder / name).is_file() for name in _CORES)
        )
    except OSError:
        return False


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Stored]:
    """The core inside. Raises CoreGone, PermissionRefused, NotACore."""
    origin = _origin(folder)
    core = next((folder / name for name in _CORES if exists(folder / name)), folder / _CORES[0])
    if not exists(core) and (_item(folder, "type") or _item(folder, "analyzer") or "CCpp") != "CCpp":
        kind = _item(folder, "type") or _item(folder, "analyzer")
        raise CoreGone(f"{folder} is a problem of kind {kind}, which has no core", "its file backtrace tells what happened")
    readable(core, whose(origin), _KEEPS)
    gaps = []
    root = _root(folder)
    if origin.container is not None and root is None:
        reason = f"it ran in a container ({origin.container}), whose program and libraries are not those of this machine"
        gaps.append(Gap("core", str(core), reason, "pass --sysroot with the container's files, or --exe"))
    yield Stored(core, str(core), origin, words(_item(folder, "cmdline")), _item(folder, "executable"), root, tuple(gaps))


def _root(folder: Path) -> Optional[Path]:
    """Of the container, where its files still lie."""
    root = _item(folder, "rootdir")
    return Path(root) if root and root != "/" and exists(Path(root)) else None


def _origin(folder: Path) -> Origin:
    exe, moment = _item(folder, "executable"), _item(folder, "time") or ""
    pid = _item(folder, "global_pid") or _item(folder, "pid") or ""
    found = _SIGNAL.search(_item(folder, "reason") or "")
    container = _item(folder, "container_id") or _item(folder, "container_uuid")
    return Origin(
        store="abrt",
        core=str(folder),
        pid=int(pid) if re.fullmatch(r"\d{1,10}", pid) else None,
        command=Path(exe).name if exe else None,
        signal=(f"SIG{found[1]}" if found[1] else signal_name(int(found[2]))) if found else None,
        time=float(moment) if re.fullmatch(r"\d{1,12}", moment) else None,
        hostname=_item(folder, "hostname"),
        container=container[:12] if container else None,
    )


def _item(folder: Path, name: str) -> Optional[str]:
    try:
        with (folder / name).open("rb") as file:
            return file.read(_MOST).decode("utf-8", "replace").strip() or None
    except PermissionError:
        raise PermissionRefused(f"{folder} may not be read by this user", "run as root, or as its user") from None
    except OSError:
        return None
