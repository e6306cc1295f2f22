"""Twins of the corpus's programs: the same program beside what real ones have as well, or beside code that really ends its wait.

    python -m tests.corpora.twins [--cases GLOB]... [--kinds NAME,NAME] [--jobs N] [--write]

A twin runs the unchanged program; what joins it is started by a ``sitecustomize`` of its own folder. Bystanders change no
verdict: the label's pattern leads. Rescuers are counter-twins: each would end the waits for events, queues, conditions,
semaphores and futures of the program an hour later, so that nothing may say above *possible* that nothing can end them.
Prints each twin against its case; with --write the evidence is kept beside the case, as ``twin-NAME.json``.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from postmortem import evidence as ev
from postmortem.evidence import Evidence
from postmortem.evidence import replace as changed

from ..support.diagnosed import classify
from .cases import Case, all_cases
from .judge import judge
from .runs import NotRecorded, record

_COLLECT = """
import asyncio, gc, queue, threading, time

KINDS = (threading.Event, threading.Condition, threading.Semaphore, threading.Barrier, queue.Queue, asyncio.Event, asyncio.Queue)


def known():
    return [one for one in gc.get_objects() if isinstance(one, KINDS)]
"""

#: What only looks, logs or handles signals, by name.
BYSTANDERS: Dict[str, str] = {
    "heartbeat": """
import threading, time

beats = 0


def beat():
    global beats
    while True:
        beats += 1
        time.sleep(0.5)


threading.Thread(target=beat, name="telemetry", daemon=True).start()
""",
    "handler": """
import signal, sys


def stop(number, frame):
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, stop)
""",
    "logger": """
import logging, logging.handlers, queue

records = queue.Queue(-1)
listener = logging.handlers.QueueListener(records, logging.NullHandler())
listener.start()
""",
    "statistics": _COLLECT
    + """

def look():
    while True:
        total = 0
        for one in known():
            for name in ("qsize", "is_set", "empty", "locked"):
                read = getattr(one, name, None)
                if read is not None:
                    total += bool(read())
        time.sleep(0.5)


threading.Thread(target=look, name="statistics", daemon=True).start()
""",
    "subclass": """
import threading


class Worker(threading.Thread):
    kind = "worker"

    def run(self):
        super().run()


threading.Thread = Worker
""",
    "retry": """
import queue, threading

waits, gets = threading.Event.wait, queue.Queue.get


def wait(self, timeout=None):
    if timeout is not None:
        return waits(self, timeout)
    while not waits(self, 0.9):
        pass
    return True


def get(self, block=True, timeout=None):
    if timeout is not None or not block:
        return gets(self, block, timeout)
    while True:
        try:
            return gets(self, True, 0.9)
        except queue.Empty:
            continue


threading.Event.wait, queue.Queue.get = wait, get
""",
}

_END = """

def end(one):
    if isinstance(one, (threading.Event, asyncio.Event)):
        one.set()
    elif isinstance(one, (queue.Queue, asyncio.Queue)):
        one.put_nowait(None)
    elif isinstance(one, threading.Semaphore):
        one.release()
    elif isinstance(one, threading.Barrier):
        one.abort()
    else:
        with one:
            one.notify_all()
"""
_FOUND = "    time.sleep(0.8)\n    found = known()\n"
#: What ends the waits an hour later, by name.
RESCUERS: Dict[str, str] = {
    "direct": _COLLECT
    + _END
    + f"""

def rescue():
{_FOUND}    time.sleep(3600)
    for one in found:
        end(one)


threading.Thread(target=rescue, daemon=True).start()
""",
    "levels": _COLLECT
    + _END
    + f"""

class Rescuer:
    def __init__(self, found):
        self.found = found

    def run(self):
        time.sleep(3600)
        self.all()

    def all(self):
        for one in self.found:
            self.one(one)

    def one(self, one):
        end(one)


def rescue():
{_FOUND}    Rescuer(found).run()


threading.Thread(target=rescue, daemon=True).start()
""",
    "callbacks": _COLLECT
    + _END
    + f"""

def rescue():
{_FOUND}    callbacks = [lambda one=one: end(one) for one in found]
    del found
    time.sleep(3600)
    for call in callbacks:
        call()


threading.Thread(target=rescue, daemon=True).start()
""",
    "partial": _COLLECT
    + _END
    + f"""
import functools


