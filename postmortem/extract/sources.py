"""The source lines that stacks show, so that a report names them on another machine too.

Paths come from the target and are not to be trusted: a core could name any file. Only Python sources are opened,
regular ones, and only up to a size.
"""

from __future__ import annotations

import ast
import os
import re
import stat
import tokenize
from io import BytesIO
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ..evidence import Process, PythonFrame
from .scripts import located

_SUFFIXES = (".py", ".pyw", ".pyi", ".pyx")
#: Nobody changes a loop of the standard library.
_STDLIB = re.compile(r"/lib(64)?/python3\.\d+t?/(?!site-packages/|dist-packages/)")
_MAX_FILE = 8 << 20
_MAX_LINE = 400
_CONTEXT = 1  # lines kept before and after


class Sources(NamedTuple):
    lines: Dict[str, Dict[int, str]]  # file → line → text
    loops: Dict[str, Dict[int, Tuple[int, ...]]]  # file → line → lines of the loops around it, innermost first


def read_sources(processes: Iterable[Process], root: str = "") -> Sources:
    """For every Python frame of threads, tasks and samples. ``root`` stands before paths."""
    cited: Dict[str, Set[int]] = {}
    paths: Dict[str, Set[str]] = {}
    for process in processes:
        for file, line in _cited(process):
            cited.setdefault(file, set()).add(line)
            path = located(file, process.directory)
            if path.startswith("/"):
                paths.setdefault(file, set()).add(path)
    found = Sources({}, {})
    for file in sorted(cited):
        found_at = paths.get(file, set())
        # two programs may call different files by one relative name
        texts = read_lines(root + min(found_at)) if len(found_at) == 1 else None
        if texts is None:
            continue
        around = {} if _STDLIB.search(file) else _loops_around(texts, cited[file])
        wanted = {n for line in cited[file] for n in range(line - _CONTEXT, line + _CONTEXT + 1)}
        wanted |= {n for headers in around.values() for n in headers}
        found.lines[file] = {n: texts[n - 1][:_MAX_LINE] for n in sorted(wanted) if 1 <= n <= len(texts)}
        if around:
            found.loops[file] = around
    return found


def _loops_around(texts: List[str], lines: Set[int]) -> Dict[int, Tuple[int, ...]]:
    """The `for` and `while` statements of the same function that enclose each line. The source may have changed, or
    be for another version of Python: then nothing is known."""
    try:
        tree = ast.parse("\n".join(texts))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    around: Dict[int, Tuple[int, ...]] = {}
    waiting: List[Tuple[ast.AST, Tuple[int, ...]]] = [(tree, ())]
    while waiting:
        node, headers = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            headers = ()
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            headers = (node.lineno, *headers)
        if isinstance(node, ast.stmt):
            last = getattr(node, "end_lineno", None) or node.lineno
            for line in lines.intersection(range(node.lineno, last + 1)):
                around[line] = headers  # what lies further in comes later
        waiting.extend((child, headers) for child in ast.iter_child_nodes(node))
    return {line: headers for line, headers in sorted(around.items()) if headers}


def _cited(process: Process) -> Iterable[Tuple[str, int]]:
    stacks: List[Iterable[PythonFrame]] = [t.python for t in process.threads]
    stacks += [task.stack for task in process.tasks]
    stacks += [(*loop.ready_callbacks, *loop.watchers) for loop in process.loops]
    stacks += [sample.frames for thread in process.threads for sample in thread.samples]
    stacks += [[held.frame for held in thread.holds] for thread in process.threads]
    for stack in stacks:
        for frame in stack:
            if frame.line is not None:
                yield frame.file, frame.line


def read_lines(path: str) -> Optional[List[str]]:
    """The lines of a Python source file; None for anything else, or when it is not here."""
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
