"""Reading a process or its core in a child process.

The target may have damaged what is read, and the capture still has a tree to release and to end. ptrace and the freeze
stay in this process; a child that crashes, loops or blocks for ever costs only what it was to read.
"""

from __future__ import annotations

import time
from typing import Any, Callable, MutableMapping, Optional, Tuple

from ..foreign.children import Answer, Child

Helpers = MutableMapping[int, Optional[int]]
#: The result: a JSON value, and bytes beside it.
Found = Tuple[Any, bytes]
#: Seconds that a child has beyond the time at which its reading ends.
_GRACE_S = 1.0


def read_apart(work: Callable[[], Found], until: float, helpers: Optional[Helpers]) -> Answer:
    """Call ``work`` in a child that has all of our descriptors; return its result.

    - ``until``: time.monotonic() at which ``work`` itself stops
    - ``helpers``: see foreign.children.Child

    Raises OSError, children.Lost.
    """

    def serve(_request: Any) -> Tuple[Any, Tuple[bytes, ...], None]:
        value, data = work()
        return value, (data,), None

    with Child(serve, keep=None, helpers=helpers) as child:
        return child.ask(None, max(until, time.monotonic()) + _GRACE_S)
