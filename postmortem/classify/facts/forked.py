"""What a fork copies and what it leaves behind: frames of the parent in its child, threads of native libraries."""

from __future__ import annotations

import itertools
import re
from typing import Dict, Iterator, List, Optional, Sequence

from ...evidence import NativeFrame, Process, PythonFrame, Thread
from .knowledge import BEGINS, in_table, multiprocessing, own_frame
from .view import View

#: Files and function in which multiprocessing forks.
_LAUNCH = tuple((file, "_launch") for file in multiprocessing("popen_fork"))
#: Extension modules of Python, by the ends of their names (PEP 3149, PEP 384). Plain libraries under them, such as those of
#: linear algebra, start their threads anew after a fork.
_EXTENSION = re.compile(r"\.(cpython-[\w.-]+|abi3|pypy[\w.-]+)\.so$")


def own_frames(frames: Sequence[PythonFrame]) -> List[PythonFrame]:
    """Return the frames of a child of multiprocessing itself, without those that fork copied from its parent."""
    return list(itertools.takewhile(lambda frame: not in_table(frame, BEGINS), frames))


def launches(frame: PythonFrame) -> bool:
    """Return whether multiprocessing forks in a frame: in a child, it and those that called it are copies of the parent's."""
    return in_table(frame, _LAUNCH)


def forked_at(thread: Thread) -> Optional[PythonFrame]:
    """Return the line of the program that forked, as the copied frames of the parent show; None if they do not."""
    return own_frame(list(itertools.dropwhile(lambda frame: not launches(frame), thread.python)))


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
