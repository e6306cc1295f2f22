"""A process waits for its child: the child's own diagnosis is the answer.

**What it looks like.** A thread that matters is in `wait4`, or reads its child's output, without a timeout, and the child
is alive.

**Easily mistaken for** `pipe-deadlock`, where the child cannot end because its parent does not read what it writes.

**Why it hangs.** The child has not ended; its own finding, beside this one, says why. A worker that waits for orders of a program
which has ended, and only joins its workers any more, does nothing wrong: nobody told it to end.

**Remedy.** Fix the child, or give the wait a timeout (`subprocess.run(..., timeout=...)`).
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional

from ....evidence import Process, PythonFrame, Thread
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent, program
from ...facts import clauses
from ...facts.deeds import later, who_above
from ...facts.knowledge import in_table, multiprocessing, own_frame
from ...facts.view import View
from ...pattern import ANYTHING, Answer, Match, No, Pattern
from ...roots.rest import is_asleep
from ...roots.roots import frame_of, kind_of, roots
from ...roots.walk import follow

PATTERN = Pattern(
    id="child-wait",
    tier="symptom",
    title="waits for a child process",
    explanation="The program waits for a process that it started, and that process has not ended.",
    remedy="Look at what the child does, and give the wait a timeout (subprocess.run(timeout=…), Popen.wait(timeout)).",
    references=("https://docs.python.org/3/library/subprocess.html#subprocess.Popen.wait",),
)

_ASYNC = ("asyncio/subprocess.py", "asyncio/base_subprocess.py")
_COMMUNICATE = ("_communicate", "communicate")
#: What joins the processes of multiprocessing that are no daemons when the program has ended.
_JOINS_AT_EXIT = tuple((file, "_exit_function") for file in multiprocessing("util"))
_ANY_CHILD = ("wait4", "waitid")  # used to wait for any child; a parent in vfork waits for its youngest

_SUMMARY = Template("{thread} of {program} waits{at} for {child}")
_WAITS = Template("{thread} waits{at} for {child}, without a timeout")
_DOES = Template("{child}: {what}{used}")
_IN_CALL = Template("in {call}")
_RUNNING = Template("running")
_WAITING = Template("waiting")
_USED = Template("; it used {cpu:.0%} of a core")
_ONE_PROCESS = Template("a core file holds one process: it does not show what the child did")
_SUPERVISES = Template("it waits for whichever child ends first, as a supervisor does: this may be its normal work")
_ITS_CHILD = Template("its child {which}")
_A_CHILD = Template("a child")
_PROGRAM = Template("{name} ({pid})")
_TIMEOUT = Template("{thread} waits for a child with a timeout")
_CANNOT_WRITE = Template("child {pid} waits to write its output: what holds it up is whatever does not read that")
_IS_A_SERVER = Template("child {pid} is a server, and waits for requests: it is to run until it is told to end")
_FORGOTTEN = Template(
    "{child} waits for orders, and the program that would give them has ended: it only joins its workers"
)
_HAS_ENDED = Template("child {pid} has ended: the wait is for another process that keeps its output open")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread and task that waits for a child process."""
    for process in view.processes:
        for thread in process.threads:
            if not _waits(thread):
                continue
            if thread.wait is not None and thread.wait.endless is False:
                yield No(_TIMEOUT(thread=clauses.named(thread)))
            elif view.matters(process, thread) or not thread.python:
                yield from _match(view, process, thread, own_frame(thread.python), None)
        yield from _tasks(view, process)


def _tasks(view: View, process: Process) -> Iterator[Answer]:
    """Yield matches for coroutines: `await process.wait()` of asyncio, on an idle loop."""
    loops = {loop.id: view.thread(process, loop.tid) for loop in process.loops}
    for task in process.tasks:
        thread = loops.get(task.loop or "")
        frame = own_frame(task.stack)
        if task.state != "pending" or not any(f.file.endswith(_ASYNC) for f in task.stack[:4]) or frame is None:
            continue
        if thread and thread.wait and thread.wait.endless and view.rests(thread) and view.matters(process, thread):
            yield from _match(view, process, thread, frame, task.name)


def _waits(thread: Thread) -> bool:
    """Return whether a thread waits for a child's end, or for its output in `communicate`."""
    wait = thread.wait
    if wait is None:
        return False
    if wait.kind == "process":
        return True
    reading = wait.kind in ("pipe", "event-loop", "other") and wait.syscall not in ("write", "writev")
    return reading and any(f.function in _COMMUNICATE and f.file.endswith("/subprocess.py") for f in thread.python[:3])


