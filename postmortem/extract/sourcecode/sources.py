"""Source lines cited by stacks, stored so that reports show them on other machines."""

from __future__ import annotations

import ast
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ...evidence import Gap, Process, PythonFrame
from ...foreign.processfiles import REASONS, Files
from .branches import deciding, of_ranks
from .scripts import located

_MAX_LINE = 400
_CONTEXT = 1  # lines kept before and after


class Sources(NamedTuple):
    """Cited source lines and their structure."""

    lines: Dict[str, Dict[int, str]]  # file → line → text
    loops: Dict[str, Dict[int, Tuple[int, ...]]]  # file → line → lines of the enclosing loops, innermost first
    #: For processes of one program, where their main threads are: file → line → lines of the conditions that decide
    #: whether it is reached.
    branches: Dict[str, Dict[int, Tuple[int, ...]]]
    gaps: List[Gap]  # files that exist and were not read


def read_sources(processes: Sequence[Process], files_of: Callable[[int], Files]) -> Sources:
    """Return the sources of every Python frame of threads, tasks and samples.

    ``files_of``: files of a process, by PID.
    """
    cited: Dict[str, Set[int]] = {}
    places: Dict[str, Set[Tuple[str, Files]]] = {}
    asked: Dict[int, Set[str]] = {}
    for process in processes:
        files = files_of(process.pid)
        for file, line in _cited(process):
            cited.setdefault(file, set()).add(line)
            path = located(file, process.directory)
            if path.startswith("/"):
                places.setdefault(file, set()).add((path, files))
                asked.setdefault(process.pid, set()).add(path)
    ranks = of_ranks(processes)
    found = Sources({}, {}, {}, [])
    for file in sorted(cited):
        read = [(files.lines(path), path, files) for path, files in places.get(file, ())]
        # two programs may use one relative name, or two roots one name, for different files
        if not read or any(texts != read[0][0] for texts, _path, _files in read):
            continue
        texts, path, files = read[0]
        if texts is None:
            continue
        tree = files.parsed(path)
        around = _loops_around(tree, cited[file]) if tree is not None else {}
        wanted = {n for line in cited[file] for n in range(line - _CONTEXT, line + _CONTEXT + 1)}
        branches = deciding(tree, ranks[file]) if tree is not None and file in ranks else {}
        wanted |= {n for headers in (*around.values(), *branches.values()) for n in headers}
        found.lines[file] = {n: texts[n - 1][:_MAX_LINE] for n in sorted(wanted) if 1 <= n <= len(texts)}
        if around:
            found.loops[file] = around
        if branches:
            found.branches[file] = branches
    for pid, names in asked.items():
        found.gaps.extend(_unread(files_of(pid).unread, sorted(names), pid))
    return found


def _unread(codes: Mapping[str, str], names: Sequence[str], pid: int) -> List[Gap]:
    """Return a gap for each reason why sources of a process were not read (``Files.unread``)."""
    by_code: Dict[str, List[str]] = {}
    for name in names:
        if name in codes:
            by_code.setdefault(codes[name], []).append(name)
    found = []
    for code, several in by_code.items():
        reason, remedy = REASONS[code]
        more, subject = len(several) - 1, f"sources of process {pid}"
        found.append(Gap.of("files", subject, "sources-unread", remedy=remedy, file=several[0], more=more, why=reason))
    return found


def _loops_around(tree: ast.Module, lines: Set[int]) -> Dict[int, Tuple[int, ...]]:
    """Return the `for` and `while` statements of the same function that enclose each line, innermost first."""
    around: Dict[int, Tuple[int, ...]] = {}
    waiting: List[Tuple[ast.AST, Tuple[int, ...]]] = [(tree, ())]
    while waiting:
        node, headers = waiting.pop()
        if isinstance(node, ast.stmt):
            last = getattr(node, "end_lineno", None) or node.lineno
            inside = [line for line in lines if node.lineno <= line <= last]
            if not inside:
                continue  # nor does any statement inside
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                headers = ()
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                headers = (node.lineno, *headers)
            around.update((line, headers) for line in inside)  # inner statements come later
        waiting.extend((child, headers) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return {line: headers for line, headers in sorted(around.items()) if headers}


def _cited(process: Process) -> Iterable[Tuple[str, int]]:
    stacks: List[Iterable[PythonFrame]] = [t.python for t in process.threads]
    stacks += [task.stack for task in process.tasks]
    stacks += [task.cancellation.caught_at for task in process.tasks if task.cancellation is not None]
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
