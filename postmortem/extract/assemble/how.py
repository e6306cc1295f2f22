"""Options for reading cores."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, NamedTuple, Optional, Tuple

#: Seconds for gdb without a deadline for the verdict.
GDB_DEADLINE_S = 60.0


class How(NamedTuple):
    """Options for reading a core.

    - ``meanwhile``: called when only gdb is still working
    - ``gdb_s``: seconds for gdb; 0: do not start it
    - ``dumped_at``: CLOCK_REALTIME and CLOCK_MONOTONIC in seconds when a lone core was dumped, as an estimate
    """

    exe: Optional[Path] = None
    sysroot: Optional[Path] = None
    with_locals: bool = False
    progress: Callable[[str], None] = lambda text: None
    meanwhile: Callable[[], object] = lambda: None
    gdb_s: float = GDB_DEADLINE_S
    dumped_at: Optional[Tuple[float, float]] = None
