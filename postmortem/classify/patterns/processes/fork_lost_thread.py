"""A forked process waits for the work of a thread that only its parent has.

**What it looks like.** A child of a threaded process, made by fork without exec, waits at 0 % CPU: in `Queue.join` or `put`, for
an event or a future, or inside a native library (OpenMP, BLAS, rayon, gRPC, numba). In the parent a thread serves that very
queue, or stands in the same library; the child has no such thread.

**Easily mistaken for** `missed-wakeup`, where the thread that should signal is in the same process; `fork-inherited-lock`, where
the thread that is missing held a lock; `native-exit-wait`.

**Why it hangs.** fork copies the memory, but of the threads only the one that calls it. Queues, pools and exporters of the
parent are in the child as data: they take work, and count on threads that are not there.

**Remedy.** Start processes by spawn or forkserver (the default since 3.14), or before the threads and native pools; start
exporters, listeners and pools anew in the child (`os.register_at_fork`, a pool's initializer).
"""

from __future__ import annotations

import re
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

from ....evidence import LeftBehind, NativeFrame, Process, PythonFrame, Resource, Task, Thread
from ....evidence.vocabulary import TaskWaitKind
from ....findings import Confidence, Culprit, Template, ThreadName
from ....sourcepaths import is_program, package
from ....waitgraph import Agent, Edge
from ...facts import clauses
from ...facts.forked import forked_at, launches, lost_helpers
from ...facts.knowledge import is_stdlib, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.rest import serves

PATTERN = Pattern(
    id="fork-lost-thread",
    tier="specific",
    title="a forked process waits for the work of a thread that was not forked",
    explanation=(
        "The process was forked from one with threads, and fork copies only the thread that calls it. The process has a copy of "
        "a queue, a pool or a library's state that a thread of its parent serves, but not of that thread."
    ),
    remedy=(
        "Start child processes by spawn or forkserver (multiprocessing.set_start_method), or before the first thread and the "
        "first call of a library that makes threads. Where fork is unavoidable, start consumers, exporters and pools anew in "
        "the child: in a pool's initializer, or with os.register_at_fork(after_in_child=…)."
    ),
    needs=("python", "cores"),
    references=(
        "https://docs.python.org/3/library/os.html#os.fork",
        "https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods",
        "https://opentelemetry-python.readthedocs.io/en/latest/examples/fork-process-model/README.html",
    ),
)

#: Kinds of waits that other code ends by doing work or by signalling.
_SERVED = frozenset((
    "queue", "event", "condition", "semaphore", "barrier", "future", "async-future", "futex", "thread", "pool",
))  # fmt: skip
#: What a task waits for until other code does work or signals.
_SIGNALS: FrozenSet[TaskWaitKind] = frozenset(("queue", "event", "condition", "semaphore", "future"))
#: Libraries in which every thread waits: they tell nothing about who serves whom.
_RUNTIME = re.compile(
    r"/(libc|libpthread|libm|libdl|librt|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|ld-[\w-]+|ld|libpython[\d.]+\w*|python[\d.]*)"
    r"[-.\d]*(so)?[^/]*$"
)
_ANY = "?"
_THREADS = "ThreadPoolExecutor"
_SHOWN = 3
#: Least part of the window for which a call lasts that waits again and again.
_WHOLE = 0.9

