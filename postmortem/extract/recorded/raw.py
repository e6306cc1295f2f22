"""The capture's facts about a process beside its core: names, last system calls, the window."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from ..waits import threadwaits
from ..waits.descriptors import Descriptors
from .clocks import NO_CLOCKS, Clocks
from .shapes import pid_of
from .window import NO_WINDOW, Window


class Raw(NamedTuple):
    """The capture's facts about a process beside its core; all of them may be empty."""

    process: Dict[str, Any]
    window: Window
    samples: Dict[int, Tuple[Any, ...]]
    descriptors: Optional[Descriptors]
    clocks: Clocks = NO_CLOCKS


NO_RAW = Raw({}, NO_WINDOW, {}, None)


def kept_root(process: Mapping[str, Any]) -> Optional[str]:
    """Return the directory of a bundle with the files of a process that had another root; None for others.

    ``process``: its process.json. Written by ``capture`` if any of its programs and sources were available.
    """
    number = process.get("root")
    return f"raw/roots/{number}" if type(number) is int and number > 0 else None


def tids(process: Dict[str, Any]) -> Dict[int, int]:
    """Return the TID in a thread's own namespace → outer TID, where they differ."""
    threads = process.get("threads")
    found = {}
    for tid, facts in threads.items() if isinstance(threads, dict) else ():
        own = facts.get("own_tid") if isinstance(facts, dict) else None
        ours = pid_of(tid)
        if isinstance(own, int) and ours is not None:
            found[own] = ours
    return found


def own_pid(process: Dict[str, Any]) -> Optional[int]:
    """Return a process's PID in its own namespace if that differs (NSpid of /proc/PID/status); else None."""
    numbers = process.get("ns_pids")
    own = numbers[-1] if isinstance(numbers, list) and len(numbers) > 1 else None
    return own if isinstance(own, int) else None


def comm(raw: Raw, tid: int) -> Optional[str]:
    """Return a thread's name in the kernel; None if unknown."""
    threads = raw.process.get("threads")
    facts = threads.get(str(tid)) if isinstance(threads, dict) else None
    name = facts.get("comm") if isinstance(facts, dict) else None
    return name if isinstance(name, str) else None


def last_call(window: Window, tid: int) -> Optional[threadwaits.SystemCall]:
    """Return a thread's system call at the last look of the window, before anything was stopped; None if unknown."""
    call = window.threads.get(tid, {}).get("last_syscall")
    args = call.get("args") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(args, list) or len(args) != 6 or "name" not in call:
        return None
    return threadwaits.SystemCall(str(call["name"]), tuple(args))
