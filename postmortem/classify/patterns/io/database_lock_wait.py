"""A database makes the program wait for a lock that another session holds.

**What it looks like.** A thread or task waits for the answer of a database; the server's process for its session says so in
its own title (PostgreSQL: `SELECT waiting`), or a thread of the server waits in its functions for locks (MySQL and MariaDB:
`MDL_context::acquire_lock`). Or a call of `sqlite3` sleeps and tries again, because another connection has the database
locked. Other sessions are idle in the middle of a transaction. Or a library asks a server such as Redis for a lock again and
again, and does not get it.

**Easily mistaken for** `network-wait`: the connection is fine, and the server is not slow; `pool-exhausted`, where no connection
is left.

**Why it hangs.** A transaction keeps its locks until it commits or rolls back. One that is left open (an exception, a session
that is never closed, a pause inside of it) blocks everyone who wants the same rows or table, for as long as it stays open.

**Remedy.** Commit or roll back on every way out (`with session.begin():`, `with connection:`), never wait for anything else in
the middle of a transaction, and set lock_timeout, statement_timeout and idle_in_transaction_session_timeout.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePath
from typing import Callable, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from ....evidence import NativeFrame, Process, PythonFrame, Resource, Task, Thread
from ....evidence.stacks import is_sqlite
from ....evidence.vocabulary import WaitKind
from ....findings import Template
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import is_library, is_stdlib, own_frame
from ...facts.peers import clients_of, goes_on_soon, server_of
from ...facts.sessions import Session, session_of, sessions
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.rest import asks_for_lock, is_asleep
from ...roots.walk import follow

PATTERN = Pattern(
    id="database-lock-wait",
    tier="resource",
    title="a database makes the program wait for a lock that another session holds",
    explanation=(
        "The statement wants a row, table or file that another transaction has locked, and that transaction is still open. The "
        "database answers only when it ends, and no limit is set on how long that may take."
    ),
    remedy=(
        "End the transaction that holds the lock: commit or roll back on every way out of the code that opened it. Set "
        "lock_timeout or statement_timeout for the waiting session, and idle_in_transaction_session_timeout for all."
    ),
    references=(
        "https://www.postgresql.org/docs/current/explicit-locking.html",
        "https://www.postgresql.org/docs/current/runtime-config-client.html",
        "https://www.sqlite.org/lockingv3.html",
    ),
)

_SHOWN = 6
#: Waits for other code of the same process, during which a thread does no work of its own.
#: Waits of a thread in which it does not work with a lock that a server keeps, until code of the same process or a signal ends
#: them.
_SIGNALLED: FrozenSet[WaitKind] = frozenset(("condition", "event", "semaphore", "lock", "rlock", "thread", "signal"))
#: Functions of embedded databases that wait for the lock of writers (LMDB 0.9's mdb.c).
_WRITERS = re.compile(r"mdb_txn_(begin|renew0?)$")
#: How the names of files begin that are the table of locks of a database: all its connections map it, and wait there for
#: locks that others have (Firebird 2.5-5.0: src/lock/lock.cpp).
_LOCK_TABLE = "fb_lock_"
#: Functions of SQLite itself, wherever a library brings it along, that sleep until another connection gives up its lock
#: (sqlite3.c, 3.x: sqliteDefaultBusyCallback).
_BUSY = frozenset(("sqliteDefaultBusyCallback", "sqlite3OsSleep", "unixSleep"))
#: Functions of MySQL and MariaDB in which a session waits for a lock (sql/mdl.cc, mysys/thr_lock.c, storage/innobase/lock).
_OF_SERVERS = re.compile(
    r"MDL_wait::timed_wait|MDL_context::acquire_lock|thr_(multi_)?lock$|lock_wait(_suspend_thread)?\b"
)
#: Their functions of a statement that reads or writes rows: what a session waits for in one of them, other than an
#: interrupt, is a lock on a row (sql/sql_parse.cc, sql/handler.cc; InnoDB's own functions have no symbols).
_STATEMENT, _ROWS = "dispatch_command", re.compile(r"handler::|ha_\w+::")
#: Least part of the window for which a call lasts that only waits.
_WHOLE = 0.9

_SUMMARY = Template("{agent} waits{at} for {session}, which waits for a lock{holders}")
_HOLDERS = Template("; {count:n other session} of the database {count:v is|are} idle in a transaction")
_SESSION_OF = Template("the session of {user} in database {database} ({doing})")
_TITLE = Template("the server's process {pid} says: {title}")
_INSIDE = Template("{agent} waits{at} for {server}, a thread of which waits for a lock in {function}")
_OF_SERVER = Template("thread {tid} of {server} is in {function}")
_WRITES = Template("{thread} waits{at} in {function} of {library} for the lock of the database{holder}")
_HELD_BY = Template(", held by {holder}{at}")
_NATIVE_REMEDY = Template(
    "Keep write transactions short, and wait for nothing else inside of one: collect what is to be written first, or commit and "
    "begin again. One environment has one writer at a time, in all threads and processes together."
)
_IN_TABLE = Template("{thread} waits{at} for a lock that another connection to the database has")
_GRANTS = Template("it sleeps in {table}, the database engine's table of locks, until one is granted")
_TABLE_REMEDY = Template(
    "Commit or roll back on every way out of the code that began the other transaction, before that waits for anything else, and "
    "let a transaction wait for locks only for a limited time (with Firebird a lock timeout in its TPB, or NO WAIT)."
)
_MOVES = Template("it gets an answer again and again: the lock is in demand, and nobody keeps it for long")
_HAS_IT = Template("{holder} has the lock{at} ({basis:known})")
#: Kinds of locks that a holder gives back.
_HELD = ("lock", "rlock", "mutex", "rwlock", "file-lock")
_HOLDER_MOVES = Template("{holder} goes on: it may be at work, and only slow")
_SOON = Template("the transaction waits for {holder}, which goes on soon: it may only be slow")
#: Wake-ups a second of a session that gets statements.
_WOKEN = 0.5
_STATEMENTS = Template("{count:n such session} {count:v gets|get} statements all the time: the transaction goes on")
_IDLE = Template("session {pid} of {user} is idle in a transaction{client}")
_OURS = Template(", opened by {process}")
_RETRIES = Template(
    "{thread} is in {call}{at}, which sleeps and tries again: another connection has the database locked"
)
_BRIEF = Template("{thread} gets the database within the window: its call of sqlite3 is another one than before")
_SLEEPS = Template("{thread} sleeps in {call} of {function}")
_ASKS = Template("{thread} is in {function} of {file}{at}, which asks {server} for a lock until it gets it")
_ASKED = Template("all of its {count:n sample} in the window are in that call")
_ALL_ASK = Template("every program that is connected with {server} asks for a lock: none of them is at work with one")
_KEPT_REMEDY = Template(
    "Give the lock an expiry that its holder renews while it lives, so that it ends with its holder, acquire it with a time "
    "limit, and delete the key that a killed holder has left behind."
)
_EMBEDDED_REMEDY = Template(
    "Commit or roll back on every way out of the code that began the other transaction (`with connection:` does both), and "
    "close the cursors of unfinished queries. A `timeout` of a few seconds in sqlite3.connect() turns the wait into an error."
)
_FILE = Template("what it asks for is the {lock}")
_OTHER = Template("{holder} has that lock: a transaction there is open")
_GOES_ON = Template("its main thread goes on: what would decide it is whether it comes to end that transaction")
_OWN = Template("process {pid} itself has that lock: another connection of its own has a transaction open")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each place that waits for a session which itself waits for a lock, and for sqlite's busy handler."""
    known, locked = sessions(view), _locked(view)
    for process in view.pythons:
        yield from _served(view, process, known)
        yield from _inside(view, process, locked)
        yield from _kept(view, process)
        for thread in process.threads:
            wanted = _writers_lock(view, process, thread)
            if wanted is not None and not _is_its_own(view, process, wanted[0]):
                yield _native(view, process, thread, *wanted)
            table = _lock_table(view, process, thread)
            if table is not None:
                yield _in_table(view, process, thread, table)
            if _retries(thread):
                lasts = _lasts(view, thread)
                yield (
                    _embedded(view, process, thread, lasts)
                    if lasts is not False
                    else No(_BRIEF(thread=clauses.named(thread)))
                )


