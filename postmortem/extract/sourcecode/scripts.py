"""Location of files that the interpreter knows by relative names.

Up to 3.8 a script keeps the name used to start it, such as ``program.py``, without its directory; but the interpreter
puts the script's real directory in front of ``sys.path`` (Modules/main.c, pymain_run_python).
"""

from __future__ import annotations

import posixpath
from typing import List, Optional, Set

from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...memory import Fault
from ..ownership.acquires import Lines

#: Programs insert few directories in front of the script's.
_MOST_DIRECTORIES = 10


def located(file: str, directory: Optional[str]) -> str:
    """Return a frame's file as a path to open.

    A relative name is taken from the script's directory unless its own directories contradict that.
    """
    if directory is None or file.startswith(("/", "<")):
        return file
    parent, name = posixpath.split(posixpath.normpath(file))
    if parent and not directory.endswith("/" + parent):
        return file
    return f"{directory}/{name}"


def script_directory(python: Python, lines: Lines) -> Optional[str]:
    """Return the first directory of ``sys.path`` with a file that frames name relatively; None if there is none."""
    files = _relative(python)
    if files:
        for directory in import_path(python)[:_MOST_DIRECTORIES]:
            if any(lines(located(file, directory)) is not None for file in sorted(files)):
                return directory
    return None


def _relative(python: Python) -> Set[str]:
    threads = [thread for interpreter in python.interpreters for thread in interpreter.threads]
    names = {frame.code.filename for thread in threads for frame in thread.frames}
    return {name for name in names if not name.startswith(("/", "<"))}


def import_path(python: Python) -> List[str]:
    """Return the absolute directories of the main interpreter's ``sys.path``, in order."""
    objects = python.objects
    try:
        namespace = python.memory.u64(python.interpreters[0].address + python.layout.is_sysdict)
        path = objects.lookup(namespace, "path")
        found = [objects.optional_text(item) for item in objects.items(path)] if path else []
    except (Fault, NotThat, IndexError):
        return []
    return [text.rstrip("/") for text in found if text is not None and text.startswith("/") and len(text) > 1]
