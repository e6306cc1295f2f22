"""What a fork copies and what it leaves behind: frames of the parent in its child, threads of native libraries."""

from __future__ import annotations

import itertools
import re
from typing import Dict, Iterator, List, Optional, Sequence

from ...evidence import NativeFrame, Process, PythonFrame, Thread
from .knowledge import BEGINS, in_table, multiprocessing, own_frame
from .view import View

#: Files and function in which multiprocessing forks.
LAUNCH = (multiprocessing("popen_fork"), "_launch")
#: Extension modules of Python, by the ends of their names (PEP 3149, PEP 384). Plain libraries under them, such as those of
#: linear algebra, start their threads anew after a fork.
_EXTENSION = re.compile(r"\.(cpython-[\w.-]+|abi3|pypy[\w.-]+)\.so$")


def own_frames(frames: Sequence[PythonFrame]) -> List[PythonFrame]:
    """Return the frames of a child of multiprocessing itself, without those that fork copied from its parent."""
    return list(itertools.takewhile(lambda frame: not in_table(frame, BEGINS), frames))


def forked_at(thread: Thread) -> Optional[PythonFrame]:
    """Return the line of the program that forked, as the copied frames of the parent show; None if they do not."""
    files, function = LAUNCH
    depth = next((n for n, f in enumerate(thread.python) if f.function == function and f.file.endswith(files)), None)
    return own_frame(thread.python[depth:]) if depth is not None else None


def own_stacks(child: Process) -> Iterator[List[PythonFrame]]:
    """Yield the own frames of each thread and task of a child of multiprocessing."""
    for thread in child.threads:
        yield own_frames(thread.python)
    yield from (list(task.stack) for task in child.tasks)


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