def rescue():
{_FOUND}    actions = dict(enumerate(functools.partial(end, one) for one in found))
    del found
    time.sleep(3600)
    for action in actions.values():
        action()


threading.Thread(target=rescue, daemon=True).start()
""",
    "timer": _COLLECT
    + _END
    + f"""

def arm():
{_FOUND}    for one in found:
        threading.Timer(3600, end, (one,)).start()


threading.Thread(target=arm, daemon=True).start()
""",
    "accept": _COLLECT
    + _END
    + f"""
import socketserver

rescued = []


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        for one in rescued:
            end(one)


def serve():
{_FOUND}    rescued.extend(found)
    del found
    socketserver.TCPServer(("127.0.0.1", 0), Handler).serve_forever()


threading.Thread(target=serve, daemon=True).start()
""",
    "signal": _COLLECT
    + _END
    + f"""
import signal

rescued = []


def handle(number, frame):
    for one in rescued:
        end(one)


def arm():
{_FOUND}    rescued.extend(found)


signal.signal(signal.SIGUSR1, handle)
threading.Thread(target=arm, daemon=True).start()
""",
}
#: Patterns that say that nothing can end a wait; of cases with these labels counter-twins are made.
NOBODY = ("missed-wakeup", "future-never-resolved")
#: The twin whose samples and counters are taken away; it needs no run of its own.
DROPPED = "unsampled"


class Twin(NamedTuple):
    """The diagnosis of a twin beside its label's. ``failure``: why there is none."""

    case: Case
    name: str
    verdict: Optional[str] = None
    confidence: Optional[str] = None
    right: bool = False
    failure: Optional[str] = None

    def __str__(self) -> str:
        said = self.failure or f"{self.verdict} ({self.confidence})"
        return f"{'ok  ' if self.right else 'MISS'} {self.case.name:<50} {self.name:<10} {said}"


def unsampled(evidence: Evidence) -> Evidence:
    """Return evidence without samples and counters, as of a lone core with a window that saw nothing."""
    processes = tuple(
        changed(p, threads=tuple(changed(t, samples=(), counters=None, timeline=()) for t in p.threads))
        for p in evidence.processes
    )
    return changed(evidence, processes=processes)


def told(case: Case, name: str, evidence: Evidence) -> Twin:
    """Return a twin judged: a bystander's by the label, a rescuer's by what must not be said."""
    diagnosis = classify(evidence)
    if name in RESCUERS:
        loud = [f for f in diagnosis.findings if f.pattern in NOBODY and f.confidence != "possible"]
        first = loud[0] if loud else next(iter(diagnosis.findings), None)
        verdict, confidence = (first.pattern, first.confidence) if first is not None else (None, None)
        return Twin(case, name, verdict, confidence, not loud)
    found = judge(case, diagnosis)
    return Twin(case, name, found.verdict, found.confidence, found.right and not found.false_proofs)


def wanted(case: Case, kinds: Sequence[str]) -> Iterator[str]:
    """Yield the names of the twins that a case has."""
    for name in kinds:
        if case.record == "capture" and (
            name not in RESCUERS or (case.kind == "hang" and set(NOBODY) & set(case.verdict[:1]))
        ):
            yield name


def _run(case: Case, name: str, write: bool) -> Twin:
    try:
        recorded = record(case, case.recorded_with, {**BYSTANDERS, **RESCUERS}[name])
    except NotRecorded as exc:
        return Twin(case, name, failure=str(exc)[:120])
    if write:
        (case.folder / f"twin-{name}.json").write_bytes(recorded)
    return told(case, name, ev.decode(recorded))


def main() -> int:
    """Run the twins and print how many kept their verdict, by kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", action="append")
    parser.add_argument("--kinds", default=",".join((*BYSTANDERS, *RESCUERS)))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    globs = asked.cases or ["*"]
    cases = [case for case in all_cases() if any(fnmatch.fnmatch(case.name, glob) for glob in globs)]
    jobs: List[Tuple[Case, str]] = [(case, name) for case in cases for name in wanted(case, asked.kinds.split(","))]
    twins: List[Twin] = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for twin in pool.map(lambda job: _run(job[0], job[1], asked.write), jobs):
            print(twin, flush=True)
            twins.append(twin)
    for name in asked.kinds.split(","):
        mine = [twin for twin in twins if twin.name == name and twin.failure is None]
        print(f"{name}: {sum(twin.right for twin in mine)} of {len(mine)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