_SUMMARY = Template(
    "{thread} of the forked process {pid} waits{at} for {what}, which {server} of its parent{parent:+ @} serves; that thread was "
    "not forked"
)
_LIKE_SUMMARY = Template(
    "{thread} of the forked process {pid} waits{at} for {what}; {server} of its parent{parent:+ @}, which would end that "
    "wait, was not forked"
)
_NATIVE_SUMMARY = Template(
    "{thread} of the forked process {pid} waits{at} inside {library}, whose threads only its parent{parent:+ @} has"
)
_ALONE_SUMMARY = Template(
    "{thread} of the forked process {pid} waits{at} inside {library}, and the process has no other thread in that library"
)
_TASK_SUMMARY = Template(
    "{agent} of the forked process {pid} waits{at} for what {library} has promised{more}; the threads of that library are in its "
    "parent{parent:+ @} only"
)
_LIKEWISE = Template(", and {count:n other task} {count:v wait} likewise")
_THREADS_IN = Template("{count:n thread} of process {parent} {count:v run} in {library}, and none of this process does")
_SAME = Template("{server} waits for the original of {what} in process {parent}, at the same address")
_BESIDE = Template("{server} runs the same module in process {parent}: {file}")
_POOLED = Template("{server} is a worker of {pool} in process {parent}; process {pid} has no thread of such a pool")
_INSIDE = Template(
    "{count:n thread} of process {parent} {count:v stands|stand} in {library}; none of process {pid} does but the one that waits"
)
_NO_RECORD = Template(
    "the library's own record of its threads cannot be read: whether it waits for one of them is not certain"
)
_PARENT_UNREAD = Template("the parent was not read: whether the library had threads there when it forked is not known")
_THREADS_LEFT = Template(
    "the memory of process {pid} still has the control blocks of threads that were there when it was forked, and are not its own"
)
_NOT_TAKEN = Template(
    "items lie in {what}, and none was taken: the other threads of the process wait for it, too, wait for jobs, or sleep"
)
_WAITS = Template("{thread} waits{at} for {what}, without a time limit")
_NONE = Template(
    "no wait in {forks:n forked process|forked processes} is for the work of a thread that stayed behind in the parent"
)


