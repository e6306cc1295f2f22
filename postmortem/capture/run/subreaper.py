"""Makes this process the one that orphans below it are handed to (prctl(2), PR_SET_CHILD_SUBREAPER, Linux 3.4).

So a grandchild whose parent has ended becomes a child of ours instead of init's, and stays findable.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """False when the kernel refuses; then re-parented processes are found by their group alone."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def _prctl(operation: int, value: int) -> int:
    """-1 when it fails. The core of ctypes without its Python part, which takes four times as long to import."""
    arguments = (operation, value, 0, 0, 0)
    try:
        from _ctypes import call_function, dlopen, dlsym  # noqa: PLC0415

        program: Any = None  # where libc is loaded already
        return int(call_function(dlsym(dlopen(program, 0), "prctl"), arguments))
    except (ImportError, OSError):
        import ctypes  # noqa: PLC0415

        return int(ctypes.CDLL(None).prctl(*arguments))
