"""Makes this process the one that orphans below it are handed to (prctl(2), PR_SET_CHILD_SUBREAPER, Linux 3.4).

So a grandchild whose parent has ended becomes a child of ours instead of init's, and stays findable.
"""

from __future__ import annotations

import ctypes

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """False when the kernel refuses; then re-parented processes are found by their group alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
