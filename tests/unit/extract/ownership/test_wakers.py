"""Which resources are asked for, and what is made of the answers."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest

from postmortem.cpython.heap.reachability import Actor, Obstacle, Reach, ReferredTo, Step
from postmortem.cpython.objects.wordfinders import ArrayFinder
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.cpython.state.interpreter import ThreadState
from postmortem.evidence import Gap, Resource, Thread, Wait, replace
from postmortem.extract.ownership import grading, wakers
from postmortem.extract.ownership.wakers import Books, Reaches
from postmortem.extract.process.fastwords import Means
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.timelimits import TimeLimit

from ....support.contexts import made
from ....support.inwords import remedy, words

QUEUE = Resource("queue-1", "queue", "Queue q", waiters=(11,))
WAITING = Thread(11, wait=Wait("condition", resource="queue-1", endless=True), is_main=True)
STRANGER = ThreadState(2, 0, 2, 12, None)


class Answering(Reaches):
    """Has its walks answered by the test."""

    def __init__(
        self, answers: Dict[str, Reach], gaps: List[Gap], free_threaded: bool = False, whole: bool = False
    ) -> None:
        python: Any = SimpleNamespace(
            runtime=SimpleNamespace(free_threaded=free_threaded),
            objects=None,
            interpreters=[],
            memory=SimpleNamespace(files=[]),
            module_value=None,
            layout=LAYOUTS[3, 12],
            on_musl=False,
        )
        core: Any = SimpleNamespace(written=[], is_whole=whole)
        context = made(python, ThreadTable.of_states({12: STRANGER}), core=core, gaps=gaps)
        super().__init__(context, Books({"queue-1": 0x1000}, {}), lambda frame: frame)  # type: ignore[arg-type, return-value]
        self.answers = answers
        self.asked: List[str] = []

    def _walked(self, referrers: object, wanted: Sequence[Resource], limit: TimeLimit) -> Dict[str, Reach]:
        self.asked += [resource.id for resource in wanted]
        return self.answers


def way(text: str) -> Tuple[Step, ...]:
    """The steps of a way."""
    return tuple(map(Step, text.split(" → ")))


def settled(
    reach: Optional[Reach],
    resource: Resource = QUEUE,
    thread: Thread = WAITING,
    free_threaded: bool = False,
    whole: bool = False,
    others: Sequence[Thread] = (),
) -> Any:
    gaps: List[Gap] = []
    reaches = Answering({"queue-1": reach} if reach else {}, gaps, free_threaded, whole)
    (found,) = reaches.settle([resource], [thread, *others], [])
    return SimpleNamespace(resource=found, gaps=gaps, asked=reaches.asked)


def test_nobody_can_reach_it() -> None:
    """Closed, without wakers; the conclusion is one sentence, and what it rests on is kept beside it."""
    done = settled(Reach(steps=[ReferredTo("the deque", 1, ("x",)), ReferredTo("a Queue", 3, ())], references=4))
    assert done.resource.closed is True and done.resource.wakers == () and done.gaps == []
    (sentence,) = words(done.resource.because)
    assert "only the waiters refer to Queue q" in sentence and "all 4 references" in sentence
    assert words(done.resource.steps) == (
        "a Queue is referenced 3 times, but by nothing that could use it",
        "the deque is referenced once: x",
    )


def test_of_those_who_reach_it_two_are_told_of() -> None:
    """In the same order whatever order memory was read in; all of them are wakers."""
    strangers = [ThreadState(n, 0, n, n, None, name=f"s-{n}") for n in (15, 13, 14)]
    done = settled(Reach([Actor(way("local q of work → the Queue"), state) for state in strangers]))
    assert len(done.resource.wakers) == 3 and len(words(done.resource.because)) == 3
    assert (
        "s-13 and s-14 and 1 more" in words(done.resource.because)[0]
        and "s-13 can reach it" in words(done.resource.because)[1]
    )


def test_threads_that_reach_it_are_wakers() -> None:
    """By the kernel's number; the list is complete."""
    done = settled(Reach([Actor(way("local q of work → the Queue"), STRANGER)]))
    assert done.resource.closed is True and [waker.tid for waker in done.resource.wakers] == [12]


