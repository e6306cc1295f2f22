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
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..evidence import Process, PythonFrame
from .branches import deciding, of_ranks
from .scripts import located

_SUFFIXES = (".py", ".pyw", ".pyi", ".pyx")
_STDLIB = re.compile(r"/lib(64)?/python3\.\d+t?/(?!site-packages/|dist-packages/)")
_MAX_FILE = 8 << 20
_MAX_LINE = 400
_CONTEXT = 1  # lines kept before and after
NO_ROOTS: Mapping[int, str] = {}


class Sources(NamedTuple):
    lines: Dict[str, Dict[int, str]]  # file → line → text
    loops: Dict[str, Dict[int, Tuple[int, ...]]]  # file → line → lines of the loops around it, innermost first
    branches: Dict[str, Dict[int, Tuple[int, ...]]]  # of ranks: file → line → lines of the conditions that it depends on


def read_sources(processes: Sequence[Process], root: str = "", roots: Mapping[int, str] = NO_ROOTS) -> Sources:
    """For every Python frame of threads, tasks and samples. ``root`` stands before paths; ``roots``: others, by process."""
    cited: Dict[str, Set[int]] = {}
    paths: Dict[str, Set[str]] = {}
    for process in processes:
        for file, line in _cited(process):
            cited.setdefault(file, set()).add(line)
            path = located(file, process.directory)
            if path.startswith("/"):
                paths.setdefault(file, set()).add(roots.get(process.pid, root) + path)
    ranks = of_ranks(processes)
    found = Sources({}, {}, {})
    for file in sorted(cited):
        found_at = paths.get(file, set())
        # two programs may call different files by one relative name
        texts = read_lines(min(found_at)) if len(found_at) == 1 else None
        if texts is None:
            continue
        tree = parsed(min(found_at))
        around = _loops_around(tree, cited[file]) if tree is not None else {}
        wanted = {n for line in cited[file] for n in range(line - _CONTEXT, line + _CONTEXT + 1)}
        branches = deciding(tree, ranks[file]) if tree is not None and file in ranks else {}
        wanted |= {n for headers in (*around.values(), *branches.values()) for n in headers}
        found.lines[file] = {n: texts[n - 1][:_MAX_LINE] for n in sorted(wanted) if 1 <= n <= len(texts)}
        if around:
            found.loops[file] = around
        if branches:
            found.branches[file] = branches
    return found


def _loops_around(tree: ast.Module, lines: Set[int]) -> Dict[int, Tuple[int, ...]]:
    """The `for` and `while` statements of the same function that enclose each line."""
    around: Dict[int, Tuple[int, ...]] = {}
    waiting: List[Tuple[ast.AST, Tuple[int, ...]]] = [(tree, ())]
    while waiting:
        node, headers = waiting.pop()
        if isinstance(node, ast.stmt):
            last = getattr(node, "end_lineno", None) or node.lineno
            inside = [line for line in lines if node.lineno <= line <= last]
            if not inside:
                continue  # nor does any statement within hold one
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                headers = ()
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                headers = (node.lineno, *headers)
            around.update((line, headers) for line in inside)  # what lies further in comes later
        waiting.extend((child, headers) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return {line: headers for line, headers in sorted(around.items()) if headers}


def _cited(process: Process) -> Iterable[Tuple[str, int]]:
    stacks: List[Iterable[PythonFrame]] = [t.python for t in process.threads]
    stacks += [task.stack for task in process.tasks]
    stacks += [(*loop.ready_callbacks, *loop.watchers, *loop.spawned_at) for loop in process.loops]
    stacks += [sample.frames for thread in process.threads for sample in thread.samples]
    stacks += [[held.frame for held in thread.holds] for thread in process.threads]
    for backlog in process.backlogs:
        stacks.append([*backlog.made_at, *backlog.filled_at, *backlog.emptied_at])
    for kept in process.kept_exceptions:
        stacks.append([*kept.stored_at, *(frame for frame in (kept.place, kept.caught) if frame is not None)])
    for resource in process.resources:
        stacks.append([*resource.taken_at, *(waker.frame for waker in resource.wakers if waker.frame is not None)])
    stacks.append(process.stops)
    for stack in stacks:
        for frame in stack:
            if frame.line is not None:
                yield frame.file, frame.line


def read_lines(path: str) -> Optional[List[str]]:
    """The lines of a Python source file; None for anything else, or when it is not here."""
    key = _key(path)
    return _read(*key) if key is not None else None


def parsed(path: str) -> Optional[ast.Module]:
    """The syntax tree of a program's own source file. The source may have changed, or be for another version of
    Python: None where it is none here. Nobody changes the standard library: it is not parsed."""
    key = _key(path)
    return _parse(*key) if key is not None and not _STDLIB.search(path) else None


def _key(path: str) -> Optional[Tuple[str, int, int]]:
    """What a file's content is remembered by."""
    if not path.startswith("/") or not path.endswith(_SUFFIXES):
        return None
    try:
        info = Path(path).stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(info.st_mode) or info.st_size > _MAX_FILE:
        return None
    return path, info.st_mtime_ns, info.st_size


@lru_cache(maxsize=256)
def _read(path: str, _changed: int, _size: int) -> Optional[List[str]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as stream:
        data = stream.read(_MAX_FILE)
    try:
        encoding, _lines = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding, "backslashreplace").splitlines()
    except (SyntaxError, LookupError):
        return data.decode("utf-8", "backslashreplace").splitlines()


@lru_cache(maxsize=64)
def _parse(path: str, changed: int, size: int) -> Optional[ast.Module]:
    texts = _read(path, changed, size)
    try:
        return ast.parse("\n".join(texts), filename="") if texts is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
