"""The gdb to use, and whether it supports the machine of a core."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Optional

from .. import programs

#: Environment variable with the gdb to use; no other is looked for then.
VARIABLE = "POSTMORTEM_GDB"

REMEDY = f"install it (`apt install gdb`, or `pip install gdb-for-pwndbg` in postmortem's environment), or name one in {VARIABLE}"

#: memory.elf's name of a machine → (uname's name, gdb's name).
_MACHINES = {
    "x86-64": ("x86_64", "i386:x86-64"),
    "aarch64": ("aarch64", "aarch64"),
    "riscv64": ("riscv64", "riscv:rv64"),
    "ppc64le": ("ppc64le", "powerpc:common64"),
}
_ASKED_S = 10


def find_gdb(machine: Optional[str] = None) -> Optional[Path]:
    """Return the gdb to run, or None.

    Looked for, in this order: POSTMORTEM_GDB, PATH, beside the interpreter (the launcher of the wheel
    ``gdb-for-pwndbg``). For a core of another ``machine`` than this one, only a gdb that supports it is returned;
    Debian's is gdb-multiarch.
    """
    if machine is None or is_own(machine):
        return next(_candidates("gdb"), None)
    return next((gdb for gdb in _candidates("gdb-multiarch", "gdb") if _knows(gdb, machine)), None)


def is_own(machine: str) -> bool:
    """Return whether a machine, by memory.elf's name, is of the kind of this one; True for an unknown name."""
    return _MACHINES.get(machine, ("", ""))[0] in ("", os.uname().machine)


def remedy(machine: Optional[str]) -> str:
    """Return how to get a gdb for cores of a machine."""
    if machine is None or is_own(machine):
        return REMEDY
    return f"install one that reads cores of {machine} (`apt install gdb-multiarch`), or name it in {VARIABLE}"


def _candidates(*names: str) -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    beside = str(Path(sys.executable).parent)
    found = (
        [programs.find(named)] if named else [programs.find(name, path) for path in (None, beside) for name in names]
    )
    # not resolved: the wheel's launcher finds its environment by its own path
    return (Path(each) for each in found if each)


@functools.lru_cache(maxsize=None)
def _knows(gdb: Path, machine: str) -> bool:
    """Return whether gdb supports a machine; it exits with status 1 for an architecture that it was built without."""
    command = [*programs.gdb(gdb), "-batch", "-ex", f"set architecture {_MACHINES[machine][1]}"]
    try:
        done = programs.run("gdb", command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_ASKED_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
