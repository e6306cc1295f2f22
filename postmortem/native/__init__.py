"""Native stacks: gdb is found and run on ``gdb/stacks.py``; its stacks are merged with the Python ones."""

from __future__ import annotations

from .corefile import CoreFile
from .locate import find_gdb
from .merge import merge
from .stacks import NativeStacks
from .unwinding import Unwinding, may_share, start, unwind

__all__ = ["CoreFile", "NativeStacks", "Unwinding", "find_gdb", "may_share", "merge", "start", "unwind"]
