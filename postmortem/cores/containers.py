"""Containers that crashed programs ran in: by what the control group and its first process are called."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Optional, Sequence

#: docker-ID.scope, /docker/ID, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope, /kubepods/…/ID: all have an id of 64
#: hexadecimal digits, of which twelve are shown everywhere.
_ID = re.compile(r"(?<![0-9a-f])([0-9a-f]{12})[0-9a-f]{52}(?![0-9a-f])")
#: systemd-nspawn's machine-NAME.scope, LXC's /lxc/NAME, /lxc.payload.NAME.
_NAMED = re.compile(r"/(?:machine-([^/]+)\.scope|lxc(?:\.payload\.|/)([^/]+))")


def name(cgroup: Optional[str], first_program: Sequence[str]) -> Optional[str]:
    """What a container is called; None when there is no sign of one. first_program: the command line of its leader."""
    ident = _ID.search(cgroup or "")
    if ident:
        return ident[1]
    named = _NAMED.search(cgroup or "")
    if named:
        return named[1] or named[2]
    return Path(first_program[0]).name or None if first_program else None


def root(cgroup: Optional[str], boot: Optional[str], proc: str = "/proc") -> Optional[Path]:
    """The root directory of a container that still runs, through another process of the same control group; None when
    there is none, the machine has been started anew since, or its root may not be looked into."""
    if not cgroup or cgroup == "/" or _read(f"{proc}/sys/kernel/random/boot_id").replace("-", "") != boot:
        return None
    for process in sorted(path for path in Path(proc).iterdir() if path.name.isdigit()):
        groups = [line.split(":", 2)[-1] for line in _read(f"{process}/cgroup").splitlines()]
        inside = process / "root"
        if cgroup in groups and _another(inside, proc):
            return inside
    return None


def _another(inside: Path, proc: str) -> bool:
    try:
        return not os.path.samestat(inside.stat(), Path(f"{proc}/self/root").stat())
    except OSError:
        return False


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(64 << 10).strip()
    except OSError:
        return ""
