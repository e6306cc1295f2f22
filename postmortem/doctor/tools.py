"""Checks of the programs and files that a capture and an analysis use."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Optional, Sequence

from .. import places, programs
from ..capture.observe import pyspy as sampler
from ..memory.elf import Elf, NotElf
from .check import Check


def output(program: str, command: Sequence[str]) -> str:
    """Return a tool's output within ten seconds; "" when it cannot be run or fails."""
    try:
        done = programs.run(program, command, capture_output=True, timeout=10, check=True, text=True, errors="replace")
    except (OSError, subprocess.SubprocessError):
        return ""
    return str(done.stdout).strip()


def gdb() -> Check:
    """Check that gdb exists and has Python."""
    from ..native import find_gdb  # noqa: PLC0415 - the other checks work while native stacks do not

    remedy = "apt-get install gdb, or pip install gdb-for-pwndbg (needs no root)"
    path = find_gdb()
    if path is None:
        return Check("gdb", False, "not found; native stacks and the frames between them will be missing", remedy, True)
    script = "python import sys; print('%s with Python %d.%d' % ((gdb.VERSION,) + sys.version_info[:2]))"
    said = output("gdb", [*programs.gdb(path), "-batch", "-ex", script])
    if not said:
        return Check("gdb", False, f"{path} does not run, or has no Python inside", remedy, True)
    return Check("gdb", True, f"{path}, version {said}", needed=True)


def pyspy() -> Check:
    """Check that py-spy exists and runs."""
    path = sampler.find()
    said = output("py-spy", [path, "--version"]) if path else ""
    if said:
        return Check("py-spy", True, f"{path}, {said}", needed=True)
    return Check("py-spy", False, "not found; stacks over time will be missing", "pip install py-spy", True)


def cache() -> Check:
    """Check that the cache folder can be written."""
    try:
        folder = places.cache()
        writable = os.access(folder, os.W_OK)
    except OSError as exc:
        return Check("cache", False, f"cannot be created: {exc}", "set XDG_CACHE_HOME to a folder that can be written")
    if writable:
        return Check("cache", True, str(folder))
    return Check("cache", False, f"{folder} cannot be written", "set XDG_CACHE_HOME to a folder that can be written")


def symbols() -> Check:
    """Check whether the C library's debug symbols are where gdb looks; without them frames have fewer names."""
    name = "debug symbols of the C library"
    libc = _mapped_libc()
    try:
        build_id = _build_id(libc) if libc else None
    except (OSError, NotElf):
        build_id = None
    if build_id is None:
        return Check(name, None, "unknown: no build-id could be read")
    debug = Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    if debug.exists():
        return Check(name, True, str(debug))
    return Check(name, None, "not installed; some native frames may lack names", "apt-get install libc6-dbg")


def _build_id(path: str) -> Optional[str]:
    elf = Elf(path)
    try:
        return elf.build_id
    finally:
        elf.close()


def _mapped_libc() -> Optional[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(None, 5)[-1].strip() for line in maps if "libc" in line}
    return next((path for path in sorted(paths) if Path(path).name.startswith(("libc.so", "libc-"))), None)