class _Served(NamedTuple):
    """A thread of the parent that would do what the child waits for."""

    lost: LeftBehind
    same: bool  # it awaits the original of the same object
    file: Optional[str] = None  # else the file whose code both run
    pool: Optional[str] = None  # else the thread pool that it is a worker of
    alike: bool = True  # they run methods of one class, or one module of a library
    untaken: bool = False  # a queue has items, and no thread of the child takes one


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each forked process with a wait that only a thread of its parent could end."""
    forked = [process for process in view.pythons if process.forked or _launched(process)]
    found = False
    for process in forked:
        answer = next(filter(None, (_of_thread(view, process, thread) for thread in process.threads)), None)
        answer = answer or _of_tasks(view, process) or _of_helped_tasks(view, process)
        if answer is not None:
            found = True
            yield answer
    if forked and not found:
        yield No(_NONE(forks=len(forked)))


def _launched(process: Process) -> bool:
    """Return whether multiprocessing forked the process, as the copied frames of its parent show."""
    return any(launches(frame) for thread in process.threads for frame in thread.python)


def _of_thread(view: View, process: Process, thread: Thread) -> Optional[Match]:
    agent = Agent(process.pid, thread.tid)
    if thread.wait is None or not thread.python or view.idle(thread):
        return None
    edge = view.graph.blocking(agent) or next(iter(view.graph.edges.get(agent, ())), None)
    passing = thread.wait.endless is False or view.moves(thread)
    library = _library(thread) if not passing or _lasts(view, thread) else None
    native = _native(view, process, thread, library) if library is not None else None
    if native is not None or view.moves(thread):
        return native
    if edge is None or edge.kind not in _SERVED or edge.gone:
        return None
    owing = [waker for waker in edge.wakers if waker.tid is not None and waker.pid == process.pid and waker != agent]
    if owing and not edge.signals:
        return None  # a thread of this process owes it
    stuck = view.graph.stuck(agent) is not None
    served = _server(view, process, thread, edge) if stuck and not passing else None
    if served is None and not passing and _lies_untaken(view, process, edge):
        original = _original(process, edge)
        served = original._replace(untaken=True) if original is not None else None
    if served is None and _alone(view, process, agent):
        # a library's own threads do its work, whatever it waits for; a job of a pool is lost even where nothing was read of who
        # refers to it. A time limit only turns that into an error.
        parent = view.by_pid.get(process.ppid or 0)
        served = _pool_worker(process, parent, edge) if not stuck else None
        served = served or _helper(view, process, parent, thread, edge)
        served = served or (_any_helper(view, process, parent, edge) if stuck else None)
    return _lost(view, process, thread, edge, served) if served is not None else None


# ------------------------------------------------------------------ objects of Python


def _server(view: View, process: Process, thread: Thread, edge: Edge) -> Optional[_Served]:
    """Return the thread of the parent that serves what a thread waits for; None if none is known to."""
    original = _original(process, edge)
    if original is not None:
        return original
    parent = view.by_pid.get(process.ppid or 0)
    pooled = _pool_worker(process, parent, edge)
    if pooled is not None:
        return pooled
    mine = _places(_own_part(thread.python))
    for sure in (True, False):
        for lost in process.left_behind:
            server = view.thread(parent, lost.tid) if parent is not None else None
            theirs = _places(server.python) if server is not None else {}
            shared = sorted(file for file in mine if file in theirs and (not sure or _alike(file, mine, theirs)))
            if shared:
                return _Served(lost, False, shared[0], alike=sure)
    return None


def _original(process: Process, edge: Edge) -> Optional[_Served]:
    """Return the thread of the parent that awaits the original of the object that a thread of a forked process waits for."""
    return next((_Served(lost, True) for lost in process.left_behind if edge.resource in lost.serves), None)


def _lies_untaken(view: View, process: Process, edge: Edge) -> bool:
    """Return whether a queue that is joined has items, and no thread of the process takes one, as far as its waits tell.

    The others wait until it is empty, too, wait for jobs and requests, or sleep now and then.
    """
    queue = view.graph.places.resource(process.pid, edge.resource)
    if queue is None or queue.kind != "queue" or not queue.value or view.window is None:
        return False
    others = [thread for thread in process.threads if thread.python and thread.tid not in queue.waiters]
    return all(
        view.rests(t) and t.wait is not None and (t.wait.kind == "sleep" or view.idle(t) or serves(view, process, t))
        for t in others
    )


def _pool_worker(process: Process, parent: Optional[Process], edge: Edge) -> Optional[_Served]:
    """Return a worker of a thread pool of the parent, if a future is awaited that no pool of this process has."""
    if edge.kind != "future" or edge.wakers or parent is None or any(p.kind == _THREADS for p in process.pools):
        return None
    for pool in parent.pools if parent is not None else ():
        lost = next((one for one in process.left_behind if one.tid in pool.threads), None)
        if pool.kind == _THREADS and lost is not None:
            return _Served(lost, False, pool=pool.description)
    return None


def _helper(view: View, process: Process, parent: Optional[Process], thread: Thread, edge: Edge) -> Optional[_Served]:
    """Return a thread of the parent that a library has started for itself, if a thread waits inside that library.

    No other thread of the process may be in the library, or have a part of its pool: that one would end the wait.
    """
    inside = next(iter(_own_part(thread.python)[:1]), None)
    library = package(inside.file) if inside is not None else None
    resource = view.graph.places.resource(process.pid, edge.resource)
    if library is None or parent is None or (resource is not None and _is_held(resource, thread)):
        return None
    others = (f for t in process.threads if t is not thread for f in t.python)
    if any(package(frame.file) == library for frame in others):
        return None
    several = _helpers(view, process, parent)
    return next(
        (_Served(lost, False, frame.file) for lost, _t, frame in several if package(frame.file) == library), None
    )


def _any_helper(view: View, process: Process, parent: Optional[Process], edge: Edge) -> Optional[_Served]:
    """Return a thread of the parent that a library has started for itself, if nothing in the only thread's process can signal it.

    What the library hands over to its own threads comes back through queues and events that the program waits for by itself.
    """
    others = [thread for thread in process.threads if thread.python and Agent(process.pid, thread.tid) != edge.waiter]
    if parent is None or others or not edge.signals:
        return None
    several = _helpers(view, process, parent)
    return next((_Served(lost, False, frame.file) for lost, helper, frame in several if not view.idle(helper)), None)


def _helpers(view: View, process: Process, parent: Process) -> Iterator[Tuple[LeftBehind, Thread, PythonFrame]]:
    """Yield the parent's threads that run code of one installed package alone, each with its innermost frame there."""
    for lost in process.left_behind:
        helper = view.thread(parent, lost.tid)
        own = [frame for frame in helper.python if not is_stdlib(frame)] if helper is not None else []
        packages = {package(frame.file) for frame in own}
        if helper is not None and len(packages) == 1 and None not in packages:
            yield lost, helper, own[0]


