"""The interpreter's own count of changes of the GIL's holder, read at both ends of the window.

One word of the running process, read without stopping it: hand-offs measured, not estimated.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Optional, Tuple

from ..cpython.interpreter import switch_counter
from ..cpython.runtime import NoInterpreter
from ..memory.base import Fault
from ..memory.procmem import ProcMem

_WORD = 1 << 64


class GilProbe:
    """Raises NoInterpreter, Fault or OSError when this interpreter's lock cannot be found."""

    def __init__(self, pid: int) -> None:
        self._memory = ProcMem(pid)
        try:
            self._address, self._interval_s = switch_counter(self._memory)
            self._first, self._began = self._read()
        except BaseException:
            self._memory.close()
            raise

    def finish(self) -> Optional[Dict[str, Any]]:
        """``switches`` over ``seconds``; None when the process is gone."""
        try:
            last, now = self._read()
        except (OSError, Fault):
            return None
        finally:
            self._memory.close()
        return {
            "switches": (last - self._first) % _WORD,
            "seconds": round(now - self._began, 6),
            "switch_interval_s": self._interval_s,
        }

    def _read(self) -> Tuple[int, float]:
        return int(self._memory.u64(self._address)), time.monotonic()


def gil_probe(pid: int) -> Optional[GilProbe]:
    """None where there is nothing to count; the core's extraction says why."""
    try:
        return GilProbe(pid)
    except (NoInterpreter, Fault, OSError, ValueError):
        return None
