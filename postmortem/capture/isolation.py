"""Reading of a process or its core in a child of its own: what is read is the target's to damage, and the capture has a tree to
let go and to end. ptrace and the freezing stay here; a child that crashes, loops or waits for ever costs what it was to read.
"""

from __future__ import annotations

import time
from typing import Any, Callable, MutableMapping, Optional, Tuple

from ..foreign.children import Answer, Child

Helpers = MutableMapping[int, Optional[int]]
#: What comes back: JSON, and bytes beside it.
Found = Tuple[Any, bytes]
#: What a child has beyond the time until which it is to read.
_GRACE_S = 1.0


def read_apart(work: Callable[[], Found], until: float, helpers: Optional[Helpers]) -> Answer:
    """Return what ``work`` finds, called in a child with every descriptor of ours. ``until``: time.monotonic() up to which
    ``work`` itself goes on. ``helpers``: see foreign.children.Child. Raises OSError, children.Lost."""

    def serve(_request: Any) -> Tuple[Any, Tuple[bytes, ...], None]:
        value, data = work()
        return value, (data,), None

    with Child(serve, keep=None, helpers=helpers) as child:
        return child.ask(None, max(until, time.monotonic()) + _GRACE_S)
