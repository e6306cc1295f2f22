"""The order of findings: one test a rule, with made matches."""

from __future__ import annotations

import random
from typing import Any, List, Optional, Sequence, Tuple

import pytest

from postmortem.classify.engine import all_patterns
from postmortem.classify.facts.view import View
from postmortem.classify.order import ranked
from postmortem.classify.pattern import TIERS, Match, Pattern, Tier
from postmortem.evidence import Process, Task, TaskWait, Wait
from postmortem.evidence import replace as changed
from postmortem.findings import Confidence, Culprit, Template

from ...support.diagnosed import classify
from ...support.make import APP, evidence, frame, held, lock, locked, process, thread, two_locks

#: 1 wants what 2 holds, 2 what 3 holds; 4 and 5 run.
CHAIN = process(
    [
        thread(1, [frame("main", 1)], wait=locked("a")),
        thread(2, [frame("two", 2)], wait=locked("b"), holds=(held("a"),)),
        thread(3, [frame("three", 3)], holds=(held("b"),)),
        thread(4, [frame("four", 4)]),
        thread(5, [frame("five", 5)]),
    ],
    resources=(lock("a", 2), lock("b", 3)),
)
Item = Tuple[Pattern, Match]


def item(
    name: str, tid: Optional[int] = None, confidence: Confidence = "likely", tier: Tier = "wait", **known: Any
) -> Item:
    """A match that names the line of a thread; ``task``, ``yields`` and ``at`` (a process) are as they say."""
    pid, task = known.pop("at", 1), known.pop("task", None)
    named = tid is not None or task is not None
    culprits = (Culprit(pid, tid, task, APP, tid, "f"),) if named else ()
    pattern = Pattern(name, name, "e", "r", tier, yields=known.pop("yields", False))
    return pattern, Match(confidence, Template(name)(), (), culprits, pid=pid, **known)


def order(*items: Item, processes: Sequence[Process] = (CHAIN,)) -> List[str]:
    """The ids in their order, which does not depend on the order in which they were found."""
    view = View(evidence(*processes))
    found = [pattern.id for pattern, _match in ranked(view, list(items))]
    for seed in range(5):
        mixed = random.Random(seed).sample(list(items), len(items))
        assert [pattern.id for pattern, _match in ranked(view, mixed)] == found
    return found


def test_of_alike_waits_first_the_one_that_no_code_is_known_to_end() -> None:
    """Before the name decides, and after everything else."""
    assert order(item("a", 4), item("b", 5, unnamed=True)) == ["b", "a"]
    assert order(item("a", 4), item("b", 5, "possible", unnamed=True)) == ["a", "b"]


def test_the_possible_comes_last() -> None:
    """Whatever its tier, and though it were the cause."""
    assert order(item("a", 3, "possible", "corruption"), item("b", 1, "likely", "symptom")) == ["b", "a"]


def test_how_a_process_ended_comes_after_why() -> None:
    """Also where it is proven, and the other only likely; but before what is only possible."""
    killed = item("killed", 4, "proven", "symptom", yields=True)
    assert order(killed, item("b", 5, "likely", "peer")) == ["b", "killed"]
    assert order(killed, item("b", 5, "possible", "crash")) == ["killed", "b"]


def test_killed_tells_nothing_of_the_cause_on_the_same_thread() -> None:
    """The main thread's own finding comes first, be it the weakest."""
    killed = item("killed", 1, "proven", "symptom", yields=True)
    assert order(killed, item("b", 1, "likely", "symptom")) == ["b", "killed"]


def test_a_crash_comes_before_what_its_thread_waited_for() -> None:
    """Memory that was overwritten before the crash, the crash before a lock, with equal confidence."""
    crash = item("crash", 1, "proven", "crash")
    assert order(item("lock", 1, "proven", "resource"), crash) == ["crash", "lock"]
    assert order(crash, item("heap", 1, "proven", "corruption")) == ["heap", "crash"]
    assert order(item("lock", 4, "proven", "resource"), crash) == ["crash", "lock"]


def test_a_cause_comes_before_its_consequence() -> None:
    """Along the wait graph, over several waits, whatever the tiers say."""
    cause, between, consequence = (
        item("z", 3, tier="peer"),
        item("y", 2, tier="resource"),
        item("x", 1, tier="specific"),
    )
    assert order(consequence, between, cause) == ["z", "y", "x"]
    assert order(consequence, cause) == ["z", "x"]


def test_agents_in_a_cycle_are_no_causes_of_each_other() -> None:
    """The tier decides."""
    known = process(
        [thread(n, [frame("f", n)], wait=locked(f"l{n}")) for n in (1, 2)], resources=(lock("l1", 2), lock("l2", 1))
    )
    one, other = item("x", 1, tier="exit"), item("y", 2, tier="group")
    assert order(one, other, processes=(known,)) == ["y", "x"]


