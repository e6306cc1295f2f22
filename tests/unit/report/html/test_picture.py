"""Which agents stand in the picture at first: the telling ones, few of them, alike ones folded."""

from __future__ import annotations

from typing import Iterable, Tuple

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report.html.agents import Agents, causes
from postmortem.report.html.picture import Shown, choose
from postmortem.report.html.tables import Tables
from postmortem.waitgraph import Agent, graph_of

from ....support.crowds import crowd
from ....support.samples import py, sleeper, thrash


def shown(sample: Tuple[ev.Evidence, fi.Diagnosis], cited: Iterable[Agent] = ()) -> Shown:
    evidence, diagnosis = sample
    return choose(graph_of(evidence), evidence, diagnosis, cited)


def test_a_small_circle_stands_there_whole() -> None:
    """Each of its members one by one."""
    found = shown(crowd(3, 0))
    assert set(found.agents) >= {Agent(999, 1000), Agent(999, 1001), Agent(999, 1002)}
    assert found.circles == ((Agent(999, 1000), Agent(999, 1001), Agent(999, 1002)),)


def test_of_a_large_circle_the_middle_is_folded() -> None:
    """Two thousand boxes tell no more than ten; everybody is somewhere all the same."""
    found = shown(crowd(300, 400))
    assert len(found.agents) <= 40
    assert len(found.folds) <= 14
    assert len(found.agents) + sum(map(len, found.folds)) >= 700
    assert [len(circle) for circle in found.circles] == [300, 400]


def test_alike_ones_are_one_box() -> None:
    """Sixty tasks that poll at one line, each on a loop of its own, and the threads of these loops."""
    sample = thrash()
    evidence, diagnosis = sample
    graph = graph_of(evidence)
    blamed = Agents(evidence, diagnosis, graph, Tables(evidence)).blamed
    assert len(blamed) == 60
    found = shown(sample, blamed)
    assert set(blamed) in [set(fold) for fold in found.folds]
    assert Agent(100, 100) in found.agents  # the main thread


def test_what_causes_the_verdict_is_a_cause() -> None:
    """And what causes that; findings beside it are not, though what they name is cited."""
    one, two, three, four = (
        fi.Finding(name, "likely", "s", "e", "r", because_of=why)
        for name, why in (("a", ("b",)), ("b", ("c", "a", "gone")), ("c", ()), ("d", ("a",)))
    )
    assert causes(fi.Diagnosis("a", "s", (one, four, three, two))) == [one, two, three]
    assert causes(fi.Diagnosis(None, "s")) == []


def test_nobody_stands_there_twice() -> None:
    """Neither one by one and folded, nor in two folds."""
    for sample in (crowd(30, 40), thrash(), sleeper()):
        found = shown(sample, graph_of(sample[0]).agents)
        everybody = [*found.agents, *(agent for fold in found.folds for agent in fold)]
        assert len(everybody) == len(set(everybody))


def test_without_a_finding_the_main_threads_stand_there() -> None:
    """The picture of a healthy process is not empty."""
    assert shown(sleeper()).agents[0] == Agent(7, 7)


def test_those_who_wait_for_the_gil_lead_to_its_holder() -> None:
    """The graph counts them not as waiters, a person does."""
    holder = ev.Thread(1, "holder", "R", "holds", stack=(py("work"),), is_main=True)
    rest = tuple(
        ev.Thread(n, f"w{n}", "S", "waits", ev.Wait("gil", "futex"), stack=(py("wait"),)) for n in range(2, 12)
    )
    process = ev.Process(1, threads=(holder, *rest), interpreters=(ev.Interpreter(0, ev.Gil(True, 1)),))
    evidence = ev.Evidence(ev.Trigger("pid"), (process,))
    found = shown((evidence, fi.Diagnosis(None, "s")))
    assert found.agents[0] == Agent(1, 1)
    assert [len(fold) for fold in found.folds] == [10]
