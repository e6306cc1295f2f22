"""Statements about each recorded case, held against its evidence and against each other.

Statements are told apart by their templates and slots: nothing here reads a sentence.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import pytest

from postmortem import evidence as ev
from postmortem.classify import engine
from postmortem.classify.facts.gil import RUNS_WITHOUT
from postmortem.classify.patterns.gil import gil_held_by_native, gil_thrash, python_busy_loop
from postmortem.classify.patterns.io import network_wait, pipe_deadlock, sleeping
from postmortem.classify.patterns.locks import executor_self_deadlock, lock_order_deadlock, orphaned_lock
from postmortem.classify.patterns.processes import child_wait, fork_inherited_lock, fork_lost_thread, frozen, stopped
from postmortem.evidence import Evidence, Process, Thread
from postmortem.findings import Diagnosis, Found, Outcome, Refuted, Template, Text, ThreadName
from postmortem.report import grouping
from postmortem.report.html.data import collected
from postmortem.report.phrases import chains, labels
from postmortem.report.phrases.findings import in_words
from postmortem.report.text import textreport
from postmortem.waitgraph import Agent, Blocked, graph_of

from .cases import all_cases

Slots = Mapping[str, object]


class Told(NamedTuple):
    """A recorded case with what is concluded of it."""

    name: str
    evidence: Evidence
    outcome: Outcome
    diagnosis: Diagnosis


@pytest.fixture(scope="module")
def told() -> List[Told]:
    """Return every recorded case, diagnosed."""
    found = []
    for case in all_cases():
        if case.evidence.exists():
            evidence = ev.decode(case.evidence.read_bytes())
            outcome = engine.classify(evidence)
            found.append(Told(case.name, evidence, outcome, in_words(outcome, evidence)))
    return found


# ---------------------------------------------------------------------- Ruled out


def _threads(evidence: Evidence, slot: object) -> List[Tuple[Process, Thread]]:
    """Return the threads that a slot names."""
    tid = slot.tid if isinstance(slot, (ThreadName, Agent)) else None
    return [(p, t) for p in evidence.processes for t in p.threads if tid is not None and t.tid == tid]


def _process(evidence: Evidence, slots: Slots) -> Process:
    return next(process for process in evidence.processes if process.pid == slots["pid"])


def _thread(evidence: Evidence, slots: Slots) -> Thread:
    """Return the thread of the slot ``thread``; a number may be one of several namespaces."""
    return _threads(evidence, slots["thread"])[0][1]


def _resource(evidence: Evidence, slots: Slots) -> Optional[ev.Resource]:
    process, thread = _threads(evidence, slots["thread"])[0]
    wanted = thread.wait.resource if thread.wait is not None else None
    return next((one for one in process.resources if one.id == wanted), None)


def _has(outcome: Outcome, pattern: str) -> bool:
    return any(found.pattern == pattern for found in outcome.findings)


def _is_server(evidence: Evidence, slots: Slots) -> bool:
    wait, resource = _thread(evidence, slots).wait, _resource(evidence, slots)
    accepts = wait is not None and wait.syscall in ("accept", "accept4")
    return accepts or bool(resource is not None and (resource.accepted or resource.listening))


def _all_held(evidence: Evidence, slots: Slots) -> bool:
    process = _process(evidence, slots)
    kinds = {"lock", "rlock", "import-lock", "mutex", "rwlock"}
    wanted = [one for one in process.resources if one.kind in kinds and one.waiters]
    tids = {thread.tid for other in evidence.processes for thread in other.threads}
    return all(one.owner_tid in tids and one.owner_tid not in one.waiters for one in wanted)


def _forks(evidence: Evidence, slots: Slots) -> bool:
    forked = sum(process.forked is True for process in evidence.processes)
    return isinstance(slots["forks"], int) and forked <= slots["forks"] <= len(evidence.processes)


def _moves(thread: Thread) -> bool:
    return thread.counters is not None and bool(thread.counters.switches_per_s or thread.counters.cpu_s)


Check = Callable[[Evidence, Outcome, Slots], bool]
#: What has to be true where a statement stands under *Ruled out*.
HOLDS: Dict[Template, Check] = {
    frozen._NOT_FROZEN: lambda e, o, s: not any(p.cgroup is not None and p.cgroup.frozen for p in e.processes),
    stopped._NONE_STOPPED: lambda e, o, s: not any(t.state in ("T", "t") for p in e.processes for t in p.threads),
    gil_thrash._SLOW: lambda e, o, s: (getattr(_process(e, s).gil, "handoffs_per_s", None) or 0) == s["rate"],
    gil_thrash._AT_REST: lambda e, o, s: all(
        (t.counters.cpu_s or 0.0) <= gil_thrash.MIN_CPU * t.counters.seconds
        for t in _process(e, s).threads
        if t.counters is not None
    ),
    RUNS_WITHOUT: lambda e, o, s: all(t.gil != "waits" for t in _process(e, s).threads),
    gil_held_by_native._CHANGED_HANDS: lambda e, o, s: bool(s["count"]),
    gil_held_by_native._INTERPRETERS_OWN: lambda e, o, s: _thread(e, s).gil == "holds",
    gil_held_by_native._COMES_BACK: lambda e, o, s: len({x.frames for x in _thread(e, s).samples}) > 1
    or _moves(_thread(e, s)),
    python_busy_loop._MOVES_BETWEEN: lambda e, o, s: labels.computes(_thread(e, s)),
    python_busy_loop._LOOP_TURNS: lambda e, o, s: labels.computes(_thread(e, s)),
    network_wait._WAKES: lambda e, o, s: _moves(_thread(e, s)),
    network_wait._AWAITS_CONNECTIONS: lambda e, o, s: _is_server(e, s),
    network_wait._AWAITS_CLIENT: lambda e, o, s: _is_server(e, s),
    network_wait._HAS_TIMEOUT: lambda e, o, s: getattr(_thread(e, s).wait, "endless", None) is False,
    network_wait._PIPE_DEADLOCK: lambda e, o, s: _has(o, "pipe-deadlock"),
    pipe_deadlock._FEEDER: lambda e, o, s: _has(o, "mp-join-before-drain"),
    child_wait._CANNOT_WRITE: lambda e, o, s: any(
        t.wait is not None and t.wait.syscall in ("write", "writev") for t in _process(e, s).threads
    ),
    child_wait._HAS_ENDED: lambda e, o, s: not any(p.pid == s["pid"] and p.state != "Z" for p in e.processes),
    child_wait._TIMEOUT: lambda e, o, s: getattr(_thread(e, s).wait, "endless", None) is not True,
    orphaned_lock._ALL_HELD: lambda e, o, s: _all_held(e, s),
    lock_order_deadlock._NO_CIRCLE: lambda e, o, s: not graph_of(e).cycles,
    executor_self_deadlock._CAN_GO_ON: lambda e, o, s: all(
        graph_of(e).stuck(Agent(p.pid, t.tid)) is None for p, t in _threads(e, s["worker"])
    ),
    fork_lost_thread._NONE: lambda e, o, s: _forks(e, s) and not _has(o, "fork-lost-thread"),
    fork_inherited_lock._NO_LOCK: lambda e, o, s: not _has(o, "fork-inherited-lock"),
    sleeping._OTHER_WORKS: lambda e, o, s: all(t.wait is not None for _p, t in _threads(e, s["sleeper"])),
}  # fmt: skip


def test_what_is_ruled_out_is_ruled_out(told: List[Told]) -> None:
    """Each statement under *Ruled out* is true as a sentence of its own, by the evidence alone."""
    wrong, checked = [], set()
    for one in told:
        for item in one.outcome.ruled_out:
            text = item.because
            check = HOLDS.get(text.template) if isinstance(text, Text) else None
            if isinstance(text, Text) and check is not None:
                checked.add(text.template)
                if not check(one.evidence, one.outcome, dict(text.slots)):
                    wrong.append((one.name, item))
    assert wrong == []
    assert len(checked) >= 20


def test_nothing_is_both_claimed_and_ruled_out(told: List[Told]) -> None:
    """A pattern that is ruled out for a thread, or for everything, is not claimed of the same above *possible*."""
    assert [x for one in told for x in _claimed(one)] == []


def _claimed(one: Told) -> Iterator[Tuple[str, Refuted]]:
    firm = [found for found in one.outcome.findings if found.confidence != "possible"]
    for item in one.outcome.ruled_out:
        text, likewise = item.because, [found for found in firm if found.pattern == item.pattern]
        if not isinstance(text, Text) or not likewise:
            continue
        agents = {value.tid for _name, value in text.slots if isinstance(value, (ThreadName, Agent))}
        tids = {culprit.tid for found in likewise for culprit in found.culprits}
        if not text.slots or (set(dict(text.slots)) == {"thread"} and agents & tids):
            yield one.name, item


# ---------------------------------------------------------------------- threads


def _waiting(found: Found) -> Iterator[Agent]:
    """Yield the agents that the steps of a derivation say to wait."""
    for said in found.evidence:
        if isinstance(said, Blocked):
            yield from said.agents.first


def test_no_thread_runs_and_waits(told: List[Told]) -> None:
    """A thread that a finding says to be blocked is described as waiting, and not as computing."""
    wrong = []
    for one in told:
        places = graph_of(one.evidence).places
        for found in one.outcome.findings:
            for agent in _waiting(found):
                thread = places.thread(agent)
                if thread is not None and (labels.computes(thread) or (thread.wait is None and thread.gil == "holds")):
                    wrong.append((one.name, found.pattern, agent))
    assert wrong == []


def test_a_whole_core_is_one(told: List[Told]) -> None:
    """The share of a core in a summary is the one that the thread's description has; a third is no whole one."""
    seen = 0
    for one in told:
        for found in one.outcome.findings:
            text = found.summary
            if not isinstance(text, Text) or text.template not in (
                python_busy_loop._SUMMARY,
                python_busy_loop._DELAYED,
            ):
                continue
            slots = dict(text.slots)
            thread = _thread(one.evidence, slots)
            assert thread.counters is not None
            share = (thread.counters.cpu_s or 0.0) / thread.counters.seconds
            assert slots["share"] == pytest.approx(min(share, 1.0)), one.name
            assert (share >= python_busy_loop.MIN_SHARE) == (text.template is python_busy_loop._SUMMARY), one.name
            seen += 1
    assert seen > 3