def _match(
    view: View, process: Process, thread: Thread, frame: Optional[PythonFrame], task: Optional[str]
) -> Iterator[Answer]:
    child = _child(view, process, thread)
    if child is not None and _writes_to_pipe(child):
        yield No(_CANNOT_WRITE(pid=child.pid))
        return
    if child is not None and child.state in ("Z", "X"):
        yield No(_HAS_ENDED(pid=child.pid))
        return
    if child is not None and _serves(view, child):
        yield No(_IS_A_SERVER(pid=child.pid))
        return
    who, at, name = clauses.named(thread), clauses.at(frame), _name(child, thread)
    facts = [_WAITS(thread=who, at=at, child=name)]
    working = child is None and view.evidence.trigger.kind != "core"  # the child began or ended during the window
    if child is not None:
        cpu = view.cpu(child)
        working = _at_work(view, child)
        facts.append(_DOES(child=name, what=_doing(child), used=_USED(cpu=cpu) if cpu is not None else None))
    elif view.evidence.trigger.kind == "core":
        facts.append(_ONE_PROCESS())
    deeper = child is not None and not working and _leads_into(view, Agent(process.pid, thread.tid), child)
    worker = _forgotten(view, process, thread, child) if child is not None and not working else None
    deeper = deeper and worker is None
    supervises = thread.wait is not None and thread.wait.pid is None and thread.wait.syscall in _ANY_CHILD
    if supervises:
        facts.append(_SUPERVISES())
    if worker is not None:
        facts.append(_FORGOTTEN(child=name))
    ending = who_above(view, child, "ends") if child is not None else []
    facts += later("ends", ending)
    made = own_frame(worker.python) if worker is not None else None
    culprits = (view.culprit(process, frame, thread, task),) if frame else ()
    certain = bool(frame or made) and not (working or supervises or deeper or ending)
    yield Match(
        confidence="likely" if certain else "possible",
        summary=_SUMMARY(thread=who, program=_program(process), at=at, child=name),
        evidence=tuple(facts),
        culprits=(view.culprit(child, made, worker),) if child and made and not culprits else culprits,
        pid=process.pid,
        because_of=() if worker is not None else ANYTHING,  # any that the child has
        cause_pid=child.pid if child else -1,
    )


def _forgotten(view: View, process: Process, thread: Thread, child: Process) -> Optional[Thread]:
    """Return the main thread of a worker that waits for orders of its parent, which has ended, and only joins it.

    None if another thread of the parent, or another process with the same end, may still give orders: one that does not rest.
    """
    worker = view.main(child)
    if worker is None or worker.wait is None or not any(in_table(f, _JOINS_AT_EXIT) for f in thread.python):
        return None
    resource = next((r for r in child.resources if r.id == worker.wait.resource), None)
    if worker.wait.kind not in ("pipe", "socket") or resource is None:
        return None
    givers = {waker.pid for waker in resource.wakers} - {child.pid}
    known = [view.by_pid[pid] for pid in givers if pid in view.by_pid]
    others = [
        one for giver in known for one in giver.threads if one is not thread and one.python and not is_asleep(one)
    ]
    resting = all(view.rests(one) and not view.moves(one) for one in others)
    return worker if process.pid in givers and len(known) == len(givers) and resting else None


def _serves(view: View, child: Process) -> bool:
    """Return whether a child listens for connections, and waits by design."""
    root = next((one for one in roots(view) if one.way.start.pid == child.pid), None)
    return bool(child.listening) and root is not None and root.state == "idle"


def _leads_into(view: View, agent: Agent, child: Process) -> bool:
    """Return whether the root of a wait is a line of the child's program, in a wait whose kind is known, or beyond it."""
    way = follow(view, agent)
    if any(edge.waiter.pid == child.pid and edge.kind != "process" for edge in way.edges) and way.end.pid != child.pid:
        return True  # the child waits for what another process has
    return way.end.pid == child.pid and frame_of(view, way.end) is not None and kind_of(view, way) != "unknown"


#: Seconds. A child that began just before the window is one of many; a Python child with a shorter sleep paces itself.
YOUNG_S, SHORT_S = 0.5, 10.0


def _at_work(view: View, child: Process, seen: FrozenSet[int] = frozenset()) -> bool:
    """Return whether a child has only just begun, makes progress, waits as servers do, or waits for a child that does so.

    ``seen``: PIDs of its ancestors that were looked at.
    """
    started = view.children(child)
    if seen and all(is_asleep(thread) and not thread.python for one in (started or [child]) for thread in one.threads):
        return False  # a shell that starts `sleep` again and again paces itself; it does no work
    if child.age_s is not None and child.age_s < YOUNG_S:
        return True
    if any(view.moves(t) or not view.rests(t) for t in child.threads):
        return True
    main = view.main(child)
    if main is None or main.wait is None:
        return False
    if main.wait.kind == "process":
        seen |= {child.pid}
        awaited = [one for one in started if main.wait.pid in (None, one.pid) and one.pid not in seen]
        return any(_at_work(view, one, seen) for one in awaited)
    rests = main.wait.kind == "event-loop" or main.wait.endless is False
    paces = bool(main.python) and main.wait.endless is False and 0 < (main.wait.timeout_s or 0.0) < SHORT_S
    return paces or main.wait.syscall in ("accept", "accept4") or (bool(child.listening) and rests)


def _child(view: View, process: Process, thread: Thread) -> Optional[Process]:
    """Return the child that the thread waits for, if it was captured or there is only one."""
    pid = thread.wait.pid if thread.wait else None
    if pid is not None:
        return view.by_pid.get(pid)
    children: List[Process] = view.children(process)
    return children[0] if len(children) == 1 else None


def _program(process: Process) -> Text:
    return _PROGRAM(name=program(process) or "process", pid=process.pid)


def _name(child: Optional[Process], thread: Thread) -> Text:
    if child is not None:
        return _ITS_CHILD(which=_program(child))
    pid = thread.wait.pid if thread.wait else None
    return _ITS_CHILD(which=pid) if pid else _A_CHILD()


def _doing(child: Process) -> Said:
    main = View.main(child)
    if main is None or main.wait is None:
        return _RUNNING()
    return main.wait.phrase or (_IN_CALL(call=main.wait.syscall) if main.wait.syscall else _WAITING())


def _writes_to_pipe(child: Process) -> bool:
    return any(
        t.wait is not None and t.wait.kind == "pipe" and t.wait.syscall in ("write", "writev") for t in child.threads
    )
