"""Space for a capture, in memory and on disk, and for the kernel's own cores (core(5), getrlimit(2))."""

from __future__ import annotations

import os
import re
import resource
import shutil
from typing import Optional

from ..capture.freeze import corepattern, memorybudget
from ..errors import CaptureFailed
from . import confinement
from .check import Check
from .rights import own_child

_MIB = 1 << 20
#: Bytes; a capture of a small tree takes less, one of a large tree reports that it was cut short.
_LITTLE_DISK = 256 * _MIB
_LITTLE_MEMORY = 32 * _MIB
_PATTERN = "/proc/sys/kernel/core_pattern"


def memory() -> Check:
    """Check the memory that can hold pages while a tree is stopped."""
    name = "memory"
    hold = memorybudget.memory_to_hold()
    if hold >= _LITTLE_MEMORY:
        return Check(name, True, f"{_size(hold)} can be held while processes are stopped")
    return Check(
        name,
        None,
        f"only {_size(hold)} can be held while processes are stopped: the rest goes to disk, and they are stopped longer",
        "raise the memory limit: docker run --memory=…, or resources.limits.memory of the pod",
    )


def disk() -> Check:
    """Check the working directory, where bundles go without -o."""
    name, remedy = "disk", "choose another folder: postmortem capture -o DIR"
    try:
        free = shutil.disk_usage(".").free
    except OSError as exc:
        return Check(name, False, f"the working directory cannot be examined: {exc.strerror}", remedy, True)
    if not os.access(".", os.W_OK):
        return Check(name, False, "the working directory cannot be written", remedy, True)
    if free >= _LITTLE_DISK:
        return Check(name, True, f"{_size(free)} are free in the working directory")
    return Check(name, None, f"only {_size(free)} are free in the working directory: cores may be cut short", remedy)


def core_pattern(pattern: Optional[str] = None, inside: Optional[str] = None) -> Check:
    """Check where the kernel would put the core of a command that runs here."""
    name, remedy = "core_pattern", "for core files: sudo sysctl kernel.core_pattern=core.%p"
    pattern = _first_line(_PATTERN) if pattern is None else pattern
    inside = confinement.container() if inside is None else inside
    if not pattern:
        return Check(name, None, "unknown, or crashes leave no core", "sudo sysctl kernel.core_pattern=core.%p")
    if pattern[0] == "|":
        return _handler(pattern, inside, remedy)
    found = f"crashes leave a file {pattern}"
    try:
        with own_child() as child:
            place = corepattern.place(child)
            with place.folder as held:
                folder, writable = os.readlink(held.path), os.access(held.path, os.W_OK)
    except (OSError, CaptureFailed) as exc:
        return Check(name, None, f"{found}, but not for a command started here: {_reason(exc)}", remedy)
    if not writable:
        return Check(name, None, f"{found}, but {folder} cannot be written", remedy)
    return Check(name, True, f"{found}; for a command started here in {folder}")


def _handler(pattern: str, inside: Optional[str], remedy: str) -> Check:
    name = "core_pattern"
    program = re.split(r"\s", pattern[1:])[0]
    outside = " outside of this container, where the handler runs" if inside else ""
    if "systemd-coredump" in pattern:
        found = f"crashes go to systemd{outside}; `postmortem analyze coredumpctl:last` diagnoses the last one"
        return Check(name, None if inside else True, found, remedy if inside else "")
    if "apport" in program:
        found = f"crashes go to apport{outside}; `postmortem analyze /var/crash/NAME.crash` diagnoses one"
        return Check(name, None, f"{found}; it keeps only those of packaged programs", remedy)
    if "abrt" in program:
        return Check(
            name,
            None,
            f"crashes go to abrt{outside}; `postmortem analyze /var/spool/abrt/ccpp-…` diagnoses one",
            remedy,
        )
    return Check(name, None, f"crashes go to {program}{outside}", remedy)


def core_limit() -> Check:
    """Check the limit on core files.

    The soft limit, which can be raised to the hard one, cuts a core; a handler gets all of it.
    """
    name = "core file size limit"
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        return Check(
            name,
            None,
            "the hard limit is 0: the kernel writes no core file for commands started here",
            "docker run --ulimit core=-1, LimitCORE=infinity in a systemd unit, or as root: ulimit -Hc unlimited",
        )
    said = ", ".join(
        f"{kind} {'unlimited' if value == resource.RLIM_INFINITY else _size(value)}"
        for kind, value in (("soft", soft), ("hard", hard))
    )
    if soft == 0:
        found = f"{said}: crashes leave no core file; a capture that needs one raises the limit itself"
        return Check(name, None, found, "for crashes: ulimit -c unlimited, before the command")
    return Check(name, True, said)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _size(number: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", _MIB)):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 1000 * size else f"{number // size} {unit}"
    return f"{number} bytes"


def _first_line(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return None
