"""A future or callback of an event loop was made ready by another thread without waking the loop.

**What it looks like.** The loop's thread is in its selector, at 0 % CPU, without a time limit or with one that is far away.
Yet its ready queue is not empty: the future that a task awaits is done, the item is in the queue, the event is set. It looks
like an idle server, and comes to life as soon as a client connects or a timer is due.

**Easily mistaken for** `future-never-resolved`, where the result was never set; `missed-wakeup`, where nothing is there yet; an
idle loop, whose ready queue is empty; `event-loop-starvation`, whose loop runs its callbacks one after the other.

**Why it hangs.** `asyncio.Queue.put_nowait`, `Future.set_result`, `Event.set` and `loop.call_soon` are not thread-safe. They
append to the loop's ready queue and trust that the loop is awake, because its own thread called them. From another thread they
do not end the `select` in which the loop sleeps: only `call_soon_threadsafe` writes to the pipe that does. With a Twisted reactor
these are `callLater` and what a Deferred's `callback` leads to, and `callFromThread` is the one that wakes it.

**Remedy.** From other threads call `loop.call_soon_threadsafe(queue.put_nowait, item)`, or
`asyncio.run_coroutine_threadsafe(queue.put(item), loop)`. In debug mode (`PYTHONASYNCIODEBUG=1`) asyncio raises an error at
the wrong call.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Loop, Process, PythonFrame, Task, Thread, Wait
from ....findings import Confidence, Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses, knowledge
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.works import works

PATTERN = Pattern(
    id="loop-not-woken",
    tier="specific",
    title="another thread made a callback of an event loop ready, and nobody woke the loop",
    explanation=(
        "An event loop sleeps in its selector until a timer is due, a descriptor is ready, or call_soon_threadsafe wakes it. "
        "Methods of asyncio's futures, queues and events only append to the loop's ready queue: called from another thread, "
        "they leave it asleep, with work to do."
    ),
    remedy=(
        "Call them on the loop's own thread: `loop.call_soon_threadsafe(queue.put_nowait, item)`, "
        "`loop.call_soon_threadsafe(future.set_result, value)`, or `asyncio.run_coroutine_threadsafe(coroutine, loop)`. "
        "PYTHONASYNCIODEBUG=1 raises an error where the wrong thread calls them."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/asyncio-dev.html#concurrency-and-multithreading",
        "https://docs.python.org/3/library/asyncio-eventloop.html#asyncio.loop.call_soon_threadsafe",
        "https://github.com/gorakhargosh/watchdog/issues/1190",
    ),
)

_TWISTED_REMEDY = Template(
    "Call it on the reactor's own thread: `reactor.callFromThread(deferred.callback, value)`. `callLater` and a Deferred's "
    "`callback` are for that thread alone; `deferToThread` brings results of threads back by itself."
)

_GEVENT_REMEDY = Template(
    "Hand results over to the hub's own thread: `hub.loop.run_callback_threadsafe(result.set, value)` (from gevent 21.1 on), "
    "`loop.async_()` and its `send()`, or let gevent's own threadpool do the work. Locks, events and results of gevent are for "
    "the greenlets of one thread."
)
_EVENTLET_REMEDY = Template(
    "Locks and events of eventlet are for the green threads of one hub: keep those that `monkey_patch` made, the locks of "
    "logging handlers among them, out of native threads (tpool), or give these unpatched ones "
    "(`eventlet.patcher.original('threading')`)."
)
_REMEDIES = {"twisted": _TWISTED_REMEDY, "gevent": _GEVENT_REMEDY, "eventlet": _EVENTLET_REMEDY}

#: Seconds until the selector's own limit from which on the loop is not about to turn.
_FAR_S = 5.0
#: Functions in which a callback is ready and the loop about to be woken.
_WAKING = ("call_soon_threadsafe", "_write_to_self")
#: Most tasks named.
_NAMED = 3
#: Loops of greenlets, and loops that keep their ready queue as asyncio does.
_HUBS = ("gevent", "eventlet")
_KINDS = ("asyncio", "uvloop", "twisted", *_HUBS)

_SLEEPS = Template(
    "the event loop of {thread} sleeps in {call}{limit} although {ready:n callback} {ready:v is|are} ready to run{task}: "
    "{ready:v it was|they were} made ready from outside of the loop without waking it{by}"
)
_TASK = Template(", among them {agent}{at}, whose wait is over")
_BY = Template(", perhaps{at}")
_FOREVER, _FOR = Template(" without a time limit"), Template(" for another {seconds:.3g} s")
_UP_TO = Template(" for up to {seconds:.3g} s")
_QUEUE = Template("{thread} waits in {call}{limit}; the ready queue of its event loop has {ready:n callback}")
_DONE = Template("what {agent} awaits{at} is done, and the task has not had its turn")
_FUNCTIONS = Template("ready to run: {frames: and }")
_STILL = Template("{thread} did not wake during the {window:.1f} s of the observation")
_LEFT = Template(
    "{thread} wakes again and again, and has not resumed them: what would decide it is another look, whether they are still there"
)
_PLACE = Template("{frame} is in a plain function that another thread may call, and does not wake the loop")
_WOKEN = Template("{thread} woke {wakes:.1f} times a second: its event loop turns")
_TURNS = Template("{thread} used {share:.0%} of a core: its event loop turns")
_SOON = Template("the selector of {thread} returns in {seconds:.1f} s")
_BEING_WOKEN = Template("a thread is just waking the event loop of {thread}")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each loop that sleeps in its selector with a ready queue that is not empty."""
    for process in view.pythons:
        for loop in process.loops:
            thread = view.thread(process, loop.tid)
            wait = thread.wait if thread is not None else None
            if thread is None or wait is None or not loop.ready or loop.kind not in _KINDS or not _selects(loop, wait):
                continue
            if view.moves(thread) and loop.kind in _HUBS and _ready(process, loop):
                yield _match(view, process, loop, thread, turns=True)
                continue
            left = wait.remaining_s
            if left is None and loop.kind in _HUBS and view.window:
                left = wait.timeout_s  # a hub without a timer wakes once a minute
            if wait.endless is not True and (left is None or left < _FAR_S):
                if wait.remaining_s is not None:
                    yield No(_SOON(thread=clauses.named(thread), seconds=wait.remaining_s))
                continue
            if view.moves(thread):
                yield No(_WOKEN(thread=clauses.named(thread), wakes=view.switches(thread) or 0.0))
            elif works(view, thread):
                yield No(_TURNS(thread=clauses.named(thread), share=view.cpu_share(thread) or 0.0))
            elif any(frame.function in _WAKING for other in process.threads for frame in other.python[:3]):
                yield No(_BEING_WOKEN(thread=clauses.named(thread)))
            else:
                yield _match(view, process, loop, thread)


