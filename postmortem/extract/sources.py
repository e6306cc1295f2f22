"""The source lines that stacks show, so that a report names them on another machine too.

Paths come from the target and are not to be trusted: a core could name any file. Only Python sources are opened,
regular ones, and only up to a size.
"""

from __future__ import annotations

import os
import stat
import tokenize
from io import BytesIO
from typing import Dict, Iterable, List, Optional, Set, Tuple

from ..evidence import Process, PythonFrame

_SUFFIXES = (".py", ".pyw", ".pyi", ".pyx")
_MAX_FILE = 8 << 20
_MAX_LINE = 400
_CONTEXT = 1  # lines kept before and after


def lines_of(processes: Iterable[Process], root: str = "") -> Dict[str, Dict[int, str]]:
    """file → line → text for every Python frame of threads, tasks and samples. ``root`` stands before paths."""
    wanted: Dict[str, Set[int]] = {}
    for file, line in _cited(processes):
        wanted.setdefault(file, set()).update(range(max(1, line - _CONTEXT), line + _CONTEXT + 1))
    found = {}
    for file in sorted(wanted):
        texts = _read(root + file)
        if texts is not None:
            found[file] = {n: texts[n - 1][:_MAX_LINE] for n in sorted(wanted[file]) if n <= len(texts)}
    return found


def _cited(processes: Iterable[Process]) -> Iterable[Tuple[str, int]]:
    for process in processes:
        stacks: List[Iterable[PythonFrame]] = [t.python for t in process.threads]
        stacks += [task.stack for task in process.tasks]
        stacks += [loop.ready_callbacks for loop in process.loops]
        stacks += [sample.frames for thread in process.threads for sample in thread.samples]
        stacks += [[held.frame for held in thread.holds] for thread in process.threads]
        for stack in stacks:
            for frame in stack:
                if frame.line is not None:
                    yield frame.file, frame.line


def _read(path: str) -> Optional[List[str]]:
    if not path.startswith("/") or not path.endswith(_SUFFIXES):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb") as stream:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > _MAX_FILE:
            return None
        data = stream.read()
    try:
        encoding, _lines = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding, "backslashreplace").splitlines()
    except (SyntaxError, LookupError):
        return data.decode("utf-8", "backslashreplace").splitlines()
