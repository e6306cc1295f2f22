"""What /proc says about a process at one moment: ``process.json``."""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH116, PTH119, PTH208

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional

from ...foreign.numbers import is_decimal
from ...foreign.rights import as_json, of_status, overrides
from . import parsers

#: For a process that /proc does not show.
SHOW_ALL = "run the same as root, or have all shown: sudo mount -o remount,hidepid=0 /proc"
MOST_DESCRIPTORS = 4096
_PYTHON_PROGRAM = re.compile(r"^(python|pypy)[\d.]*[tdm]*(-dbg)?$")
#: Files that only an interpreter maps: its library, or an extension module.
_PYTHON_FILE = re.compile(r"/libpython\d|/lib-dynload/|\.cpython-3\d+[a-z]*-")


def process_json(pid: int) -> Dict[str, Any]:
    """Raises OSError when the process is gone. What may not be read is None, and so is what it took along when it ended
    while it was read."""
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
    """What may be read for a process: ``rights``, of its user, None where it has those of several; ``reads_all``: whether those
    are root's, who reads everything in our own user namespace."""
    status = _status(f"/proc/{pid}") if status is None else status
    try:
        ours = os.stat(f"/proc/{pid}/ns/user").st_ino == os.stat("/proc/self/ns/user").st_ino
    except OSError:
        ours = False
    return {"rights": as_json(of_status(status)), "reads_all": ours and overrides(status)}


def has_other_rights(pid: int, known: Dict[str, Any]) -> bool:
    """Whether a process has changed its user since ``known`` was noted of it."""
    status = _status(f"/proc/{pid}")
    return bool(status) and any(known.get(key) != value for key, value in rights_json(pid, status).items())


def working_directory(pid: int) -> Optional[str]:
    """None when it is gone, or may not be read."""
    return _link(f"/proc/{pid}/task/{_thread(pid)}/cwd")


def hidden_json(pid: int, parent: int) -> Dict[str, Any]:
    """The same of a process that /proc does not show."""
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
    """The first of a row's numbers: of the four user ids the real one."""
    words = status.get(key, "").split()
    return int(words[0]) if words and is_decimal(words[0]) else None


def _numbers(status: Dict[str, str], key: str) -> List[int]:
    return [int(word) for word in status.get(key, "").split() if is_decimal(word)]


def _name(pid: Optional[int]) -> Optional[str]:
    """What the kernel calls a process; None for nobody, or when it is gone."""
    try:
        return parsers.text(parsers.read(f"/proc/{pid}/comm")).rstrip("\n") if pid else None
    except OSError:
        return None


def _mask(status: Dict[str, str], key: str) -> Optional[int]:
    """A set of signals, bit N-1 for signal N."""
    try:
        return int(status[key], 16)
    except (KeyError, ValueError):
        return None


def _age(start_ticks: int) -> Optional[float]:
    """Seconds since a process began (proc(5): field 22 of stat, in clock ticks since boot; /proc/uptime)."""
    try:
        return round(float(parsers.read("/proc/uptime").split()[0]) - start_ticks / os.sysconf("SC_CLK_TCK"), 2)
    except (OSError, ValueError, IndexError):
        return None


def is_python(facts: Dict[str, Any]) -> bool:
    """An interpreter, or a program with one inside."""
    argv = facts.get("argv") or [""]  # readable where exe is not
    exe = os.path.basename(facts.get("exe") or argv[0]).replace(" (deleted)", "")
    if _PYTHON_PROGRAM.match(exe):
        return True
    return any(_PYTHON_FILE.search(line) for line in facts.get("maps") or ())


def descriptors(path: str) -> Optional[Dict[str, str]]:
    """Descriptor → what it is, as the links in ``path``/fd say; None when they may not be read."""
    try:
        names = sorted((n for n in os.listdir(f"{path}/fd") if is_decimal(n)), key=int)
    except OSError:
        return None
    links = ((name, _link(f"{path}/fd/{name}")) for name in names[:MOST_DESCRIPTORS])
    return {name: target for name, target in links if target is not None}


def open_descriptors(pid: int) -> Optional[Dict[str, str]]:
    """Those of a process as they are now; None when it is gone, or they may not be read."""
    return descriptors(f"/proc/{pid}/task/{_thread(pid)}")


def _threads(pid: int, has_own_numbers: bool) -> Dict[str, Dict[str, Any]]:
    """``own_tid``: by which a thread knows itself, in a pid namespace of its own."""
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
