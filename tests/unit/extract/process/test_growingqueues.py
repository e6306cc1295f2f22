"""Queues as evidence: which are told, how they grew, and where the program fills them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Tuple

import pytest

from postmortem.cpython.heap.queues import Queue
from postmortem.cpython.heap.variablesearch import User
from postmortem.cpython.objects.builtins import NotThat
from postmortem.evidence import Backlog, PythonFrame
from postmortem.extract.process import growingqueues
from postmortem.extract.process.growingqueues import BacklogBook
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.recorded.window import NO_WINDOW

from ....support.contexts import made
from ....support.pythonheap import Frame

SOURCE = """\
import queue
class Intake:
    def __init__(self):
        self.jobs = queue.Queue()
    def accept(self, job):
        self.jobs.put(job)
    def work(self):
        self.jobs.get()
"""
FILE = "/app/service.py"


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> List[Tuple[Queue, int]]:
    """What the search finds, with the length of each; below zero: it cannot be read."""
    found: List[Tuple[Queue, int]] = []

    class Search:
        def __init__(self, _python: Any, _until: float) -> None:
            pass

        def found(self, _users: Any) -> List[Queue]:
            return [queue for queue, _length in found]

    def length(_objects: Any, queue: Queue) -> int:
        (items,) = [items for one, items in found if one is queue]
        if items < 0:
            raise NotThat("damaged")
        return items

    monkeypatch.setattr(growingqueues, "Queues", Search)
    monkeypatch.setattr(growingqueues, "length", length)
    return found


def queue(address: int, name: str = "Intake.jobs", users: Tuple[User, ...] = ()) -> Queue:
    return Queue(address, "queue.Queue", name, address, 0, list(users))


def told(before: Dict[int, List[Any]], threads: Dict[int, Any], tasks: Dict[str, Any]) -> Tuple[Backlog, ...]:
    items = {str(address): lengths for address, lengths in before.items()}
    window = NO_WINDOW._replace(probes={"queues": {"seconds": 2.0, "items": items}} if before else {})
    python: Any = SimpleNamespace(objects=None)
    context = made(python, ThreadTable.of_states(threads), lines={FILE: SOURCE.splitlines()}.get, window=window)
    shown: Any = lambda frame: PythonFrame(frame.code.filename, 6, frame.function)  # noqa: E731
    return BacklogBook(context, shown, tasks).backlogs()


def backlogs_of(**before: List[Any]) -> Tuple[Backlog, ...]:
    return told({int(name[1:]): lengths for name, lengths in before.items()}, {}, {})


def test_long_ones_are_told_the_longest_first(queues: List[Tuple[Queue, int]]) -> None:
    """A short one is in every program; without a window its growth is unknown, not zero."""
    queues += [(queue(1), 3), (queue(2), 100), (queue(3), 5000)]
    found = backlogs_of()
    assert [(one.items, one.growth, one.seconds, one.least) for one in found] == [
        (5000, None, None, None),
        (100, None, None, None),
    ]


def test_growth_is_what_the_window_saw(queues: List[Tuple[Queue, int]]) -> None:
    """Between its first and its last look; a short queue that grows is told, too; a rate is per second of the looks."""
    queues += [(queue(1), 30), (queue(2), 400)]
    grown, still = sorted(backlogs_of(q1=[4, 24], q2=[400, 400]), key=lambda one: one.items)
    assert (grown.growth, grown.growth_per_s, grown.least) == (20, 10.0, 4)
    assert (still.growth, still.least) == (0, 400)


def test_damaged_looks_are_no_looks(queues: List[Tuple[Queue, int]]) -> None:
    """What is no number, and a single look, say nothing of growth."""
    queues += [(queue(1), 100), (queue(2), 100)]
    assert [one.growth for one in backlogs_of(q1=[None, "5"], q2=[7])] == [None, None]


def test_what_cannot_be_read_is_left_out(queues: List[Tuple[Queue, int]]) -> None:
    """A damaged queue hides no other."""
    queues += [(queue(1), -1), (queue(2), 100)]
    assert [one.items for one in backlogs_of()] == [100]


def test_a_few_are_told(queues: List[Tuple[Queue, int]]) -> None:
    """However many there are."""
    queues += [(queue(n), 100 + n) for n in range(1, 200)]
    assert len(backlogs_of()) <= 20


def test_where_it_is_made_filled_and_emptied(queues: List[Tuple[Queue, int]]) -> None:
    """As the sources of its users' files tell, with the threads and tasks that lead to it."""
    frame: Any = Frame("accept", file=FILE)
    queues.append((queue(1, users=(User(0x10, None, frame), User(None, 0x20, frame))), 100))
    threads = {41: SimpleNamespace(address=0x10, ident=1, object=None, frames=[])}
    tasks = {"task-1": SimpleNamespace(address=0x20, frames=[])}
    (found,) = told({}, threads, tasks)
    assert [[one.line for one in where] for where in (found.made_at, found.filled_at, found.emptied_at)] == [
        [4],
        [6],
        [8],
    ]
    assert [(user.tid, user.task) for user in found.users] == [(41, None), (None, "task-1")]


def test_an_executors_queue_is_filled_through_the_executor(queues: List[Tuple[Queue, int]]) -> None:
    """Nobody names its queue: what leads to it is asked for instead."""
    frame: Any = Frame("accept", file=FILE)
    inner = queue(1, "ThreadPoolExecutor._work_queue", (User(0x10, None, frame),))._replace(through=("Intake.jobs",))
    queues.append((inner, 100))
    (found,) = told({}, {}, {})
    assert [one.line for one in found.filled_at] == [6]
