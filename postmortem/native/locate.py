"""Where gdb is, and whether it knows the machine that a core is of."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Optional

from .. import programs

#: Names the gdb to use; nothing else is looked at then.
VARIABLE = "POSTMORTEM_GDB"

REMEDY = f"install it (`apt install gdb`, or `pip install gdb-for-pwndbg` beside postmortem), or name one in {VARIABLE}"

#: By the name that memory.elf has for a machine: what uname calls it, and gdb.
_MACHINES = {
    "x86-64": ("x86_64", "i386:x86-64"),
    "aarch64": ("aarch64", "aarch64"),
    "riscv64": ("riscv64", "riscv:rv64"),
    "ppc64le": ("ppc64le", "powerpc:common64"),
}
_ASKED_S = 10


def find_gdb(machine: Optional[str] = None) -> Optional[Path]:
    """The gdb to run: the one that POSTMORTEM_GDB names, the first on PATH, or the wheel ``gdb-for-pwndbg``
    installed where postmortem is (its launcher lies beside the interpreter, which PATH need not hold).

    machine: of a core; of another one than this, only a gdb that knows it will do, and Debian's has a name of its own.
    """
    if machine is None or is_own(machine):
        return next(_candidates("gdb"), None)
    return next((gdb for gdb in _candidates("gdb-multiarch", "gdb") if _knows(gdb, machine)), None)


def is_own(machine: str) -> bool:
    """Is a machine, as memory.elf calls it, of the kind of this one? True where it has no name."""
    return _MACHINES.get(machine, ("", ""))[0] in ("", os.uname().machine)


def remedy(machine: Optional[str]) -> str:
    """How to get a gdb for cores of a machine."""
    if machine is None or is_own(machine):
        return REMEDY
    return f"install one that reads cores of {machine} (`apt install gdb-multiarch`), or name it in {VARIABLE}"


def _candidates(*names: str) -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    beside = str(Path(sys.executable).parent)
    found = (
        [programs.find(named)] if named else [programs.find(name, path) for path in (None, beside) for name in names]
    )
    # Not resolved: the wheel's launcher knows its environment by its own path.
    return (Path(each) for each in found if each)


@functools.lru_cache(maxsize=None)
def _knows(gdb: Path, machine: str) -> bool:
    """gdb ends with status 1 for an architecture that it was built without."""
    command = [*programs.gdb(gdb), "-batch", "-ex", f"set architecture {_MACHINES[machine][1]}"]
    try:
        done = programs.run("gdb", command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_ASKED_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
