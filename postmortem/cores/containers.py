"""Containers in which programs crashed, identified by their control group or their first process.

Their root directories are opened by a child with a deadline: one may lie on a user-space file system that never
responds.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence, Tuple

from ..foreign.children import Child
from ..foreign.kinds import may_block
from ..foreign.numbers import is_decimal
from ..foreign.ways import walk

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_DEADLINE_S = 5.0
_MOST_PROCESSES = 1 << 22  # the kernel's largest PID

#: Control groups with an id of 64 hexadecimal digits, of which twelve are shown: docker-ID.scope, /docker/ID,
#: cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope, /kubepods/…/ID.
_ID = re.compile(r"(?<![0-9a-f])([0-9a-f]{12})[0-9a-f]{52}(?![0-9a-f])")
#: Control groups with a name: systemd-nspawn's machine-NAME.scope, LXC's /lxc/NAME, /lxc.payload.NAME.
_NAMED = re.compile(r"/(?:machine-([^/]+)\.scope|lxc(?:\.payload\.|/)([^/]+))")


def name(cgroup: Optional[str], first_program: Sequence[str]) -> Optional[str]:
    """Return the name of a container; None without any sign of one.

    ``first_program``: the command line of its first process.
    """
    ident = _ID.search(cgroup or "")
    if ident:
        return ident[1]
    named = _NAMED.search(cgroup or "")
    if named:
        return named[1] or named[2]
    return Path(first_program[0]).name or None if first_program else None


def root(cgroup: Optional[str], boot: Optional[str], named: Optional[str] = None, proc: str = "/proc") -> Optional[int]:
    """Return an O_PATH descriptor of a container's root directory, which the caller closes; None if there is none.

    - ``named``: path of the directory, believed if every link on the way is root's or ours
    - ``cgroup``, ``boot``: else, the root directory of another process in the same control group, if the machine was
      not rebooted since
    - ``proc``: where procfs is mounted

    None also when the directory cannot be read.
    """
    request = {"cgroup": cgroup, "boot": boot, "named": named, "proc": proc}
    try:
        with Child(_serve) as child:
            return child.ask(request, time.monotonic() + _DEADLINE_S).descriptor
    except OSError:
        return None


def _serve(request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
    found = _named_root(request["named"]) if request["named"] else None
    if found is None:
        found = _running_root(request["cgroup"], request["boot"], request["proc"])
    return found is not None, (), found


def _named_root(path: str) -> Optional[int]:
    """Open a directory by its path; None for one on a file system that may never respond."""
    try:
        descriptor = walk(path) if path.startswith("/") and "\0" not in path else None
    except OSError:
        return None
    return _fit(descriptor)


def _fit(descriptor: Optional[int]) -> Optional[int]:
    if descriptor is None:
        return None
    try:
        if not may_block(descriptor):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _running_root(cgroup: Optional[str], boot: Optional[str], proc: str) -> Optional[int]:
    if not cgroup or cgroup == "/" or _read(f"{proc}/sys/kernel/random/boot_id").replace("-", "") != boot:
        return None
    with os.scandir(proc) as entries:
        pids = [entry.name for entry, _count in zip(entries, range(_MOST_PROCESSES)) if is_decimal(entry.name)]
    for pid in sorted(pids):
        groups = [line.split(":", 2)[-1] for line in _read(f"{proc}/{pid}/cgroup").splitlines()]
        found = _another(f"{proc}/{pid}/root", proc) if cgroup in groups else None
        if found is not None:
            return found
    return None


def _another(inside: str, proc: str) -> Optional[int]:
    """Open a root directory; None if it is our own."""
    try:
        descriptor = _fit(os.open(inside, _FOLDER))
        if descriptor is None:
            return None
        if not os.path.samestat(os.fstat(descriptor), os.stat(f"{proc}/self/root")):  # noqa: PTH116
            return descriptor
        os.close(descriptor)
    except OSError:
        pass
    return None


def _read(path: str) -> str:
    """Read a file of the kernel."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(64 << 10).strip()
    except OSError:
        return ""
