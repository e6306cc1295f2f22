"""Small evidence for tests: processes, threads and tasks with what a rule looks at, everything else unknown."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from postmortem.classify.engine import all_patterns
from postmortem.classify.facts.view import View
from postmortem.classify.pattern import Match
from postmortem.evidence import (
    Counters,
    Evidence,
    Frame,
    Gil,
    HeldLock,
    Interpreter,
    Loop,
    Process,
    PythonFrame,
    PythonInfo,
    Resource,
    Sample,
    Task,
    Thread,
    Trigger,
    Wait,
)
from postmortem.evidence.vocabulary import OwnerBasis, ResourceKind, TriggerKind
from postmortem.findings import CONFIDENCES

from .diagnosed import classify

LIB = "/usr/lib/python3.12"
APP = "/app/service.py"


def frame(function: str, line: int = 1, file: str = APP) -> PythonFrame:
    return PythonFrame(file, line, function)


def stack(*functions: str) -> Tuple[PythonFrame, ...]:
    """Innermost first; ``threading.wait`` is a frame of the standard library's threading.py."""
    found = []
    for number, name in enumerate(functions, 1):
        module, _dot, function = name.rpartition(".")
        file = f"{LIB}/{module.replace('.', '/')}.py" if module else APP
        found.append(PythonFrame(file, number, function))
    return tuple(found)


def counters(cpu: float = 0.0, switches: int = 0, delay: float = 0.0, seconds: float = 1.0) -> Counters:
    return Counters(seconds, cpu, switches, 0, delay)


def thread(tid: int, frames: Sequence[Frame] = (), **known: Any) -> Thread:
    return Thread(
        tid=tid,
        name=known.pop("name", f"T-{tid}"),
        stack=tuple(frames),
        is_main=known.pop("is_main", tid == 1),
        **known,
    )


def locked(resource: str, endless: bool = True) -> Wait:
    return Wait("lock", "futex", resource=resource, endless=endless)


def held(resource: str, depth: int = 0, line: int = 9, basis: OwnerBasis = "with-slot") -> HeldLock:
    return HeldLock(resource, frame("holds", line), depth, basis)


def lock(
    ident: str,
    owner: Optional[int],
    waiters: Sequence[int] = (),
    basis: OwnerBasis = "with-slot",
    kind: ResourceKind = "lock",
) -> Resource:
    return Resource(ident, kind, f"Lock {ident}", owner, basis if owner else None, tuple(waiters), True)


def process(threads: Sequence[Thread], **known: Any) -> Process:
    gil = known.pop("gil", Gil(True, None, 0.005))
    argv, python = known.pop("argv", ("python", "service.py")), known.pop("python", PythonInfo("3.12.1"))
    return Process(
        pid=known.pop("pid", 1),
        argv=argv,
        python=python,
        interpreters=known.pop("interpreters", (Interpreter(0, gil),)),
        threads=tuple(threads),
        **known,
    )


def evidence(
    *processes: Process, window: Optional[float] = 1.0, seconds: float = 2.0, kind: TriggerKind = "timeout"
) -> Evidence:
    return Evidence(Trigger(kind, seconds if kind == "timeout" else None), tuple(processes), window_s=window)


def samples(*stacks: Tuple[int, Sequence[PythonFrame]]) -> Tuple[Sample, ...]:
    return tuple(Sample(count, 0.0, 1.0, tuple(frames)) for count, frames in stacks)


def poller(ident: str, loop: str = "loop-1") -> Task:
    frames = (*stack("asyncio.tasks.__sleep0", "asyncio.tasks.sleep"), frame("poll", 40), frame("main", 60))
    return Task(ident, ident, "pending", loop, frames, "sleep(0)")


def loop(ident: str, tid: int, ready: int = 1) -> Loop:
    return Loop(ident, tid, ready=ready, scheduled=0)


def found(known: Evidence) -> Dict[str, str]:
    return {f.pattern: f.confidence for f in classify(known).findings}


def verdict(known: Evidence) -> object:
    return classify(known).verdict


def lines(known: Evidence) -> List[object]:
    return [c.line for c in classify(known).findings[0].culprits]


def two_locks(basis: OwnerBasis = "with-slot", endless: bool = True) -> Process:
    """Return a process in which two threads want each other's lock, and a third queues for one of them."""
    one = thread(2, [frame("one", 11)], wait=locked("lock-1", endless), holds=(held("lock-2", line=10),))
    two = thread(3, [frame("two", 21)], wait=locked("lock-2", endless), holds=(held("lock-1", line=20),))
    late = thread(4, [frame("late", 31)], wait=locked("lock-1"))
    return process(
        [thread(1, [frame("main")]), one, two, late],
        resources=(lock("lock-1", 3, (2, 4), basis), lock("lock-2", 2, (3,), basis)),
    )


def polling(count: int, handoffs: float, switches: int, cpu: float, delay: float = 0.0, waiting: int = 3) -> Process:
    """Return a process with ``count`` event loops in threads that poll; figures per second over all of them."""
    loops = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
    threads = [
        thread(
            n + 2,
            loops,
            counters=counters(cpu / count, switches // count, delay / count),
            gil="waits" if n < waiting else "detached",
            samples=samples((50, loops)),
        )
        for n in range(count)
    ]
    main = thread(1, [frame("call", 5), frame("main", 6)], gil="waits", counters=counters(0.01, 100))
    return process(
        [main, *threads],
        gil=Gil(True, 2, 0.005, int(handoffs), handoffs),
        loops=tuple(loop(f"loop-{n}", n + 2) for n in range(count)),
        tasks=tuple(poller(f"task-{n}", f"loop-{n}") for n in range(count)),
    )


def resting(wait: Wait, *functions: str, **known: object) -> Process:
    """Return a process whose only thread waits, at these functions."""
    return process([thread(1, stack(*functions), wait=wait, counters=counters())], **known)


IDLE_LOOP = Wait("event-loop", "epoll_wait", endless=True)
RESTING = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")


def counted(
    states: Dict[str, int],
    calls: Optional[Dict[str, int]] = None,
    wchan: Optional[Dict[str, int]] = None,
    cpu: float = 0.0,
    delay: float = 0.0,
    switches: int = 0,
    faults: int = 0,
) -> Counters:
    """Return counters of one second, with how often a thread was seen in which state, call and kernel function."""
    return Counters(
        1.0, cpu, switches, 0, delay, major_faults=faults, states=states, syscalls=calls or {}, wchan=wchan or {}
    )


def claimed(known: Evidence, pattern: str) -> Optional[str]:
    """Return the highest confidence of a pattern's own matches, without verdicts of the root; None if it claims nothing."""
    view = View(known)
    rule = next(rule for rule in all_patterns() if rule.id == pattern)
    levels = {answer.confidence for answer in rule.match(view) if isinstance(answer, Match)}
    return next((confidence for confidence in CONFIDENCES if confidence in levels), None)


def silent(known: Evidence, *patterns: str) -> bool:
    """Return whether these patterns claim nothing, and the verdict of the root is at most *possible* under their ids."""
    told = found(known)
    return all(claimed(known, one) is None and told.get(one) in (None, "possible") for one in patterns)


def firm(known: Evidence) -> Dict[str, str]:
    """Return the findings above *possible*."""
    return {pattern: confidence for pattern, confidence in found(known).items() if confidence != "possible"}
