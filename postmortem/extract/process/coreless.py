"""Processes without a core, from /proc and py-spy."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ...evidence import Gap, Process, PythonFrame, Thread, Wait
from ...evidence import replace as changed
from ...memory import Segments
from ..cross_process.ended import exit_status
from ..recorded.raw import Raw, comm, last_call
from ..recorded.shapes import number, pid_of
from ..recorded.timelines import timeline
from ..recorded.window import assigned, counters
from ..waits import threadwaits
from ..waits.endpoints import DescriptorBook
from .signals import caught


def read_without_core(pid: int, raw: Raw) -> Tuple[Process, List[Gap]]:
    """Return a process as /proc and py-spy show it, and the gaps."""
    facts = raw.process
    listed = facts.get("threads")
    tids = set(raw.window.threads)
    tids |= {pid for pid in map(pid_of, listed) if pid is not None} if isinstance(listed, dict) else set()
    samples = assigned(raw.samples, tids)
    gaps = []
    if len(samples) < len(raw.samples):
        gaps.append(Gap("py-spy", f"samples of process {pid}", code="unassigned-samples"))
    raw, tids = raw._replace(samples=samples), tids | set(samples)
    if not all(threadwaits.is_known(last_call(raw.window, tid)) for tid in tids):
        gaps.append(Gap("core", f"system calls of process {pid}", code="restarted-calls"))
    argv = facts.get("argv")
    book = DescriptorBook(raw.descriptors)
    threads = tuple(_bare_thread(tid, pid, raw, book) for tid in sorted(tids, key=lambda t: (t != pid, t)))
    process = Process(
        pid=pid,
        ppid=facts.get("ppid") if isinstance(facts.get("ppid"), int) else None,
        argv=tuple(map(str, argv)) if isinstance(argv, list) else (),
        exe=facts.get("exe") if isinstance(facts.get("exe"), str) else None,
        state=facts.get("state") if isinstance(facts.get("state"), str) else None,
        threads=threads,
        resources=book.resources(),
        listening=raw.descriptors.listening if raw.descriptors else None,
        catches=caught(facts.get("signals_caught")),
        age_s=number(facts.get("age_s")),
        exit_status=exit_status(facts.get("exit_code")),
        io=raw.window.io,
        rss_growth=raw.window.rss_growth,
    )
    return process, gaps


def _bare_thread(tid: int, pid: int, raw: Raw, book: DescriptorBook) -> Thread:
    """Return a thread known only from /proc and py-spy; its last sample serves as its stack."""
    facts = raw.window.threads.get(tid, {})
    samples = raw.samples.get(tid, ())
    last = max(samples, key=lambda s: s.last_s, default=None)
    call = last_call(raw.window, tid)
    stack: Tuple[PythonFrame, ...] = last.frames if last else ()
    memory = Segments({})
    wait: Optional[Wait] = threadwaits.describe(call, memory, raw.descriptors, lambda word: None, ()) if call else None
    if wait is not None and call is not None:
        wait = changed(wait, resource=book.awaited(wait, call, memory, tid))
    if not facts:  # zombies and threads started late are not watched
        facts = {"name": comm(raw, tid), "state": raw.process.get("state") if tid == pid else None}
    name = facts.get("name")
    return Thread(
        tid=tid,
        name=name if isinstance(name, str) else None,
        state=facts.get("state") if isinstance(facts.get("state"), str) else None,
        wait=wait,
        stack=stack,
        counters=counters(raw.window, tid),
        samples=samples,
        is_main=tid == pid,
        timeline=timeline(raw.window, tid, None, (), lambda _word: None),  # only a core identifies the GIL's word
    )
