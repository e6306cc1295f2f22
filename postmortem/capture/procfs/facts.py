"""A process at one moment, as /proc shows it: ``process.json``."""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH116, PTH119, PTH208

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional

from ...foreign.numbers import is_decimal
from ...foreign.rights import as_json, of_status, overrides
from . import parsers

#: For a process that /proc does not show.
SHOW_ALL = "run the same command as root, or show all processes: sudo mount -o remount,hidepid=0 /proc"
MOST_DESCRIPTORS = 4096
_PYTHON_PROGRAM = re.compile(r"^(python|pypy)[\d.]*[tdm]*(-dbg)?$")
#: Files that only an interpreter maps: its library, or an extension module.
_PYTHON_FILE = re.compile(r"/libpython\d|/lib-dynload/|\.cpython-3\d+[a-z]*-")


def process_json(pid: int) -> Dict[str, Any]:
    """Return the process's facts; raise OSError when it is gone.

    A value that could not be read, or vanished while the process ended, is None.
    """
    base = f"/proc/{pid}"
    stat = parsers.stat(base)
    thread = f"{base}/task/{_thread(pid)}"
    status = _status(base)
    return {
        "pid": pid,
        "ppid": stat.ppid,
        "argv": _argv(f"{thread}/cmdline"),
        "exe": _link(f"{thread}/exe"),
        "cwd": working_directory(pid),
        "comm": parsers.text(stat.comm),
        "state": stat.state,
        "exit_code": stat.exit_code if stat.state in "ZX" else None,
        "pgid": stat.pgid,
        "sid": stat.sid,
        "cgroup": parsers.lines(f"{base}/cgroup"),
        "start_ticks": stat.start,
        "age_s": _age(stat.start),
        "cpus_allowed": status.get("Cpus_allowed_list"),
        "tracer_pid": _number(status, "TracerPid"),
        "tracer_name": _name(_number(status, "TracerPid")),
        "uid": _number(status, "Uid"),
        **rights_json(pid, status),
        "ns_pids": _numbers(status, "NSpid"),
        "terminal": stat.terminal,
        "foreground": stat.foreground,
        "signals_caught": _mask(status, "SigCgt"),
        "signals_ignored": _mask(status, "SigIgn"),
        "fds": descriptors(thread),
        "threads": _threads(pid, len(_numbers(status, "NSpid")) > 1),
        "maps": parsers.lines(f"{thread}/maps"),
    }


