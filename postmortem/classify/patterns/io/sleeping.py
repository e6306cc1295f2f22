"""A plain sleep, and nothing else happens.

**What it looks like.** The main thread (or the thread that it waits for) is in `time.sleep`; every other thread rests.

**Easily mistaken for** a program between two runs of a timer: they differ in the length of the sleep, compared with the time
allowed.

**Why it hangs.** The sleep is longer than intended: a retry delay that grew, a back-off, a placeholder.

**Remedy.** Shorten it, or wait for the event with a timeout (`Event.wait(timeout)`), which can be interrupted.
"""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from ....evidence import Process, Task, Thread
from ....findings import Template, Text
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.deeds import later, who_above
from ...facts.knowledge import own_frame
from ...facts.peers import server_of
from ...facts.view import View, is_python
from ...pattern import Answer, Match, No, Pattern
from ...roots.calls import calls_for_a_result
from ...roots.rest import asks_for_lock, has_company
from ...roots.walk import telling

PATTERN = Pattern(
    id="sleeping",
    tier="symptom",
    title="a plain sleep, and nothing else happens",
    explanation="The program asked the kernel to let it sleep: the thread does nothing until the sleep is over.",
    remedy="Shorten the sleep, bound the back-off, or wait for the event itself with a timeout.",
    references=("https://docs.python.org/3/library/time.html#time.sleep",),
)

#: A sleep is the cause if it lasts at least this multiple of the allowed time, and at least this number of seconds.
TIMES, AT_LEAST = 10, 30
#: Seconds, if there is no deadline to compare with (a core, --pid).
ALONE = 60

#: Seconds: a shorter sleep paces a loop. Voluntary switches a second of a thread that goes on at a pace of its own.
_SHORT_S, _PACE = 2.0, 0.9
_SLEEPS = Template("{thread} sleeps{duration} at {frame}, {beside}")
_OTHERS_WORK = Template("while others work")
_NOTHING_COMPUTES = Template("and nothing else computes")
_PROGRAM_SLEEPS = Template("{program} (PID {pid}){kind} sleeps{duration} (system call {call})")
_PROCESS = Template("process {pid}")
_NO_PYTHON = Template(", which is not a Python program,")
_A_SLEEP = Template("unknown")
_DURATION = Template(" for {seconds:g} s")
_CALL = Template("{thread} sleeps (system call {call})")
_LENGTH = Template("it asked to sleep {seconds:g} s")
_ALLOWED = Template("the program was allowed {seconds:g} s in all")
_TASK_SLEEPS = Template("{task} sleeps at {frame}, and no task has anything else to do")
_ASLEEP = Template("{asleep} of {all:n task} {asleep:v is|are} suspended in asyncio.sleep")
_LOOP_SLEEPS = Template("the event loop of {thread} sleeps in {call}, with {seconds:g} s left at the last observation")
_ALL_PACE = Template(
    "{sleeper} sleeps for {seconds:g} s at a time, and other threads or processes wake again and again, too"
)
_SERVED = Template("other threads wait for jobs or connections: the sleep may only keep the process alive")
_WANTS_LOCK = Template("{sleeper} sleeps between two attempts of a library to get a lock of a server")
_OTHER_WORKS = Template("{sleeper} sleeps, but {other} has work")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process whose main thread, a thread that it waits for, or its tasks sleep."""
    for process in view.processes:
        main = view.main(process)
        if main is None:
            continue
        sleeper = _sleeper(view, process, main)
        if sleeper is None:
            yield from _sleeping_tasks(view, process, main)
            continue
        if asks_for_lock(sleeper.python, asleep=True) is not None and server_of(view, process) is not None:
            yield No(_WANTS_LOCK(sleeper=clauses.named(sleeper)))
            continue
        other = next((t for t in process.threads if _has_work(view, t, sleeper)), None)
        if other is not None:
            yield No(_OTHER_WORKS(sleeper=clauses.named(sleeper), other=clauses.named(other)))
            continue
        busy = view.work_beside(process, sleeper)
        if sleeper.is_main and busy:
            yield No(busy[0])
        elif sleeper.is_main and _paces(view, process, sleeper):
            yield No(
                _ALL_PACE(sleeper=clauses.named(sleeper), seconds=sleeper.wait.timeout_s if sleeper.wait else None)
            )
        else:
            yield _match(view, process, sleeper, busy)


def _paces(view: View, process: Process, sleeper: Thread) -> bool:
    """Return whether a short sleep is one of several: other threads or processes wake again and again, too."""
    length = sleeper.wait.timeout_s if sleeper.wait is not None else None
    if length is None or length >= _SHORT_S:
        return False
    others = [t for p in view.processes for t in p.threads if t is not sleeper]
    return any((view.switches(t) or 0.0) >= _PACE for t in others)


def _sleeper(view: View, process: Process, main: Thread) -> Optional[Thread]:
    """Return the main thread if it sleeps, or a sleeping thread that it waits for; else None."""
    if _sleeps(main):
        return main
    behind = [t for t in process.threads if _sleeps(t) and any(w.is_main for w in view.waits_on(process, t.tid))]
    return behind[0] if behind else _one_of_all(view, process, main)


def _one_of_all(view: View, process: Process, main: Thread) -> Optional[Thread]:
    """Return the first of several threads if all that could end the main thread's wait are in a long sleep; else None."""
    edge = telling(view, Agent(process.pid, main.tid))
    able = [view.graph.places.thread(a) for a in edge.wakers if a not in edge.bystanders] if edge is not None else []
    asleep = [
        t for t in able if t is not None and _sleeps(t) and t.wait is not None and _too_long(view, t.wait.timeout_s)
    ]
    return asleep[0] if asleep and len(asleep) == len(able) else None


