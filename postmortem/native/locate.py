"""Where gdb is."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Optional

#: Names the gdb to use; nothing else is looked at then.
VARIABLE = "POSTMORTEM_GDB"

REMEDY = f"install it (`apt install gdb`, or `pip install gdb-for-pwndbg` beside postmortem), or name one in {VARIABLE}"


def find_gdb() -> Optional[Path]:
    """The gdb to run: the one that POSTMORTEM_GDB names, the first on PATH, or the wheel ``gdb-for-pwndbg``
    installed where postmortem is (its launcher lies beside the interpreter, which PATH need not hold).
    """
    named = os.environ.get(VARIABLE)
    if named:
        return _runnable(shutil.which(named))
    return _runnable(shutil.which("gdb")) or _runnable(shutil.which("gdb", path=str(Path(sys.executable).parent)))


def _runnable(found: Optional[str]) -> Optional[Path]:
    # Absolute, because gdb is started with the working directory of its own scratch folder. Not resolved: the
    # wheel's launcher knows its environment by its own path.
    return Path(found).absolute() if found else None