def _is_held(resource: Resource, thread: Thread) -> bool:
    """Return whether another agent than a thread has a part of what the thread waits for."""
    return any(waker.role == "holder" and waker.tid != thread.tid for waker in resource.wakers)


def _alone(view: View, process: Process, agent: Agent) -> bool:
    """Return whether all other threads of a process that run Python code wait, and hardly ever wake."""
    others = [thread for thread in process.threads if thread.tid != agent.tid and thread.python]
    return all(thread.wait is not None and view.rests(thread) for thread in others)


def _own_part(frames: Tuple[PythonFrame, ...]) -> Tuple[PythonFrame, ...]:
    """Return the frames of the wait itself: the program's or library's innermost file, with the calls from it."""
    first = next((n for n, f in enumerate(frames) if not is_stdlib(f)), None)
    return () if first is None else tuple(f for f in frames[: first + 1] if not is_stdlib(f))


def _places(frames: Tuple[PythonFrame, ...]) -> Dict[str, Set[str]]:
    """Return file → classes of the methods that run there, the standard library's files left out.

    Up to 3.10 code objects do not tell the class: then it is ``_ANY``.
    """
    found: Dict[str, Set[str]] = {}
    for frame in frames:
        if not is_stdlib(frame):
            owner = frame.qualname.rpartition(".")[0] if frame.qualname is not None else _ANY
            found.setdefault(frame.file, set()).update((owner,) if owner else ())
    return found


def _alike(file: str, mine: Dict[str, Set[str]], theirs: Dict[str, Set[str]]) -> bool:
    """Return whether both run methods of one class, or the same module of a library."""
    return bool(mine[file] & theirs[file]) or not is_program(file)