def test_what_rests_is_blamed_for_nothing(told: List[Told]) -> None:
    """A thread that computes is in no group of those that hardly use any CPU; nor is one that a finding names."""
    for one in told:
        for process in one.evidence.processes:
            for group in grouping.threads(process, one.diagnosis):
                if group.idle:
                    assert not any(labels.computes(thread) for thread in group.threads), one.name


def test_a_thread_is_described_once(told: List[Told]) -> None:
    """The description of a wait names its descriptor, its object and the addresses of that once."""
    wrong = []
    for one in told:
        for process in one.evidence.processes:
            for thread in process.threads:
                resource = labels.find_resource(process, thread.wait.resource if thread.wait is not None else None)
                if resource is None or thread.wait is None:
                    continue
                said = labels.now((thread,), process, labels.Glossary(labels.TERMS))
                parts = [resource.description, f"(descriptor {thread.wait.fd})", f"(descriptor {thread.wait.fd}):"]
                if said.count(parts[0]) > 1 or said.count(parts[1]) > max(1, parts[0].count(parts[1])):
                    wrong.append((one.name, said))
    assert wrong == []


def test_a_crash_is_said_alike(told: List[Told]) -> None:
    """The thread that crashed is described so in the text and on the page."""
    seen = 0
    for one in told:
        crashed = [p for p in one.evidence.processes if p.crash is not None and p.crash.tid is not None]
        for process in crashed:
            threads = [t for t in process.threads if process.crash is not None and t.tid == process.crash.tid]
            for thread in threads:
                seen += 1
                assert labels.now((thread,), process, labels.Glossary()) == "crashed here"
        if crashed and threads:
            assert "crashed here" in collected(one.evidence, one.diagnosis)["strings"], one.name  # type: ignore[operator]
    assert seen > 5