def _served(view: View, process: Process, known: Dict[int, Session]) -> Iterator[Match]:
    """Yield a match for each waiting line of a process whose session waits for a lock."""
    found = _by_place(view, process, partial(_waiting_sessions, view))
    for (frame, pid), agents in found.items():
        yield _match(view, process, known[pid], known, frame, agents)
    yield from _served_on_loops(view, process, known, {pid for _frame, pid in found})


def _served_on_loops(view: View, process: Process, known: Dict[int, Session], told: Set[int]) -> Iterator[Match]:
    """Yield a match for each loop with one such session, none of ``told``, and one task that may wait for its answer."""
    for loop in process.loops:
        sockets = [resource for resource in process.resources if resource.id in {*loop.sockets, *loop.descriptors}]
        waiting = sorted({pid for socket in sockets for pid in _waiting_sessions(view, socket)} - told)
        tasks = [task for task in process.tasks if task.loop == loop.id and _asks_a_peer(task)]
        if waiting and len(tasks) == len(waiting) == 1:
            agent = Agent(process.pid, task=tasks[0].id)
            yield _match(view, process, known[waiting[0]], known, own_frame(tasks[0].stack), [agent])


def _waiting_sessions(view: View, resource: Resource) -> Set[int]:
    """Return the PIDs of the sessions at the other end of a connection that wait for a lock: one or none."""
    session = session_of(view, resource)
    return {session.pid} if session is not None and session.waits else set()