def _selects(loop: Loop, wait: Wait) -> bool:
    """Return whether a loop's thread is in its selector; a hub of eventlet that watches nothing only sleeps."""
    return wait.kind == "event-loop" or (wait.kind == "sleep" and loop.kind == "eventlet")


def _ready(process: Process, loop: Loop) -> List[Task]:
    """Return the tasks of a loop whose waits are over."""
    return [task for task in process.tasks if task.loop == loop.id and task.ready and task.state == "pending"]


def _match(view: View, process: Process, loop: Loop, thread: Thread, turns: bool = False) -> Match:
    """Return the match of a loop that sleeps; ``turns``: it wakes again and again, and leaves some greenlets asleep."""
    wait = thread.wait
    call = (wait.syscall if wait is not None else None) or "select"
    endless = wait is not None and wait.endless is True
    left = wait.remaining_s if wait is not None else None
    given = wait.timeout_s if wait is not None else None
    limit = _FOREVER() if endless else _FOR(seconds=left) if left is not None else _UP_TO(seconds=given or 0.0)
    tasks = _ready(process, loop)
    who, ready = clauses.named(thread), loop.ready or 0
    facts: List[Said] = [_QUEUE(thread=who, call=call, limit=limit, ready=ready)]
    for task in tasks[:_NAMED]:
        facts.append(_DONE(agent=_agent(process, task), at=clauses.at(knowledge.own_frame(task.stack))))
    if loop.ready_callbacks:
        facts.append(_FUNCTIONS(frames=loop.ready_callbacks[:_NAMED]))
    slept = _slept(view, thread)
    if turns:
        facts.append(_LEFT(thread=who))
    if slept:
        facts.append(_STILL(thread=who, window=view.window or 0.0))
    places = [frame for frame in loop.readied_at if not knowledge.is_library(frame)]
    facts += [_PLACE(frame=frame) for frame in places[:_NAMED]]
    behind = view.graph.behind(frozenset(_agent(process, task) for task in tasks))
    how = _confidence(tasks, loop, endless, slept)
    if turns:
        how = "likely" if _nobody_else_ran(view, process, thread) else "possible"
    return Match(
        confidence=how,
        summary=_SLEEPS(thread=who, call=call, limit=limit, ready=ready, task=_first(process, tasks), by=_by(places)),
        evidence=tuple(facts),
        culprits=(
            *(view.culprit(process, frame) for frame in places[:_NAMED]),
            *_runs(view, process, thread, tasks if not places else []),
            *_awaiting(view, process, tasks),
        ),
        victims=tuple(view.victim_of(agent) for agent in behind[:50]),
        remedy=_REMEDIES[loop.kind]() if loop.kind in _REMEDIES else None,
        pid=process.pid,
    )