def test_after_some_time_wakers_have_no_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of waits for as many objects would take minutes: who reaches one is said, and not what its code does."""
    monkeypatch.setattr(grading, "_ALL_SECONDS", 0.0)
    reach = Reach([Actor(way("local q of work → the Queue"), STRANGER)])
    assert [(w.tid, w.grade) for w in settled(reach).resource.wakers] == [(12, None)]


def test_a_global_leaves_it_open() -> None:
    """The agents that may use the global are unknown; the place is named."""
    done = settled(Reach([Actor(way("global Q of app → the Queue"))]))
    assert done.resource.closed is None and done.resource.wakers[0].name == "global Q of app → the Queue"
    assert words(done.resource.because) == () and done.gaps == []


def test_what_is_not_known_is_a_gap() -> None:
    """And leaves it open."""
    done = settled(Reach(obstacle=Obstacle("uncounted", "the Queue", 3, 2)))
    assert done.resource == QUEUE
    assert [gap.subject for gap in done.gaps] == ["who else could end one of the waits"] and remedy(done.gaps[0])


COUNTS = Reach(obstacle=Obstacle("uncounted", "the Queue", 3, 2))


def test_a_gap_names_no_remedy_that_cannot_help() -> None:
    """Every page was in the core already."""
    assert [remedy(gap) for gap in settled(COUNTS, whole=True).gaps] == [""]


@pytest.mark.parametrize("lacking", [True, False])
def test_a_search_that_was_too_slow_names_what_makes_it_fast(monkeypatch: pytest.MonkeyPatch, lacking: bool) -> None:
    """The extra with numpy, unless it was used, or would not have been."""
    monkeypatch.setattr(wakers, "best_means", lambda _size: Means(ArrayFinder(), lacks_numpy=lacking))
    (gap,) = settled(Reach(obstacle=Obstacle("late"))).gaps
    assert gap.code == "no-time-for-references" and gap.slots == {"seconds": wakers.SECONDS}
    assert ("postmortem[fast]" in remedy(gap)) is lacking


def test_what_anybody_reaches_is_decided_whatever_else_was_not_found() -> None:
    """It stays open, and a reference more would not close it."""
    done = settled(dataclasses.replace(COUNTS, actors=[Actor(way("global Q of app → the Queue"))]))
    assert done.resource.closed is None and done.gaps == []


def test_only_who_holds_somebody_up_is_worth_a_gap() -> None:
    """An idle worker may wait for whomever; one that the main thread joins may not."""
    worker = replace(WAITING, is_main=False)
    assert settled(COUNTS, thread=worker).gaps == []
    assert len(settled(COUNTS, thread=worker, others=[Thread(1, joins=11, is_main=True)]).gaps) == 1


@pytest.mark.parametrize(
    ("resource", "thread"),
    [
        (replace(QUEUE, owner_tid=12), WAITING),
        (replace(QUEUE, owner_gone=True), WAITING),
        (replace(QUEUE, closed=True), WAITING),
        (replace(QUEUE, kind="pipe"), WAITING),
        (replace(QUEUE, waiters=()), WAITING),
        (QUEUE, replace(WAITING, wait=Wait("condition", resource="queue-1", timeout_s=3.0))),
        (QUEUE, replace(WAITING, wait=Wait("condition", resource="queue-1"))),
    ],
    ids=["held", "its holder is gone", "known", "of the kernel", "not awaited", "with a timeout", "perhaps with one"],
)
def test_some_need_not_be_asked_for(resource: Resource, thread: Thread) -> None:
    """Where something simpler answers, or the wait ends by itself, memory is not searched."""
    done = settled(Reach(), resource, thread)
    assert done.asked == [] and done.resource == resource


def test_free_threaded_interpreters_tell_nothing() -> None:
    """Said once, and nothing is searched."""
    done = settled(Reach(), free_threaded=True)
    assert done.asked == [] and done.resource == QUEUE and len(done.gaps) == 1
