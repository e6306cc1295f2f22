"""What the C and C++ libraries keep in memory of their own locks, read through Memory. The standard library alone: gdb's
Python imports this too."""

from __future__ import annotations

from .futexes import FutexCall
from .naming import Wanted, describe
from .nativewait import NativeWait, Threads
from .waits import ABOVE, awaited, program_frame

__all__ = ["ABOVE", "FutexCall", "NativeWait", "Threads", "Wanted", "awaited", "describe", "program_frame"]