def _sleeps(thread: Thread) -> bool:
    return thread.wait is not None and thread.wait.kind == "sleep"


def _has_work(view: View, thread: Thread, sleeper: Thread) -> bool:
    """Return whether a thread used CPU during the window, or was running when the core was taken."""
    if thread is sleeper:
        return False
    share = view.cpu_share(thread)
    return share > 0.05 if share is not None else thread.wait is None and thread.gil == "holds"


def _match(view: View, process: Process, thread: Thread, busy: Tuple[Text, ...]) -> Match:
    wait = thread.wait
    length = wait.timeout_s if wait else None
    frame = own_frame(thread.python)
    call = wait.syscall if wait and wait.syscall else _A_SLEEP()
    # a library's call that is to return keeps no process alive
    served = thread.is_main and has_company(view, process) and not calls_for_a_result(thread)
    who, duration = clauses.named(thread), _DURATION(seconds=length) if length is not None else None
    if frame is not None:
        beside = _OTHERS_WORK() if busy else _NOTHING_COMPUTES()
        summary = _SLEEPS(thread=who, duration=duration, frame=frame, beside=beside)
    else:
        program = process.argv[0] if process.argv else process.exe or _PROCESS(pid=process.pid)
        kind = None if is_python(process) else _NO_PYTHON()
        summary = _PROGRAM_SLEEPS(program=program, pid=process.pid, kind=kind, call=call, duration=duration)
    facts = [_CALL(thread=who, call=call)]
    if length is not None:
        facts.append(_LENGTH(seconds=length))
    if view.evidence.trigger.seconds is not None and view.evidence.trigger.kind == "timeout":
        facts.append(_ALLOWED(seconds=view.evidence.trigger.seconds))
    ending = who_above(view, process, "ends")
    return Match(
        confidence="likely" if _too_long(view, length) and not (busy or served or ending) else "possible",
        summary=summary,
        evidence=(*facts, *busy, *((_SERVED(),) if served else ()), *later("ends", ending)),
        culprits=(view.culprit(process, frame, thread),) if frame else (),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


def _sleeping_tasks(view: View, process: Process, main: Thread) -> Iterator[Answer]:
    """Yield a match if the main thread's loop waits for a timer, and no task waits for anything but asyncio.sleep."""
    loops = {loop.id for loop in process.loops if loop.tid == main.tid}
    tasks = [t for t in process.tasks if t.loop in loops and t.state == "pending"]
    asleep = [
        t for t in tasks if t.stack and t.stack[0].function == "sleep" and t.stack[0].file.endswith("asyncio/tasks.py")
    ]
    sleepers = {t.id for t in asleep}
    idle = all(t.id in sleepers or _collects(t) for t in tasks)
    wait = main.wait
    if (
        not asleep
        or not idle
        or wait is None
        or wait.kind != "event-loop"
        or not wait.timeout_s
        or not view.rests(main)
    ):
        return
    frame = own_frame(asleep[0].stack)
    if frame is None or process.listening:
        return
    busy = view.work_beside(process, main)
    yield Match(
        confidence="likely" if _too_long(view, wait.timeout_s) and not busy else "possible",
        summary=_TASK_SLEEPS(task=clauses.task(asleep[0]), frame=frame),
        evidence=(
            _ASLEEP(asleep=len(asleep), all=len(tasks)),
            _LOOP_SLEEPS(thread=clauses.named(main), call=wait.syscall, seconds=wait.timeout_s),
            *busy,
        ),
        culprits=tuple(view.culprit(process, f, main, t.name) for t in asleep[:3] for f in [own_frame(t.stack)] if f),
        pid=process.pid,
    )


def _collects(task: Task) -> bool:
    """Return whether a task only waits for other tasks."""
    if (task.awaiting or "").startswith(("Task:", "_GatheringFuture")):
        return True
    return any(f.file.endswith(("asyncio/taskgroups.py", "asyncio/tasks.py")) for f in task.stack[:2])


def _too_long(view: View, length: Optional[float]) -> bool:
    """Return whether a sleep is long enough to be the cause."""
    if length is None:
        return False
    allowed = view.evidence.trigger.seconds if view.evidence.trigger.kind == "timeout" else None
    return length >= (max(AT_LEAST, TIMES * allowed) if allowed is not None else ALONE)
