"""The clocks at the time of a lone core, estimated from its name.

systemd-coredump names a core after the boot in which its process ran and the time at which the kernel began to dump it.
On the same boot the clocks of this machine tell what CLOCK_MONOTONIC was then, except for time in suspend since.

Source: make_filename in src/coredump/coredump.c: core.COMM.UID.BOOT_ID.PID.TIMESTAMP, the last in microseconds, which the
kernel gives in whole seconds (%t of core_pattern, core(5)); a suffix of the codec follows.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple, Optional

_NAME = re.compile(r"core\..*\.[0-9]{1,10}\.([0-9a-f]{32})\.[0-9]{1,10}\.([0-9]{10,16})(\.(zst|xz|lz4|gz))?", re.S)
_MICROSECONDS = 10**6
_BOOT = "/proc/sys/kernel/random/boot_id"


class DumpTime(NamedTuple):
    """Seconds of CLOCK_REALTIME and CLOCK_MONOTONIC at which a core was dumped, to a second or so."""

    realtime: float
    monotonic: float


def dumped_at(name: str, boot: Optional[str] = None) -> Optional[DumpTime]:
    """Return when a core was dumped, by its name; None unless it tells that this was during the current boot.

    - ``name``: of the file, with or without its directory
    - ``boot``: 32 hexadecimal digits; None for that of the running kernel
    """
    found = _NAME.fullmatch(name.rpartition("/")[2])
    if found is None or found[1] != (boot or _boot()):
        return None
    stamp = int(found[2])
    realtime = stamp / _MICROSECONDS if stamp >= 10**13 else float(stamp)
    monotonic = realtime - (time.time() - time.monotonic())
    return DumpTime(realtime, monotonic) if monotonic > 0 else None


def _boot() -> str:
    """Return the identity of the running boot, as in names of cores; "" if unreadable."""
    try:
        with open(_BOOT, encoding="ascii", errors="replace") as file:
            return file.read(1 << 10).strip().replace("-", "")
    except OSError:
        return ""