def _nobody_else_ran(view: View, process: Process, thread: Thread) -> bool:
    """Return whether all other Python threads were at one place throughout a window: none has just made a greenlet ready.

    The hub woke meanwhile, and would have resumed what was ready.
    """
    others = [other for other in process.threads if other is not thread and other.python]
    return bool(view.window) and bool(others) and all(view.idle(other) or _was_there(view, other) for other in others)


def _was_there(view: View, thread: Thread) -> bool:
    """Return whether all samples of a thread, and there are some, have the stack that it has now."""
    now = [(f.file, f.line, f.function) for f in thread.python]
    seen = [[(f.file, f.line, f.function) for f in frames] for _count, frames in view.samples(thread)]
    return bool(seen) and all(stack == now for stack in seen)


def _confidence(tasks: List[Task], loop: Loop, endless: bool, slept: bool) -> Confidence:
    """Return *proven* if the loop slept through a window, and *possible* if its callbacks may be its own.

    In a lone core the loop may be about to be woken.
    """
    if slept and endless and (tasks or loop.ready_callbacks):
        return "proven"
    return "likely" if tasks or loop.ready_callbacks else "possible"


def _slept(view: View, thread: Thread) -> bool:
    """Return whether the thread was seen not to wake during a window."""
    switches = view.switches(thread)
    return bool(view.window) and switches == 0.0


def _first(process: Process, tasks: List[Task]) -> Optional[Text]:
    if not tasks:
        return None
    return _TASK(agent=_agent(process, tasks[0]), at=clauses.at(knowledge.own_frame(tasks[0].stack)))


def _by(places: List[PythonFrame]) -> Optional[Text]:
    return _BY(at=clauses.at(places[0])) if places else None


def _agent(process: Process, task: Task) -> Agent:
    return Agent(process.pid, task=task.id)


def _runs(view: View, process: Process, thread: Thread, tasks: List[Task]) -> Tuple[Culprit, ...]:
    """Return the program's line that runs the loop, if all tasks that are ready wait in libraries alone."""
    frame = knowledge.own_frame(thread.python)
    waiting = [knowledge.own_frame(task.stack) for task in tasks]
    alone = bool(waiting) and all(one is None or knowledge.is_library(one) for one in waiting)
    return (view.culprit(process, frame, thread),) if alone and frame is not None else ()


def _awaiting(view: View, process: Process, tasks: List[Task]) -> Tuple[Culprit, ...]:
    """Return the lines at which the ready tasks wait."""
    found = []
    for task in tasks[:_NAMED]:
        frame = knowledge.own_frame(task.stack)
        if frame is not None:
            found.append(view.culprit_of(_agent(process, task), frame))
    return tuple(found)
