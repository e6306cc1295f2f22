"""Reasons for which the kernel refuses ptrace of a process, and remedies.

Source: ptrace(2), "Ptrace access mode checking".
"""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH116

from __future__ import annotations

import os
from typing import Optional

from ...errors import PermissionRefused
from ..procfs import parsers

_AS_ROOT = "run the same command as root: sudo postmortem capture …"


def explain(pid: int) -> PermissionRefused:
    """Return the likeliest reason, from what /proc still shows."""
    try:
        status = parsers.status(f"/proc/{pid}")
        # /proc/PID itself keeps the process's owner; the files in it become root's (fs/proc/base.c, task_dump_owner)
        owner = os.stat(f"/proc/{pid}/stat").st_uid
    except (OSError, ValueError):
        return PermissionRefused(f"process {pid} may not be read", _AS_ROOT)
    who = f"process {pid} ({status.get('Name', '?')})"
    uid, effective = (int(word) for word in (status.get("Uid", "0").split() * 2)[:2])
    tracer = int(status.get("TracerPid", "0"))
    scope = yama_scope()
    if tracer and tracer != os.getpid():
        reason = f"{who} is already being traced by {_name(tracer)}"
        remedy = f"end that debugger (ps -p {tracer}), then try again"
    elif uid != os.geteuid():
        reason = f"{who} belongs to another user (uid {uid})"
        remedy = _AS_ROOT
    elif effective != uid:
        reason = f"{who} runs with the rights of another user (uid {effective}), through a set-user-id program"
        remedy = _AS_ROOT
    elif owner != uid:
        reason = (
            f"{who} has made itself unreadable (PR_SET_DUMPABLE 0, or a set-user-id program that gave up its rights)"
        )
        remedy = _AS_ROOT
    elif scope:
        reason = f"the kernel forbids tracing {who} (kernel.yama.ptrace_scope is {scope})"
        remedy = (
            "sudo sysctl kernel.yama.ptrace_scope=0" if scope < 3 else "scope 3 cannot be changed until the next boot"
        )
    else:
        reason = f"ptrace of {who} is refused, as it is in many containers"
        remedy = "give the container the capability: docker run --cap-add=SYS_PTRACE"
    return PermissionRefused(reason, remedy)


def _name(pid: int) -> str:
    try:
        comm = parsers.text(parsers.read(f"/proc/{pid}/comm")).strip()
    except OSError:
        return f"process {pid}"
    return f"{comm} (process {pid})"


def yama_scope() -> Optional[int]:
    """Return kernel.yama.ptrace_scope; None without Yama."""
    try:
        return int(parsers.read("/proc/sys/kernel/yama/ptrace_scope"))
    except (OSError, ValueError):
        return None