def _asks_a_peer(task: Task) -> bool:
    """Return whether a task waits inside a library that the program's code in it has called."""
    called = [frame for frame in task.stack if not is_stdlib(frame)]
    inside = bool(called) and is_library(called[0]) and not all(map(is_library, called))
    return inside and task.state == "pending" and not task.ready and task.wait is not None and task.wait.kind != "sleep"


def _kept(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for each thread that a library lets wait, all through the window, for a lock which a server keeps.

    No program that could hold it is seen at work: each captured one that is connected with the server asks for a lock, too.
    """
    for thread in process.threads:
        frame, count = own_frame(thread.python), _asked(view, thread)
        server = server_of(view, process)
        asking = asks_for_lock(thread.python, is_asleep(thread))
        if server is None or asking is None or frame is None or not count:
            continue
        clients = [view.by_pid.get(pid) for pid in clients_of(server)]
        if all(client is not None and _only_asks(view, client) for client in clients):
            named = clauses.process(server)
            said = {"function": asking.function, "file": "/".join(PurePath(asking.file).parts[-2:])}
            yield Match(
                confidence="likely",
                summary=_ASKS(thread=clauses.named(thread), at=clauses.at(frame), server=named, **said),
                remedy=_KEPT_REMEDY(),
                evidence=(_ASKED(count=count), _ALL_ASK(server=named)),
                culprits=(view.culprit(process, frame, thread),),
                victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
                pid=process.pid,
            )


def _only_asks(view: View, client: Process) -> bool:
    """Return whether a process asks for a lock, and none of its other threads is at work, or in a sleep, with one."""
    asking = [thread for thread in client.threads if _asked(view, thread)]
    others = [thread for thread in client.threads if thread.python and thread not in asking and not view.idle(thread)]
    waits = [thread.wait for thread in others]
    return bool(asking) and all(wait is not None and wait.kind in _SIGNALLED for wait in waits)


def _asked(view: View, thread: Thread) -> int:
    """Return in how many samples a thread asks for a lock that is kept elsewhere; 0 if it does anything else in one."""
    asking, frame = asks_for_lock(thread.python, is_asleep(thread)), own_frame(thread.python)
    if asking is None or frame is None:
        return 0
    samples = list(view.samples(thread))
    inside = (
        any((f.file, f.line) == (frame.file, frame.line) for f in frames)
        and any((f.file, f.function) == (asking.file, asking.function) for f in frames)
        for _count, frames in samples
    )
    return sum(count for count, _frames in samples) if all(inside) else 0


def _inside(view: View, process: Process, locked: Dict[int, Tuple[int, NativeFrame]]) -> Iterator[Match]:
    """Yield a match for each line that waits for a captured server of which a thread waits for a lock.

    ``locked``: see ``_locked``.
    """

    def servers_of(resource: Resource) -> Set[int]:
        return (
            ({end.pid for end in resource.ends} - {process.pid}) & locked.keys() if resource.kind == "socket" else set()
        )

    for (frame, pid), agents in _by_place(view, process, servers_of).items():
        tid, inside = locked[pid]
        named, function = clauses.process(view.by_pid[pid]), (inside.function or "").partition("(")[0]
        moving = _moving(view, agents)
        yield Match(
            confidence="possible" if moving else "likely",
            summary=_INSIDE(agent=agents[0], at=clauses.at(frame), server=named, function=function),
            evidence=(_OF_SERVER(tid=tid, server=named, function=function), *([_MOVES()] if moving else [])),
            culprits=(view.culprit_of(agents[0], frame),) if frame is not None else (),
            victims=tuple(view.victim_of(agent) for agent in (*agents[1:], *view.graph.behind(frozenset(agents)))),
            pid=process.pid,
        )


def _by_place(
    view: View, process: Process, peers: Callable[[Resource], Set[int]]
) -> Dict[Tuple[Optional[PythonFrame], int], List[Agent]]:
    """Return the agents of a process that wait at sockets, by line and by which of the chosen peers is at the other end."""
    found: Dict[Tuple[Optional[PythonFrame], int], List[Agent]] = {}
    for agent, resource in _on_sockets(process):
        for pid in sorted(peers(resource)):
            found.setdefault((own_frame(view.graph.places.stack(agent)), pid), []).append(agent)
    return found


def _moving(view: View, agents: List[Agent]) -> bool:
    """Return whether one gets answers again and again: rows in demand, and no session that keeps them."""
    threads = (view.graph.places.thread(agent) for agent in agents)
    return any(thread is not None and view.moves(thread) for thread in threads)


def _locked(view: View) -> Dict[int, Tuple[int, NativeFrame]]:
    """Return the servers of which a thread waits for a lock of the database: PID → (tid, the function that wants it)."""
    found: Dict[int, Tuple[int, NativeFrame]] = {}
    for server in view.processes:
        for thread in server.threads if server.python is None else ():
            wanting = _wanting(thread)
            if wanting is not None:
                found.setdefault(server.pid, (thread.tid, wanting))
    return found


def _wanting(thread: Thread) -> Optional[NativeFrame]:
    """Return the function in which a thread of a server waits for a lock of its database; None if it does not."""
    if thread.wait is None or thread.wait.syscall != "futex":
        return None
    named = [(frame, frame.function) for frame in thread.native if frame.function is not None]
    serves = any(function.startswith(_STATEMENT) for _frame, function in named)
    waits = (f for f, function in named if _OF_SERVERS.match(function) or (serves and _ROWS.match(function)))
    return next(waits, None)


def _on_sockets(process: Process) -> Iterator[Tuple[Agent, Resource]]:
    """Yield the threads and tasks that wait for a socket, whether or not they wake in between."""
    resources = {r.id: r for r in process.resources if r.kind in ("socket", "descriptors")}
    for thread in process.threads:
        wanted = resources.get(thread.wait.resource or "") if thread.wait is not None else None
        if wanted is not None:
            yield Agent(process.pid, thread.tid), wanted
    for task in process.tasks:
        ident = (task.wait.resource if task.wait is not None else None) or task.resource
        wanted = resources.get(ident or "")
        if wanted is not None and task.state == "pending":
            yield Agent(process.pid, task=task.id), wanted


def _match(
    view: View,
    process: Process,
    session: Session,
    known: Dict[int, Session],
    frame: Optional[PythonFrame],
    agents: List[Agent],
) -> Match:
    moving = _moving(view, agents)
    open_ones = [one for one in known.values() if one.database == session.database and one.in_transaction]
    facts: List[Said] = [_TITLE(pid=session.pid, title=session.title)]
    facts += [_IDLE(pid=one.pid, user=one.user, client=_client(view, one)) for one in open_ones[:_SHOWN]]
    facts += [_MOVES()] if moving else []
    at_work = bool(open_ones) and all(_works(view, one) for one in open_ones)
    facts += [_STATEMENTS(count=len(open_ones))] if at_work else []
    told = _SESSION_OF(user=session.user, database=session.database, doing=session.doing)
    return Match(
        confidence="possible" if moving or at_work else "likely",
        summary=_SUMMARY(
            agent=agents[0],
            at=clauses.at(frame),
            session=told,
            holders=_HOLDERS(count=len(open_ones)) if open_ones else None,
        ),
        evidence=tuple(facts),
        culprits=(view.culprit_of(agents[0], frame),) if frame is not None else (),
        victims=tuple(view.victim_of(agent) for agent in (*agents[1:], *view.graph.behind(frozenset(agents)))),
        pid=process.pid,
    )


def _works(view: View, session: Session) -> bool:
    """Return whether a session's process was woken during the window: its client goes on with the transaction."""
    server = view.by_pid.get(session.pid)
    return server is not None and any((view.switches(thread) or 0.0) >= _WOKEN for thread in server.threads)


def _client(view: View, session: Session) -> Optional[Said]:
    """Return which captured process has the other end of a session's connection; None if unknown."""
    server = view.by_pid.get(session.pid)
    ends = (end for r in (server.resources if server is not None else ()) for end in r.ends if end.pid != session.pid)
    client = next((view.by_pid[end.pid] for end in ends if end.pid in view.by_pid), None)
    return _OURS(process=clauses.process(client)) if client is not None else None


def _retries(thread: Thread) -> bool:
    """Return whether a thread sleeps in a call of sqlite3, which does so only while the database is locked."""
    called = thread.calling.function if thread.calling is not None else ""
    wait = thread.wait
    # since the object that is asked for was read, such a sleep is a wait for the lock on the file
    sleeps = wait is not None and (wait.kind == "sleep" or (wait.kind == "file" and wait.polls_s is not None))
    return sleeps and (is_sqlite(called) or any(frame.function in _BUSY for frame in thread.native[:8]))


def _lasts(view: View, thread: Thread) -> Optional[bool]:
    """Return whether a thread was in the same call for the whole window; None without a window, as in a core."""
    if view.window is None or thread.calling is None:
        return None
    return (thread.calling.lasts_s or 0.0) >= _WHOLE * view.window


def _writers_lock(view: View, process: Process, thread: Thread) -> Optional[Tuple[Resource, NativeFrame]]:
    """Return the lock of a database's writers that a thread waits for, and the library's function that wants it."""
    resource = view.graph.places.resource(process.pid, thread.wait.resource) if thread.wait is not None else None
    if resource is None or resource.kind not in ("mutex", "semaphore"):
        return None
    frame = next((f for f in thread.native if f.function is not None and _WRITERS.match(f.function)), None)
    return (resource, frame) if frame is not None else None


def _lock_table(view: View, process: Process, thread: Thread) -> Optional[str]:
    """Return the name of the lock table of an embedded database in which a thread waits for a lock; None if in none."""
    resource = view.graph.places.resource(process.pid, thread.wait.resource) if thread.wait is not None else None
    if resource is None or resource.kind != "condition" or not thread.python:
        return None
    name = PurePath(resource.file or "").name
    return name if name.startswith(_LOCK_TABLE) else None


def _in_table(view: View, process: Process, thread: Thread, table: str) -> Match:
    """Return the match of a thread that waits for a lock which another connection to an embedded database has."""
    frame = own_frame(thread.python)
    moves = view.moves(thread)
    return Match(
        confidence="possible" if moves or not view.window else "likely",
        summary=_IN_TABLE(thread=clauses.named(thread), at=clauses.at(frame)),
        evidence=(_GRANTS(table=table), *([_MOVES()] if moves else [])),
        culprits=(view.culprit(process, frame, thread),) if frame is not None else (),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        remedy=_TABLE_REMEDY(),
        pid=process.pid,
    )


def _is_its_own(view: View, process: Process, lock: Resource) -> bool:
    """Return whether the holder of a lock waits for it as well: that thread's own deadlock, and all others are its victims."""
    holder = view.thread(process, lock.owner_tid) if lock.owner_pid in (None, process.pid) else None
    return holder is not None and holder.wait is not None and holder.wait.resource == lock.id


def _native(view: View, process: Process, thread: Thread, lock: Resource, inside: NativeFrame) -> Match:
    """Return the match of a thread that waits to begin a write transaction of an embedded database."""
    frame = own_frame(thread.python)
    owner = view.by_pid.get(lock.owner_pid or process.pid)
    holder = view.thread(owner, lock.owner_tid) if owner is not None else None
    held = own_frame(holder.python) if holder is not None else None
    stuck = view.graph.stuck(Agent(process.pid, thread.tid)) == "proven"
    culprits = [view.culprit(process, frame, thread)] if frame is not None else []
    if owner is not None and held is not None:
        culprits.append(view.culprit(owner, held, holder))
    told = _HELD_BY(holder=clauses.named(holder), at=clauses.at(held)) if holder is not None else None
    moves = view.moves(thread)
    way = follow(view, Agent(process.pid, thread.tid))
    in_circle = sum(edge.kind in _HELD for edge in way.cycle) > 1  # of several locks, which is then the cause
    # the holder waits for another process, which is about to go on: it is only slow
    soon = owner is not None and way.end.pid not in (process.pid, owner.pid) and goes_on_soon(view, way.end)
    works = holder is not None and view.moves(holder)
    less = moves or in_circle or soon or works
    return Match(
        confidence="possible" if less else "proven" if stuck and not lock.owner_gone else "likely",
        summary=_WRITES(
            thread=clauses.named(thread),
            at=clauses.at(frame),
            function=inside.function,
            library=(inside.module or "a library").rsplit("/", 1)[-1],
            holder=told,
        ),
        remedy=_NATIVE_REMEDY(),
        evidence=(
            *lock.because,
            *(
                [_HAS_IT(holder=clauses.named(holder), at=clauses.at(held), basis=lock.owner_basis)]
                if holder and lock.owner_basis
                else []
            ),
            *([_MOVES()] if moves else []),
            *([_SOON(holder=way.end)] if soon else []),
            *([_HOLDER_MOVES(holder=clauses.named(holder))] if holder is not None and works else []),
        ),
        culprits=tuple(culprits),
        pid=process.pid,
    )


def _embedded(view: View, process: Process, thread: Thread, lasts: Optional[bool]) -> Match:
    frame = own_frame(thread.python)
    call = thread.calling.function if thread.calling is not None else "sqlite3"
    syscall = thread.wait.syscall if thread.wait is not None else None
    wanted = view.graph.places.resource(process.pid, thread.wait.resource) if thread.wait is not None else None
    holder = view.by_pid.get(wanted.owner_pid or 0) if wanted is not None else None
    main = view.main(holder) if holder is not None and holder is not process else None
    goes_on = main is not None and view.moves(main)
    own = [t for t in process.threads if _retries(t)]
    committing = who_comes_to(view, process, "commits", *own) if holder is process else []
    return Match(
        confidence="likely" if lasts and not (goes_on or committing) else "possible",
        summary=_RETRIES(thread=clauses.named(thread), call=call, at=clauses.at(frame)),
        remedy=_EMBEDDED_REMEDY(),
        evidence=(
            _SLEEPS(thread=clauses.named(thread), call=syscall, function=call),
            *((_FILE(lock=wanted.description),) if wanted is not None else ()),
            *((_OTHER(holder=clauses.process(holder)),) if holder is not None and holder is not process else ()),
            *((_OWN(pid=process.pid),) if holder is process else ()),
            *((_GOES_ON(),) if goes_on else ()),
            *later("commits", committing),
        ),
        culprits=(view.culprit(process, frame, thread),) if frame is not None else (),
        pid=process.pid,
    )