def _lost(view: View, process: Process, thread: Thread, edge: Edge, served: _Served) -> Match:
    """Return the match of a wait for an object that a thread of the parent serves."""
    agent, frame = Agent(process.pid, thread.tid), own_frame(thread.python)
    who, at, server = clauses.named(thread), clauses.at(frame), ThreadName(served.lost.tid, served.lost.name)
    sure = served.same and view.graph.stuck(agent) == "proven"
    confidence: Confidence = "proven" if sure else "likely" if served.alike else "possible"
    known = _SAME(server=server, what=edge.what, parent=process.ppid) if served.same else None
    beside = _BESIDE(server=server, parent=process.ppid, file=served.file) if served.file is not None else None
    worker = (
        _POOLED(server=server, pool=served.pool, parent=process.ppid, pid=process.pid)
        if served.pool is not None
        else None
    )
    return Match(
        confidence=confidence,
        summary=(_SUMMARY if served.same else _LIKE_SUMMARY)(
            thread=who, pid=process.pid, at=at, what=edge.what, server=server, parent=process.ppid
        ),
        evidence=(
            _WAITS(thread=who, at=at, what=edge.what),
            *(text for text in (known, beside, worker) if text is not None),
            *(view.graph.reasons(agent) if not served.untaken else (_NOT_TAKEN(what=edge.what),)),
        ),
        culprits=_culprits(view, process, thread, (served.lost,)),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


# ------------------------------------------------------------------ native libraries


def _of_tasks(view: View, process: Process) -> Optional[Match]:
    """Return the match of tasks that await what an extension module promised, the threads of which only the parent has.

    Nothing that is left in the process can resolve these futures.
    """
    helpers = lost_helpers(view, process)
    waiting = [task for task in process.tasks if _awaits_for_ever(view, process, task)] if helpers else []
    if not waiting:
        return None
    library, several = max(helpers.items(), key=lambda one: len(one[1]))
    first, name = Agent(process.pid, task=waiting[0].id), library.rsplit("/", 1)[-1]
    frames = [(Agent(process.pid, task=task.id), own_frame(task.stack)) for task in waiting[:_SHOWN]]
    running = next((t for t in process.threads if t.is_main), process.threads[0])
    started = forked_at(running)
    return Match(
        confidence="likely",
        summary=_TASK_SUMMARY(
            agent=first,
            pid=process.pid,
            at=clauses.at(frames[0][1]),
            more=_LIKEWISE(count=len(waiting) - 1) if len(waiting) > 1 else None,
            library=name,
            parent=process.ppid,
        ),
        evidence=(_THREADS_IN(count=len(several), parent=process.ppid, library=name), *view.graph.reasons(first)),
        culprits=tuple(
            dict.fromkeys(
                [
                    *(view.culprit_of(agent, frame) for agent, frame in frames if frame is not None),
                    *([view.culprit(process, started, running)] if started is not None else []),
                ]
            )
        ),
        victims=tuple(view.victim_of(agent) for agent in view.graph.behind(frozenset(one for one, _f in frames))),
        pid=process.pid,
    )


def _of_helped_tasks(view: View, process: Process) -> Optional[Match]:
    """Return the match of tasks that wait inside a library for a thread of its own, which only the parent has.

    They wait in the module that the parent's thread runs, and no thread of this process does.
    """
    parent = view.by_pid.get(process.ppid or 0)
    here = {frame.file for thread in process.threads for frame in thread.python}
    helpers = {frame.file: lost for lost, _t, frame in _helpers(view, process, parent)} if parent is not None else {}
    waiting = [(task, file) for task in process.tasks for file in _asked_in(task) if file in helpers.keys() - here]
    if parent is None or not waiting:
        return None
    first, file = waiting[0]
    agents = [Agent(process.pid, task=task.id) for task, _file in waiting]
    edge = next(iter(view.graph.edges.get(agents[0], ())), None)
    lost = helpers[file]
    server, at = ThreadName(lost.tid, lost.name), clauses.at(own_frame(first.stack))
    what = edge.what if edge is not None else None
    frames = {own_frame(task.stack): agent for (task, _file), agent in zip(waiting, agents)}
    running = view.main(process) or process.threads[0]
    return Match(
        confidence="likely",
        summary=_LIKE_SUMMARY(thread=agents[0], pid=process.pid, at=at, what=what, server=server, parent=parent.pid),
        evidence=(
            _WAITS(thread=agents[0], at=at, what=what),
            _BESIDE(server=server, parent=parent.pid, file=file),
            *view.graph.reasons(agents[0]),
        ),
        culprits=(
            *(view.culprit_of(agent, frame) for frame, agent in frames.items() if frame is not None),
            *_culprits(view, process, running, (lost,)),
        ),
        victims=tuple(view.victim_of(agent) for agent in (*agents[1:], *view.graph.behind(frozenset(agents)))),
        pid=process.pid,
    )


def _asked_in(task: Task) -> Iterator[str]:
    """Yield the files of the library that the program's code in a task has called, if it waits there without a time limit."""
    wait = task.wait
    if task.state != "pending" or task.ready or wait is None or wait.endless is not True or wait.kind not in _SIGNALS:
        return
    for frame in task.stack:
        if is_program(frame.file):
            return
        if not is_stdlib(frame):
            yield frame.file


def _awaits_for_ever(view: View, process: Process, task: Task) -> bool:
    """Return whether a task awaits a future itself, and nothing in the process can resolve that."""
    agent = Agent(process.pid, task=task.id)
    edge = view.graph.blocking(agent)
    return edge is not None and edge.kind == "async-future" and not edge.wakers and view.graph.stuck(agent) is not None


def _lasts(view: View, thread: Thread) -> bool:
    """Return whether a thread was in one call of C for the whole window, and used hardly any CPU: it wakes, and waits again."""
    called = thread.calling.lasts_s if thread.calling is not None else None
    return view.window is not None and (called or 0.0) >= _WHOLE * view.window and view.computes(thread) is False


def _library(thread: Thread) -> Optional[str]:
    """Return the library in whose code a thread waits, called by Python code; None if it waits in no library's own."""
    above: List[NativeFrame] = []
    for frame in thread.stack:
        if not isinstance(frame, NativeFrame):
            break
        above.append(frame)
    return next((f.module for f in above if f.module is not None and not _RUNTIME.search(f.module)), None)


def _native(view: View, process: Process, thread: Thread, library: str) -> Optional[Match]:
    """Return the match of a wait inside a library whose threads were not forked; None where something else may end it."""
    resource = view.graph.places.resource(process.pid, thread.wait.resource if thread.wait is not None else None)
    if (
        thread.wait is None
        or thread.wait.syscall != "futex"
        or (resource is not None and resource.owner_tid is not None)
    ):
        return None
    if any(_stands_in(other, library) and not _calls(view, other) for other in process.threads if other is not thread):
        return None
    parent = view.by_pid.get(process.ppid or 0)
    helpers = [t for t in parent.threads if not t.python and _stands_in(t, library)] if parent is not None else []
    if parent is not None and not helpers:
        return None
    lost = tuple(one for one in process.left_behind if any(one.tid == t.tid for t in helpers))
    frame = own_frame(thread.python)
    who, at, name = clauses.named(thread), clauses.at(frame), library.rsplit("/", 1)[-1]
    if parent is None:
        summary = _ALONE_SUMMARY(thread=who, pid=process.pid, at=at, library=name)
        facts = ((_THREADS_LEFT(pid=process.pid) if process.forked else _PARENT_UNREAD()), _NO_RECORD())
    else:
        summary = _NATIVE_SUMMARY(thread=who, pid=process.pid, at=at, library=name, parent=parent.pid)
        facts = (_INSIDE(count=len(helpers), parent=parent.pid, library=name, pid=process.pid), _NO_RECORD())
    return Match(
        confidence="likely" if process.forked or (helpers and lost) else "possible",
        summary=summary,
        evidence=facts,
        culprits=_culprits(view, process, thread, lost),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


def _calls(view: View, thread: Thread) -> bool:
    """Return whether a thread has called the library and waits in it as well: it is no help to another caller."""
    return bool(thread.python) and thread.wait is not None and not view.moves(thread) and not view.computes(thread)


def _stands_in(thread: Thread, library: str) -> bool:
    return any(frame.module == library for frame in thread.native)


def _culprits(view: View, process: Process, thread: Thread, lost: Tuple[LeftBehind, ...]) -> Tuple[Culprit, ...]:
    """Return the waiting line, the line that forked, and where the parent waits for the child."""
    frame = own_frame(thread.python)
    found = [view.culprit(process, frame, thread)] if frame is not None else []
    started = forked_at(thread)
    if started is not None:
        found.append(view.culprit(process, started, thread))
    parent = view.by_pid.get(process.ppid or 0)
    for one in lost[:_SHOWN]:
        server = view.thread(parent, one.tid) if parent is not None else None
        at = own_frame(server.python) if server is not None else None
        if parent is not None and at is not None:
            found.append(view.culprit(parent, at, server))
    return tuple(dict.fromkeys(found))
