"""Queues with their lengths, their growth over the window, and the places that make, fill and empty them."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.heap.queues import Queue, length
from ...cpython.heap.variablesearch import User, users_of
from ...cpython.objects.builtins import NotThat
from ...evidence import Backlog, PythonFrame, Waker, replace
from ...frameworks.asyncio.tasks import TaskState
from ...frameworks.queues import Queues
from ...memory import Fault
from ...timelimits import TimeLimit
from ..recorded.shapes import number
from ..sourcecode.usages import last_name
from .context import PythonContext

#: Shorter queues are reported only if they grew by this much.
_LEAST, _GREW = 64, 16
_MOST_TOLD = 12
_SECONDS = 0.5


class BacklogBook:
    """The queues of one process.

    ``tasks``: id → state.
    """

    def __init__(
        self, context: PythonContext, shown: Callable[[Frame], PythonFrame], tasks: Mapping[str, TaskState]
    ) -> None:
        self._python = context.python
        self._threads, self._tasks = context.threads, tasks
        self._task_of = {state.address: ident for ident, state in tasks.items()}
        self._usages = context.usages
        self._shown = shown
        probe = context.probe("queues")
        self._seconds = number(probe.get("seconds"))
        items = probe.get("items")
        self._before: Dict[str, Sequence[int]] = items if isinstance(items, dict) else {}

    def backlogs(self) -> Tuple[Backlog, ...]:
        """Return the queues to report, the longest first."""
        users = users_of(self._threads.states.values(), self._tasks.values())
        queues = Queues(self._python, TimeLimit(_SECONDS)).found(users)
        drafts: List[Tuple[Queue, Backlog]] = []
        for queue in queues:
            draft = self._draft(queue, f"backlog-{len(drafts) + 1}")
            if draft is not None:
                drafts.append((queue, draft))
        drafts.sort(key=lambda one: -one[1].items)
        return tuple(self._told(queue, draft) for queue, draft in drafts[:_MOST_TOLD])

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

    def _told(self, queue: Queue, draft: Backlog) -> Backlog:
        files = dict.fromkeys(user.frame.code.filename for user in queue.users)
        places = self._usages.of(last_name(queue.name), files)
        for name in queue.through if not places.filled else ():  # an executor's queue is filled through the executor
            outer = self._usages.of(last_name(name), files)
            places = places._replace(filled=places.filled or outer.filled)
        if not places.made:
            places = places._replace(made=self._usages.making(queue.kind.rsplit(".", 1)[-1], files))
        return replace(
            draft,
            users=tuple(self._user(user) for user in queue.users),
            made_at=tuple(places.made),
            filled_at=tuple(places.filled),
            emptied_at=tuple(places.emptied),
        )

    def _user(self, user: User) -> Waker:
        task = self._task_of.get(user.task) if user.task is not None else None
        return Waker(
            "reach", "memory", tid=self._threads.tid_of_state(user.thread), task=task, frame=self._shown(user.frame)
        )
