"""Limits on this process: containers, user namespaces, seccomp filters, a restricted /proc, control groups.

Sources: proc_pid_status(5) (Seccomp: 0 none, 1 strict, 2 filter), user_namespaces(7) (uid_map), proc(5) (hidepid),
docs.docker.com "docker run" (--cap-add, --security-opt), kubernetes.io "kubectl debug" (profiles).
"""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional, Tuple

from ..capture.procfs import cgroups, parsers
from ..foreign.numbers import is_decimal
from .check import Check

FILTERED = 2
_EVERY_ID = 4294967295
#: Kind of container → how to get CAP_SYS_PTRACE there.
_WITH_PTRACE: Dict[Optional[str], str] = {
    "kubernetes": "kubectl debug -it POD --image=IMAGE --target=CONTAINER --profile=general, or in the pod's"
    " securityContext: capabilities: {add: [SYS_PTRACE]}",
    "docker": "docker run --cap-add=SYS_PTRACE",
    "podman": "podman run --cap-add=SYS_PTRACE",
    None: "run the same command as root: sudo postmortem capture …",
}
_WITHOUT_FILTER: Dict[Optional[str], str] = {
    "kubernetes": "in the pod's securityContext: seccompProfile: {type: Unconfined}, or kubectl debug -it POD"
    " --image=IMAGE --target=CONTAINER --profile=sysadmin",
    "docker": "docker run --cap-add=SYS_PTRACE, which Docker's default profile honours; for another profile"
    " --security-opt seccomp=unconfined",
    "podman": "podman run --security-opt seccomp=unconfined",
    None: "start it without that filter; in a systemd unit: SystemCallFilter=ptrace process_vm_readv",
}


def container(environment: Optional[Mapping[str, str]] = None, root: str = "/") -> Optional[str]:
    """Return ``kubernetes``, ``docker`` or ``podman``; None without a sign of a container with a known remedy."""
    environment = os.environ if environment is None else environment
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    for kind, mark in (("docker", ".dockerenv"), ("podman", "run/.containerenv")):
        if os.access(f"{root}{mark}", os.F_OK):
            return kind
    return None


def with_ptrace() -> str:
    """Return how to be allowed to trace."""
    return _WITH_PTRACE[container()]


def without_filter() -> str:
    """Return how to start without the seccomp filter."""
    return _WITHOUT_FILTER[container()]


def seccomp_mode() -> Optional[int]:
    """Return this process's seccomp mode; None where the kernel does not show it."""
    mode = _status().get("Seccomp", "")
    return int(mode) if is_decimal(mode) else None


def seccomp() -> Check:
    """Check whether a seccomp filter exists; what it forbids is found by the checks that try it."""
    mode = seccomp_mode()
    if mode is None:
        return Check("seccomp", None, "unknown: the kernel does not show it")
    if mode == 0:
        return Check("seccomp", True, "no filter")
    return Check("seccomp", None, "a filter is active, as in most containers; the lines above show what it forbids")


def outer_root(uid_map: Optional[str] = None) -> Optional[int]:
    """Return the uid of our root outside of this user namespace, -1 if none; None in the initial one, or if unknown."""
    try:
        text = parsers.text(parsers.read("/proc/self/uid_map")) if uid_map is None else uid_map
    except OSError:
        return None
    rows = [[int(word) for word in row.split()] for row in text.splitlines()]
    if rows == [[0, 0, _EVERY_ID]] or not rows:
        return None
    return next((outer for inner, outer, _count in rows if inner == 0), -1)


def user_namespace() -> Check:
    """Check whether this is the initial user namespace."""
    name = "user namespace"
    outer = outer_root()
    if outer is None:
        return Check(name, True, "the machine's own")
    who = "root here does not exist outside" if outer < 0 else f"root here is user {outer} outside"
    return Check(
        name,
        None,
        f"a separate one (rootless container, unshare): {who}; processes outside it cannot be captured from here",
        "run postmortem outside to capture those",
    )


def proc(mountinfo: Optional[str] = None) -> Check:
    """Check whether /proc shows other users' processes, which a tree may contain."""
    name = "/proc"
    options = _options("/proc", _mountinfo() if mountinfo is None else mountinfo)
    if options is None:
        return Check(name, False, "not mounted: there is nothing to observe", "mount -t proc proc /proc", True)
    hides = next((o for o in options if o.startswith("hidepid=") and o not in ("hidepid=0", "hidepid=off")), None)
    if hides is None:
        return Check(name, True, "shows every process")
    if os.geteuid() == 0:
        return Check(name, True, f"shows every process to root (mounted with {hides})")
    return Check(
        name,
        None,
        f"hides other users' processes (mounted with {hides}): set-user-id children are listed without details",
        "run as root, or: sudo mount -o remount,hidepid=0 /proc",
    )


def control_groups() -> Check:
    """Check whether a frozen control group, or an exhausted CPU quota, will be noticed."""
    name = "control groups"
    mounts = cgroups.mounts(_mountinfo())
    version = {(True, True): "version 1 and 2", (True, False): "version 2", (False, True): "version 1"}.get(
        ("" in mounts, any(mounts))
    )
    if version is None:
        found = "not mounted here: a frozen or throttled process cannot be told from one that hangs"
        return Check(name, None, found, "mount -t cgroup2 none /sys/fs/cgroup, or run postmortem outside the container")
    blind = [what for what, seen in _sight(mounts) if seen is False]
    if blind:
        return Check(name, None, f"{version}; {' and '.join(blind)} cannot be read", "run the same command as root")
    return Check(name, True, f"{version}; freezer, CPU quota and memory limit are read")


def _sight(mounts: Dict[str, cgroups.Mount]) -> List[Tuple[str, Optional[bool]]]:
    """Return, for each fact about our own groups, whether it can be read; None where the top group has no such file."""
    lines = parsers.lines("/proc/self/cgroup") or []
    found = []
    for what, files in _SEEN.items():
        answers = [_readable(mounts, place, files[place[0]]) for place in cgroups.places(lines) if place[0] in files]
        found.append((what, None if not answers else any(a is not False for a in answers)))
    return found


_SEEN = {
    "the freezer": {"": "cgroup.events", "freezer": "freezer.state"},
    "the CPU quota": {"": "cpu.stat", "cpu": "cpu.stat"},
    "the memory limit": {"": "memory.max", "memory": "memory.limit_in_bytes"},
}


def _readable(mounts: Dict[str, cgroups.Mount], place: cgroups.Place, file: str) -> Optional[bool]:
    mount = mounts.get(place[0])
    folder = cgroups.folder(mount, place[1]) if mount else None
    if folder is None:
        return False
    if not os.access(f"{folder}/{file}", os.F_OK):
        return None
    return os.access(f"{folder}/{file}", os.R_OK)


def _options(point: str, mountinfo: str) -> Optional[List[str]]:
    """Return the options of the topmost mount at a path, and of its file system."""
    found = None
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > 5 and fields[4] == point:
            found = fields[5].split(",") + fields[-1].split(",")
    return found


def _mountinfo() -> str:
    try:
        return parsers.text(parsers.read("/proc/self/mountinfo"))
    except OSError:
        return ""


def _status() -> Dict[str, str]:
    try:
        return parsers.status("/proc/self")
    except OSError:
        return {}
