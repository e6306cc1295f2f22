"""Making this process the one to which orphans below it are reparented.

A grandchild whose parent has ended becomes a child of ours instead of init's, and can still be found. Source: prctl(2),
PR_SET_CHILD_SUBREAPER (Linux 3.4).
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Become the subreaper; return False when the kernel refuses. Orphans are then found by their group only."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def _prctl(operation: int, value: int) -> int:
    """Call prctl(2); return -1 when it fails.

    Uses the C core of ctypes, since its Python part takes four times as long to import.
    """
    arguments = (operation, value, 0, 0, 0)
    try:
        from _ctypes import call_function, dlopen, dlsym  # noqa: PLC0415

        program: Any = None  # the program itself, which has libc loaded
        return int(call_function(dlsym(dlopen(program, 0), "prctl"), arguments))
    except (ImportError, OSError):
        import ctypes  # noqa: PLC0415

        return int(ctypes.CDLL(None).prctl(*arguments))
