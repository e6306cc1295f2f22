"""Control groups of the tree: throttling, freezer and limits, as the kernel's files show them.

The limits of every group above a process's own apply to it too, so all levels up to the mount are read.

Sources:
- Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/{freezer-subsystem,memory}.rst; scheduler/sched-bwc.rst
- proc_pid_mountinfo(5) and cgroups(7), "/proc/pid/cgroup": how a path there leads to a folder
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from . import parsers

#: Files read of a group, by hierarchy: "" is version 2, else the controller of a version 1 hierarchy.
_FILES: Dict[str, Tuple[str, ...]] = {
    "": (
        "cpu.stat", "cpu.max", "cgroup.freeze", "cgroup.events", "memory.max", "memory.high", "memory.current",
        "memory.events", "memory.stat", "cpu.pressure", "memory.pressure", "io.pressure",
    ),
    "cpu": ("cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "freezer": ("freezer.state",),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.failcnt", "memory.oom_control", "memory.stat"),
}  # fmt: skip
#: Rows kept of long files: pages read again soon after their eviction; for version 1, whose plain rows omit child
#: groups, their sums.
_ROWS = {"memory.stat": ("workingset_refault_", "workingset_refault ", "total_workingset_refault")}
_MOST_LEVELS = 32
#: Number of distinct groups, levels included: a tree has a handful, but a hostile one may have thousands.
_MOST_GROUPS = 256
_SHORT = 1 << 14  # bytes of any of the files
_ESCAPE = re.compile(r"\\([0-7]{3})")

Texts = Dict[str, str]  # file → its content
Place = Tuple[str, str]  # (hierarchy, path in it): "" or a controller, "/user.slice"


class Mount(NamedTuple):
    """A mounted hierarchy; ``root``: the group that appears at ``point`` (in a container often its own part only)."""

    root: str
    point: str


def mounts(mountinfo: str) -> Dict[str, Mount]:
    """Return hierarchy → its mount, from /proc/PID/mountinfo; of several mounts, the one nearest to the root group."""
    found: Dict[str, Mount] = {}
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if not dash or len(fields) < 5 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        mount = Mount(_unescaped(fields[3]), _unescaped(fields[4]))
        options = kind[2].split(",") if len(kind) > 2 else []
        for name in [""] if kind[0] == "cgroup2" else [c for c in _FILES if c and c in options]:
            if name not in found or len(mount.root) < len(found[name].root):
                found[name] = mount
    return found


def places(lines: Iterable[str]) -> List[Place]:
    """Return the groups of a process, from the lines of its /proc/PID/cgroup."""
    found = []
    for line in lines:
        _number, _colon, rest = line.partition(":")
        controllers, _colon, path = rest.partition(":")
        names = [""] if controllers == "" else [c for c in controllers.split(",") if c in _FILES and c]
        found += [(name, path) for name in names]
    return found


def folder(mount: Mount, path: str) -> Optional[str]:
    """Return the folder with a group's files; None when it lies outside of the mount."""
    inside = path if mount.root == "/" else path[len(mount.root) :] if _below(path, mount.root) else None
    if inside is None or ".." in inside.split("/"):
        return None
    return mount.point.rstrip("/") + inside.rstrip("/")


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


class Groups:
    """The groups of a tree at both ends of a window; each is read once, however many processes are in it."""

    def __init__(self, found: Optional[Dict[str, Mount]] = None) -> None:
        self._mounts = own_mounts() if found is None else found
        self._texts: Dict[Place, Dict[str, Texts]] = {}

    def add(self, found: Iterable[Place]) -> None:
        """Add groups of a process and all groups above them."""
        for place in found:
            for level in _levels(place):
                if level not in self._texts and len(self._texts) < _MOST_GROUPS:
                    self._texts[level] = {"before": self._read(level)}

    def finish(self) -> None:
        """Read all groups again, at the end of the window."""
        for place, ends in self._texts.items():
            ends["after"] = self._read(place)

    def as_json(self) -> Dict[str, Dict[str, Dict[str, Texts]]]:
        """Return hierarchy → path → "before" and "after" → file → content.

        Groups outside of the mount are left out; one at the top has few files or none.
        """
        found: Dict[str, Dict[str, Dict[str, Texts]]] = {}
        for (hierarchy, path), ends in self._texts.items():
            if self._folder((hierarchy, path)) is not None:
                found.setdefault(hierarchy, {})[path] = ends
        return found

    def _read(self, place: Place) -> Texts:
        base = self._folder(place)
        return {} if base is None else read_texts(base, _FILES[place[0]])

    def _folder(self, place: Place) -> Optional[str]:
        mount = self._mounts.get(place[0])
        found = folder(mount, place[1]) if mount else None
        return found if found is not None and os.access(found, os.R_OK) else None


def read_texts(base: str, names: Iterable[str]) -> Texts:
    """Return the content of the readable files in a folder; some exist only for some groups and kernels."""
    found = {}
    for name in names:
        try:
            text = parsers.text(parsers.read(f"{base}/{name}", _SHORT)).strip()
            found[name] = (
                "\n".join(r for r in text.splitlines() if r.startswith(_ROWS[name])) if name in _ROWS else text
            )
        except OSError:
            continue
    return found


def _levels(place: Place) -> List[Place]:
    """Return the group and those above it, its own first."""
    hierarchy, path = place
    found = [place]
    while path.strip("/") and len(found) < _MOST_LEVELS:
        path = path.rstrip("/").rpartition("/")[0] or "/"
        found.append((hierarchy, path))
    return found


def is_frozen(pid: int, found: Dict[str, Mount]) -> bool:
    """Return whether a version 1 freezer is known to have frozen the process; ``found``: the mounts visible to us."""
    return freezer(pid, found) is not None


def freezer(pid: int, found: Dict[str, Mount]) -> Optional[str]:
    """Return the folder of the version 1 group that has frozen the process; None when none is known."""
    if "freezer" not in found:
        return None
    try:
        lines = parsers.text(parsers.read(f"/proc/{pid}/cgroup")).splitlines()
    except OSError:
        return None
    for hierarchy, path in places(lines):
        base = folder(found[hierarchy], path) if hierarchy == "freezer" else None
        if base is not None and read_texts(base, _FILES["freezer"]).get("freezer.state") == "FROZEN":
            return base
    return None


def own_mounts() -> Dict[str, Mount]:
    """Return hierarchy → its mount, as visible to this process."""
    try:
        return mounts(parsers.text(parsers.read("/proc/self/mountinfo")))
    except OSError:
        return {}


def _unescaped(text: str) -> str:
    """Decode mountinfo's octal escapes of spaces and the like."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
