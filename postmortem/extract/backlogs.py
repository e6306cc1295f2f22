"""Queues with what stands in them, how they grew over the window, and where the program makes, fills and empties them."""

from __future__ import annotations

import ast
import time
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..cpython.backlogs import Backlogs, Queue, length
from ..cpython.frames import Frame
from ..cpython.interpreter import Python, ThreadState
from ..cpython.objects import NotThat
from ..cpython.tasks import TaskState
from ..cpython.variablesearch import User, users_of
from ..evidence import Backlog, PythonFrame, Waker, replace
from ..memory import Fault
from .acquires import Lines
from .window import Window, number

#: Shorter ones are told only when they grew.
_LEAST, _GREW = 64, 16
_MOST_TOLD = 12
_SECONDS = 0.5
_MOST_FILES, _MOST_PLACES = 40, 8
_FILLS = frozenset(
    ("put", "put_nowait", "append", "appendleft", "extend", "send", "send_nowait", "push", "submit", "write")
)
_EMPTIES = frozenset(("get", "get_nowait", "pop", "popleft", "receive", "receive_nowait", "read"))
_LIBRARY = "/lib/python3."


class BacklogBook:
    """Of one process. ``threads``: tid → state; ``tasks``: id → state."""

    def __init__(
        self, python: Python, window: Window, lines: Lines, shown: Callable[[Frame], PythonFrame],
        threads: Mapping[int, ThreadState], tasks: Mapping[str, TaskState],
    ) -> None:  # fmt: skip
        self._python = python
        self._threads, self._tasks = threads, tasks
        self._tid_of = {state.address: tid for tid, state in threads.items()}
        self._task_of = {state.address: ident for ident, state in tasks.items()}
        self._lines = lines
        self._shown = shown
        probe = window.probes.get("queues")
        probe = probe if isinstance(probe, dict) else {}
        self._seconds = number(probe.get("seconds"))
        items = probe.get("items")
        self._before: Dict[str, Sequence[int]] = items if isinstance(items, dict) else {}

    def backlogs(self) -> Tuple[Backlog, ...]:
        """The longest first."""
        users = users_of(self._threads.values(), self._tasks.values())
        queues = Backlogs(self._python, time.monotonic() + _SECONDS).found(users)
        drafts: List[Tuple[Queue, Backlog]] = []
        for queue in queues:
            draft = self._draft(queue, f"backlog-{len(drafts) + 1}")
            if draft is not None:
                drafts.append((queue, draft))
        drafts.sort(key=lambda one: -one[1].items)
        trees: Dict[str, Optional[ast.Module]] = {}
        return tuple(self._told(queue, draft, trees) for queue, draft in drafts[:_MOST_TOLD])

    def _draft(self, queue: Queue, ident: str) -> Optional[Backlog]:
        try:
            now = length(self._python.objects, queue)
        except (Fault, NotThat):
            return None
        seen = self._before.get(str(queue.address), ())
        seen = [n for n in seen if isinstance(n, int)]
        growth = seen[-1] - seen[0] if len(seen) > 1 else None
        if now < _LEAST and (growth or 0) < _GREW:
            return None
        least = min([now, *seen]) if seen else None
        return Backlog(ident, queue.kind, queue.name, now, queue.limit, growth, self._seconds if seen else None, least)

    def _told(self, queue: Queue, draft: Backlog, trees: Dict[str, Optional[ast.Module]]) -> Backlog:
        files = dict.fromkeys(
            user.frame.code.filename for user in queue.users if _LIBRARY not in user.frame.code.filename
        )
        places = _Places(queue.name.replace("[…]", "").rsplit(".", 1)[-1])
        for file in list(files)[:_MOST_FILES]:
            if file not in trees:
                trees[file] = _parsed(self._lines(file))
            tree = trees[file]
            if tree is not None:
                places.look(file, tree)
        return replace(
            draft,
            users=tuple(self._user(user) for user in queue.users),
            made_at=tuple(places.made[:_MOST_PLACES]),
            filled_at=tuple(places.filled[:_MOST_PLACES]),
            emptied_at=tuple(places.emptied[:_MOST_PLACES]),
        )

    def _user(self, user: User) -> Waker:
        tid = self._tid_of.get(user.thread) if user.thread is not None else None
        task = self._task_of.get(user.task) if user.task is not None else None
        return Waker("reach", "memory", tid=tid, task=task, frame=self._shown(user.frame))


def _parsed(texts: Optional[List[str]]) -> Optional[ast.Module]:
    try:
        return ast.parse("\n".join(texts)) if texts else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Places:
    """Where the sources make, fill and empty something of this name: a variable or an attribute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.made: List[PythonFrame] = []
        self.filled: List[PythonFrame] = []
        self.emptied: List[PythonFrame] = []
        self._noted: Set[Tuple[str, int]] = set()

    def look(self, file: str, tree: ast.Module) -> None:
        self._walk(file, tree, "<module>")

    def _walk(self, file: str, node: ast.AST, function: str) -> None:
        waiting: List[Tuple[ast.AST, str]] = [(node, function)]
        while waiting:
            node, function = waiting.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                function = node.name
            self._note(file, node, function)
            waiting.extend((child, function) for child in reversed(list(ast.iter_child_nodes(node))))

    def _note(self, file: str, node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(node.value, ast.Call) and any(self._is_it(target) for target in targets):
                self.made.append(PythonFrame(file, node.lineno, function))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self._is_it(node.func.value):
            into = self.filled if node.func.attr in _FILLS else self.emptied if node.func.attr in _EMPTIES else None
            if into is not None and (file, node.lineno) not in self._noted:
                self._noted.add((file, node.lineno))
                into.append(PythonFrame(file, node.lineno, function))

    def _is_it(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript):
            node = node.value
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        return name == self._name