def test_two_that_seem_to_cause_each_other() -> None:
    """Each names a thread behind the other's: neither comes first by its cause, so confidence and tier decide."""
    culprits = tuple(Culprit(1, tid, None, APP, tid, "f") for tid in (1, 3))
    both = changed_culprits(item("x", 1, tier="exit"), culprits)
    other = changed_culprits(item("y", 2, tier="group"), tuple(Culprit(1, tid, None, APP, tid, "f") for tid in (2,)))
    assert order(both, other) == ["y", "x"]
    by_pid = [item("p", 4, cause_pid=2), item("q", 2, "proven", at=2, cause_pid=1)]
    assert order(*by_pid, processes=(CHAIN, changed(CHAIN, pid=2, ppid=1))) == ["q", "p"]


def changed_culprits(one: Item, culprits: Tuple[Culprit, ...]) -> Item:
    pattern, match = one
    return pattern, Match(match.confidence, match.summary, (), culprits, pid=match.pid)


def test_what_is_proven_follows_from_what_is_proven_alone() -> None:
    """A likely cause stays behind it; a proven one leads it."""
    assert order(item("x", 1, "proven"), item("z", 3, "likely")) == ["x", "z"]
    assert order(item("x", 1, "proven"), item("z", 3, "proven", "peer")) == ["z", "x"]


def test_a_symptom_causes_symptoms_alone() -> None:
    """And what names no line causes nothing that does."""
    symptom = item("z", 3, tier="symptom")
    assert order(item("x", 1, tier="wait"), symptom) == ["x", "z"]
    assert order(item("x", 1, tier="symptom"), symptom) == ["z", "x"]


def test_the_process_that_another_waits_for_comes_first() -> None:
    """By its pid; without a line it explains nothing to one that has some."""
    child = changed(CHAIN, pid=2, ppid=1)
    waits = item("child-wait", 4, tier="symptom", cause_pid=2)
    assert order(waits, item("z", 5, tier="peer", at=2), processes=(CHAIN, child)) == ["z", "child-wait"]
    assert order(waits, item("z", None, tier="symptom", at=2), processes=(CHAIN, child)) == ["child-wait", "z"]


def test_tasks_are_agents_as_threads_are() -> None:
    """A finding names them by name; the graph knows their ids."""
    tasks = (
        Task(
            "7",
            "outer",
            "pending",
            None,
            (frame("o"),),
            "Task",
            wait=TaskWait("task", None, ("8",), False, True),
            ready=False,
        ),
        Task(
            "8", "inner", "pending", None, (frame("i"),), "Future", wait=TaskWait("future", endless=True), ready=False
        ),
    )
    known = process([thread(1, [frame("main")])], tasks=tasks)
    outer, inner = item("x", task="outer", tier="specific"), item("y", task="inner", tier="peer")
    assert order(outer, inner, processes=(known,)) == ["y", "x"]


@pytest.mark.parametrize(("stronger", "weaker"), list(zip(TIERS, TIERS[1:])))
def test_of_two_that_name_one_thread_the_tier_decides(stronger: Tier, weaker: Tier) -> None:
    """Though the other one is proven."""
    assert order(item("x", 4, "proven", weaker), item("y", 4, "likely", stronger)) == ["y", "x"]


def test_the_tier_lifts_nothing_that_is_possible() -> None:
    """Over what is likely about the same thread."""
    assert order(item("x", 4, "likely", "symptom"), item("y", 4, "possible", "specific")) == ["x", "y"]


def test_proven_comes_before_likely() -> None:
    """Findings about unrelated threads keep their order by confidence, whatever the tier."""
    assert order(item("x", 4, "likely", "specific"), item("y", 5, "proven", "peer")) == ["y", "x"]


def test_then_the_tier_then_a_line_then_the_name() -> None:
    """So that the order is always the same."""
    assert order(item("x", 4, tier="wait"), item("y", 5, tier="group")) == ["y", "x"]
    assert order(item("x"), item("y", 5)) == ["y", "x"]
    assert order(item("y", 4), item("x", 5)) == ["x", "y"]


def test_all_are_there_once() -> None:
    """Many findings, with causes that go round: none is lost or doubled."""
    many = [item(f"p{n:02}", 1 + n % 5, tier=TIERS[n % len(TIERS)], cause_pid=1 + n % 2) for n in range(60)]
    found = order(*many, processes=(CHAIN, changed(CHAIN, pid=2, ppid=1)))
    assert sorted(found) == sorted(pattern.id for pattern, _match in many)


def test_every_pattern_has_a_tier_and_few_yield() -> None:
    """Only what says how a process ended gives way to all others."""
    assert {rule.pattern.tier for rule in all_patterns()} == set(TIERS)
    assert [rule.id for rule in all_patterns() if rule.pattern.yields] == ["killed"]


def test_a_deadlock_comes_before_who_waits_for_it() -> None:
    """As the engine finds them: the cycle leads, and a parent that waits for the process stands behind."""
    waits = thread(9, [frame("build", 2)], wait=Wait("process", "wait4", pid=1, endless=True), is_main=True)
    diagnosis = classify(evidence(process([waits], pid=9), changed(two_locks(), ppid=9)))
    assert [finding.pattern for finding in diagnosis.findings] == ["lock-order-deadlock", "child-wait"]
