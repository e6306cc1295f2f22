"""Native locks of the C and C++ libraries, read through ``Memory``.

Uses the standard library alone: gdb's Python imports this package, too.
"""

from __future__ import annotations

from .futexes import FutexCall
from .naming import Wanted, describe
from .nativewait import NativeWait, Threads
from .waits import ABOVE, awaited, program_frame

__all__ = ["ABOVE", "FutexCall", "NativeWait", "Threads", "Wanted", "awaited", "describe", "program_frame"]