def test_reports_group_threads_alike(told: List[Told]) -> None:
    """The groups of a page are those of the text."""
    grouped = 0
    for one in told:
        data = collected(one.evidence, one.diagnosis)
        rows: List[List[object]] = data["agents"]  # type: ignore[assignment]
        shapes: List[List[object]] = data["shapes"]  # type: ignore[assignment]
        text = {
            (at, frozenset(t.tid for t in group.threads))
            for at, process in enumerate(one.evidence.processes)
            for group in grouping.threads(process, one.diagnosis)
            if len(group.threads) > 1
        }
        page = set()
        for runs in data["alike"]:  # type: ignore[attr-defined]
            numbers = [n for run in runs for n in (range(run[0], run[1] + 1) if isinstance(run, list) else [run])]
            page.add((shapes[rows[numbers[0]][0]][1], frozenset(rows[n][1] for n in numbers)))  # type: ignore[call-overload]
        assert page == text, one.name
        grouped += len(text)
    assert grouped > 20


# ---------------------------------------------------------------------- facts and chains


def test_no_fact_is_said_twice(told: List[Told]) -> None:
    """The evidence of a finding has each fact once, in words too."""
    twice = [
        (one.name, finding.pattern, fact)
        for one in told
        for finding in one.diagnosis.findings
        for fact in set(finding.evidence)
        if finding.evidence.count(fact) > 1
    ]
    assert twice == []


def test_a_cycle_is_told_once(told: List[Told]) -> None:
    """Where a wait chain tells a cycle, its links are not listed again as evidence."""
    circles = 0
    for one in told:
        leading = next(iter(one.diagnosis.findings), None)
        ways = chains.ways(one.evidence, leading)
        blamed = set(chains.blames(graph_of(one.evidence), leading)) if leading is not None else set()
        if leading is None or not any(way.circle & blamed for way in ways):
            continue
        circles += 1
        links = {leading.evidence[number] for number in leading.links}
        assert not links & set(chains.facts(one.evidence, leading)), one.name
        assert set(leading.evidence) - links <= set(chains.facts(one.evidence, leading)), one.name
        text = " ".join(textreport.render(one.evidence, one.diagnosis, color=False).split())
        assert not any(" ".join(link.split()) in text for link in links), one.name
    assert circles > 10


def test_a_chain_ends_where_it_tells_something(told: List[Told]) -> None:
    """No chain ends in a wait of which nothing was read and that anybody may end."""
    for one in told:
        graph = graph_of(one.evidence)
        for chain in chains.telling(graph, one.evidence, next(iter(one.diagnosis.findings), None)):
            edge = chain.edges[-1]
            read = not isinstance(edge.what, ev.Fact) or edge.what.code not in ("some-call", "something")
            assert read or chain.end not in ("anyone", "outside") or graph.stuck(edge.waiter), one.name
