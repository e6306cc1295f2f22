"""Threads of native libraries that a fork left behind: the parent has them, its forked child does not."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

from ...evidence import NativeFrame, Process, Thread
from .view import View

#: Extension modules of Python, by the ends of their names (PEP 3149, PEP 384). Plain libraries under them, such as those of
#: linear algebra, start their threads anew after a fork.
_EXTENSION = re.compile(r"\.(cpython-[\w.-]+|abi3|pypy[\w.-]+)\.so$")


def lost_helpers(view: View, process: Process) -> Dict[str, List[Thread]]:
    """Return extension module → threads of the parent that run only in it, of modules in which the process has no thread.

    Empty unless the process was forked from a captured one.
    """
    parent = view.by_pid.get(process.ppid or 0)
    if not process.forked or parent is None:
        return {}
    mine = {frame.module for thread in process.threads for frame in thread.native}
    found: Dict[str, List[Thread]] = {}
    for thread in parent.threads:
        module = _extension(thread) if not thread.python else None
        if module is not None and module not in mine:
            found.setdefault(module, []).append(thread)
    return found


def _extension(thread: Thread) -> Optional[str]:
    """Return the extension module in which a thread's innermost frame of one is."""
    frames = (frame for frame in thread.stack if isinstance(frame, NativeFrame))
    return next((f.module for f in frames if f.module is not None and _EXTENSION.search(f.module)), None)
