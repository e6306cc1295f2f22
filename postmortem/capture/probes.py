"""The interpreter's own count of changes of the GIL's holder, read at both ends of the window.

One word of the running process, read without stopping it: hand-offs measured, not estimated.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Dict, Iterable, Optional, Tuple

from ..cpython.interpreter import switch_counter
from ..cpython.runtime import NoInterpreter
from ..memory.base import Fault
from ..memory.procmem import ProcMem

_WORD = 1 << 64
#: For all processes together: one takes a millisecond or two.
_MOST_S = 0.25


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


def gil_probes(pids: Iterable[int]) -> Dict[int, GilProbe]:
    """Of those in which there is something to count, and for whose turn the time is enough; the core's extraction says
    why there is nothing."""
    until = time.monotonic() + _MOST_S
    found = {}
    for pid in pids:
        if time.monotonic() > until:
            break
        with contextlib.suppress(NoInterpreter, Fault, OSError, ValueError):
            found[pid] = GilProbe(pid)
    return found