def rights_json(pid: int, status: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
    """Return the access rights of a process.

    - ``rights``: those of its user; None where it has those of several users
    - ``reads_all``: whether they are root's in our own user namespace, which allow reading everything
    """
    status = _status(f"/proc/{pid}") if status is None else status
    try:
        ours = os.stat(f"/proc/{pid}/ns/user").st_ino == os.stat("/proc/self/ns/user").st_ino
    except OSError:
        ours = False
    return {"rights": as_json(of_status(status)), "reads_all": ours and overrides(status)}


def has_other_rights(pid: int, known: Dict[str, Any]) -> bool:
    """Return whether a process has changed its user since ``known`` was recorded."""
    status = _status(f"/proc/{pid}")
    return bool(status) and any(known.get(key) != value for key, value in rights_json(pid, status).items())


def working_directory(pid: int) -> Optional[str]:
    """Return the working directory; None when the process is gone, or it cannot be read."""
    return _link(f"/proc/{pid}/task/{_thread(pid)}/cwd")


def hidden_json(pid: int, parent: int) -> Dict[str, Any]:
    """Return process.json of a process that /proc does not show."""
    return {"pid": pid, "ppid": parent, "argv": [], "threads": {}}


def _thread(pid: int) -> int:
    try:
        return parsers.living_thread(pid)
    except OSError:
        return pid


def _status(path: str) -> Dict[str, str]:
    try:
        return parsers.status(path)
    except OSError:
        return {}


def _number(status: Dict[str, str], key: str) -> Optional[int]:
    """Return the first number of a row; of the four user ids the real one."""
    words = status.get(key, "").split()
    return int(words[0]) if words and is_decimal(words[0]) else None


def _numbers(status: Dict[str, str], key: str) -> List[int]:
    return [int(word) for word in status.get(key, "").split() if is_decimal(word)]


def _name(pid: Optional[int]) -> Optional[str]:
    """Return the kernel's name of a process; None without a pid, or when it is gone."""
    try:
        return parsers.text(parsers.read(f"/proc/{pid}/comm")).rstrip("\n") if pid else None
    except OSError:
        return None


def _mask(status: Dict[str, str], key: str) -> Optional[int]:
    """Return a set of signals, bit N-1 for signal N."""
    try:
        return int(status[key], 16)
    except (KeyError, ValueError):
        return None


def _age(start_ticks: int) -> Optional[float]:
    """Return the seconds since a process began.

    Sources: proc(5), field 22 of stat, in clock ticks since boot; /proc/uptime.
    """
    try:
        return round(float(parsers.read("/proc/uptime").split()[0]) - start_ticks / os.sysconf("SC_CLK_TCK"), 2)
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> Optional[str]:
    """Return the identity of this machine's boot, of which its clocks are; None if unreadable."""
    try:
        return parsers.text(parsers.read("/proc/sys/kernel/random/boot_id")).strip()
    except OSError:
        return None


def shares_clocks(pid: int, tid: int) -> bool:
    """Return whether CLOCK_MONOTONIC is the same for a thread as for us: whether both are in one time namespace.

    Source: time_namespaces(7), Linux 5.6; a kernel without them has one for all.
    """
    ours = _link("/proc/self/ns/time")
    return ours is None or _link(f"/proc/{pid}/task/{tid}/ns/time") == ours


def is_python(facts: Dict[str, Any]) -> bool:
    """Return whether a process is an interpreter, or a program that embeds one."""
    argv = facts.get("argv") or [""]  # readable where exe is not
    exe = os.path.basename(facts.get("exe") or argv[0]).replace(" (deleted)", "")
    if _PYTHON_PROGRAM.match(exe):
        return True
    return any(_PYTHON_FILE.search(line) for line in facts.get("maps") or ())


def descriptors(path: str) -> Optional[Dict[str, str]]:
    """Return descriptor → target of its link in ``path``/fd; None when they cannot be read."""
    try:
        names = sorted((n for n in os.listdir(f"{path}/fd") if is_decimal(n)), key=int)
    except OSError:
        return None
    links = ((name, _link(f"{path}/fd/{name}")) for name in names[:MOST_DESCRIPTORS])
    return {name: target for name, target in links if target is not None}


def open_descriptors(pid: int) -> Optional[Dict[str, str]]:
    """Return the current descriptors of a process; None when it is gone, or they cannot be read."""
    return descriptors(f"/proc/{pid}/task/{_thread(pid)}")


def _threads(pid: int, has_own_numbers: bool) -> Dict[str, Dict[str, Any]]:
    """Return tid → facts; ``own_tid``: the tid in the innermost pid namespace."""
    found: Dict[str, Dict[str, Any]] = {}
    try:
        tids = parsers.threads(pid)
    except OSError:
        return found
    for tid in tids:
        try:
            found[str(tid)] = {"comm": parsers.text(parsers.read(f"/proc/{pid}/task/{tid}/comm")).rstrip("\n")}
        except OSError:
            continue
        if has_own_numbers:
            numbers = _numbers(_status(f"/proc/{pid}/task/{tid}"), "NSpid")
            found[str(tid)]["own_tid"] = numbers[-1] if numbers else None
    return found


def _argv(path: str) -> List[str]:
    try:
        data = parsers.read(path)
    except OSError:
        return []
    return [parsers.text(word) for word in data[:-1].split(b"\0")] if data else []


def _link(path: str) -> Optional[str]:
    try:
        return parsers.text(os.readlink(os.fsencode(path)))
    except OSError:
        return None
