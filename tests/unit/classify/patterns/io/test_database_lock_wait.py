"""Waits for a lock inside a database: sessions of PostgreSQL by their titles, and sqlite's busy handler."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.roots.roots import roots
from postmortem.evidence import (
    Calling,
    End,
    Evidence,
    Loop,
    NativeFrame,
    PythonFrame,
    Resource,
    Task,
    TaskWait,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed

from .....support.make import counters, evidence, found, frame, lines, process, samples, stack, thread, verdict

ASKS = Wait("socket", "poll", "socket-1", endless=True, fd=6, detail="socket", verb="call")


def client(title: Optional[str]) -> Evidence:
    """Return a program that waits for a socket whose other end is a process with this title."""
    ends = (End(7, 6, "rw"), End(713, 9, "rw", in_tree=False, program=title))
    socket = Resource("socket-1", "socket", "socket 127.0.0.1:40412 → 127.0.0.1:5432 (descriptor 6)", ends=ends)
    main = thread(7, stack("balance", "book"), wait=ASKS, is_main=True)
    return evidence(process([main], resources=(socket,), pid=7))


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("postgres: fees ledger 127.0.0.1(40412) SELECT waiting", "likely"),
        ("postgres: 15/main: fees ledger [local] UPDATE waiting", "likely"),
        ("postgres: fees ledger 127.0.0.1(40412) SELECT", None),  # it computes
        ("postgres: fees ledger 127.0.0.1(40412) idle in transaction", None),  # that is who makes others wait
        ("nginx: worker process", None),
        (None, None),
    ],
)
def test_a_session_says_that_it_waits(title: Optional[str], said: Optional[str]) -> None:
    """Only a session whose title ends in "waiting" waits for a lock."""
    assert found(client(title)).get("database-lock-wait") == said


@pytest.mark.parametrize(("switches", "said"), [(0, "likely"), (3, "possible")])
def test_a_transaction_that_goes_on_will_end(switches: int, said: str) -> None:
    """The other session is idle between two statements: if it gets some all the time, its client is at work."""
    known = client("postgres: fees ledger 127.0.0.1(40412) UPDATE waiting")
    session = process(
        [thread(714, wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters(switches=switches))],
        pid=714, python=None, argv=("postgres: fees ledger 127.0.0.1(40414) idle in transaction",),
    )  # fmt: skip
    assert found(changed(known, processes=(*known.processes, session))).get("database-lock-wait") == said


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("MDL_wait::timed_wait(MDL_context_owner*, timespec*, bool, PSI_stage_info_v1 const*)", "likely"),
        ("MDL_context::acquire_lock(MDL_request*, double)", "likely"),
        ("lock_wait(que_thr_t*)", "likely"),
        ("handler::ha_index_read_map(unsigned char*, unsigned char const*, unsigned long, ha_rkey_function)", "likely"),
        ("Item_func_sleep::val_int()", None),
        ("tpool::thread_pool_generic::wait_for_tasks(std::unique_lock<std::mutex>&)", None),
    ],
)
def test_a_servers_thread_waits_for_a_lock(function: str, said: Optional[str]) -> None:
    """MySQL and MariaDB serve each session in a thread, whose functions say what it waits for."""
    within = [
        NativeFrame(name, "/usr/sbin/mariadbd", 7) for name in (function, "dispatch_command(enum_server_command, THD*)")
    ]
    session = thread(714, within, wait=Wait("condition", "futex", endless=False))
    known = client("mariadbd")
    known = changed(known, processes=(*known.processes, process([session], pid=713, python=None)))
    assert found(known).get("database-lock-wait") == said


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("postgres: fees ledger 127.0.0.1(40412) idle", None),
        ("postgres: fees ledger 127.0.0.1(40412) SELECT", "likely"),
        ("postgres: fees ledger 127.0.0.1(40412) idle in transaction", "likely"),
    ],
)
def test_a_client_of_an_idle_session_waits_for_notifications(title: str, said: Optional[str]) -> None:
    """Where no statement runs, no answer is due: LISTEN rests by design, and the root says so."""
    known = client(title)
    assert found(known).get("network-wait") == said
    assert (roots(View(known))[0].state == "idle") == (said is None)


@pytest.mark.parametrize(
    ("wait", "function", "said"),
    [
        (Wait("sleep", "clock_nanosleep", timeout_s=0.1, endless=False), "sqlite3.Connection.execute", "likely"),
        (Wait("file", "clock_nanosleep", endless=False, polls_s=0.1), "sqlite3.Cursor.execute", "likely"),
        (Wait("file", "clock_nanosleep", endless=False, polls_s=0.1), "apsw.Connection.__exit__", "likely"),
        (Wait("sleep", "clock_nanosleep", timeout_s=0.1, endless=False), "time.sleep", None),
        (Wait("file", "pread64", fd=3), "sqlite3.Connection.execute", None),  # it reads a large table
        (None, "sqlite3.Connection.execute", None),  # a long query computes
    ],
)
def test_sqlite_sleeps_only_while_the_database_is_locked(
    wait: Optional[Wait], function: str, said: Optional[str]
) -> None:
    """The busy handler of sqlite is the only code of it that sleeps."""
    calling = Calling(function, lasts_s=1.0)
    known = changed(evidence(process([thread(1, stack("write", "sell"), wait=wait, calling=calling)])), window_s=1.0)
    assert found(known).get("database-lock-wait") == said
    if said is not None:
        assert lines(known) == [1]


@pytest.mark.parametrize(
    ("lasts", "window", "said"), [(1.0, 1.0, "likely"), (None, 1.0, None), (0.2, 1.0, None), (None, None, "possible")]
)
def test_a_writer_that_gets_its_turn(lasts: Optional[float], window: Optional[float], said: Optional[str]) -> None:
    """Writers of sqlite wait for each other now and then, and go on: only a call that lasts is one that hangs."""
    wait, calling = (
        Wait("file", "clock_nanosleep", endless=False, polls_s=0.1),
        Calling("sqlite3.Cursor.execute", lasts_s=lasts),
    )
    known = changed(evidence(process([thread(1, stack("write"), wait=wait, calling=calling)])), window_s=window)
    assert found(known).get("database-lock-wait") == said


@pytest.mark.parametrize(("switches", "expected"), [(0, "likely"), (3, "possible")])
def test_another_program_whose_transaction_goes_on(switches: int, expected: str) -> None:
    """It books one part after the other, and commits at its end; or it left its transaction open, and does nothing."""
    wanted = Resource("f", "file-lock", "lock on till.db", waiters=(1,), owner_pid=2, owner_basis="recorded")
    wait = Wait("file", "clock_nanosleep", "f", endless=False, polls_s=0.1)
    till = thread(1, stack("write"), wait=wait, calling=Calling("sqlite3.Connection.execute", lasts_s=1.0))
    nap = Wait("sleep", "clock_nanosleep", timeout_s=0.35, endless=False)
    books = thread(2, stack("book"), wait=nap, counters=counters(switches=switches), is_main=True)
    known = evidence(process([till], resources=(wanted,)), process([books], pid=2), window=1.0)
    assert found(known).get("database-lock-wait") == expected


@pytest.mark.parametrize(("deeds", "expected"), [(("commits",), "possible"), ((), "likely"), (None, "likely")])
def test_another_thread_whose_transaction_goes_on(deeds: Optional[Tuple[Deed, ...]], expected: str) -> None:
    """Its code uses the database, and it goes on; a thread that only counts is no such thread."""
    wanted = Resource("f", "file-lock", "lock on till.db", waiters=(1,), owner_pid=1, owner_basis="recorded")
    wait = Wait("file", "clock_nanosleep", "f", endless=False, polls_s=0.1)
    till = thread(
        1, stack("write"), wait=wait, calling=Calling("sqlite3.Connection.execute", lasts_s=1.0), deeds=("commits",)
    )
    nap = Wait("sleep", "clock_nanosleep", timeout_s=0.35, endless=False)
    books = thread(2, stack("book"), wait=nap, counters=counters(switches=3), deeds=deeds)
    known = evidence(process([till, books], resources=(wanted,)), window=1.0)
    assert found(known).get("database-lock-wait") == expected


def test_rows_in_demand_are_no_wait_without_end() -> None:
    """The waiter gets an answer again and again: nobody keeps the lock."""
    known = client("postgres: fees ledger 127.0.0.1(40412) SELECT waiting")
    moving = changed(known.processes[0].threads[0], counters=counters(0.02, switches=60))
    known = changed(known, processes=(changed(known.processes[0], threads=(moving,)),))
    assert found(known).get("database-lock-wait") in (None, "possible")


@pytest.mark.parametrize("held", [True, False])
def test_a_writer_of_an_embedded_database_waits_for_another(held: bool) -> None:
    """LMDB has one writer at a time, in all processes: its own line is named, and the holder's where that is known."""
    lock = Resource("m", "mutex", "a mutex wanted in mdb_txn_renew0", locked=True, waiters=(1,))
    if held:
        lock = changed(lock, owner_tid=2, owner_pid=2, owner_basis="recorded")
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("checkpoint", 63))
    asks = thread(1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True)
    reads = thread(2, [frame("store", 34)], wait=Wait("pipe", "read", "p", endless=True), is_main=True)
    pipe = Resource("p", "pipe", "pipe", ends=(End(1, 4, "w"), End(2, 3, "r")))
    known = evidence(process([asks], resources=(lock,)), process([reads], resources=(pipe,), pid=2, ppid=1))
    assert found(known)["database-lock-wait"] in ("likely", "proven")
    assert lines(known) == ([63, 34] if held else [63])


@pytest.mark.parametrize(("switches", "expected"), [(1, "likely"), (40, "possible")])
def test_a_wait_in_the_lock_table_of_an_embedded_engine(switches: int, expected: str) -> None:
    """Firebird's table is mapped by all connections. A lock that is granted again and again is only in demand."""
    file = "/tmp/firebird/fb_lock_00fe0000b0cb9c00"
    table = Resource("c", "condition", "a condition variable of fb_lock_00fe", waiters=(2,), native=True, file=file)
    waits = Wait("condition", "futex", "c", endless=False, remaining_s=3.0)
    asks = thread(2, [frame("count", 63)], wait=waits, counters=counters(switches=switches))
    joins = Resource("t", "thread", "thread counter", waiters=(1,), owner_tid=2, owner_basis="recorded")
    main = thread(1, [frame("main", 95)], wait=Wait("lock", "futex", "t", endless=True), is_main=True)
    known = evidence(process([main, asks], resources=(table, joins)))
    assert (found(known)["database-lock-wait"], lines(known)[0]) == (expected, 63)


def test_a_writer_that_gets_its_turns_is_in_demand() -> None:
    """The lock changes hands: nobody keeps it."""
    lock = Resource(
        "m", "mutex", "a mutex wanted in mdb_txn_renew0", locked=True, waiters=(1,), owner_tid=2, owner_pid=2
    )
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("checkpoint", 63))
    asks = thread(
        1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True, counters=counters(0.02, switches=16)
    )
    computes = thread(2, [frame("store", 34)], is_main=True)
    known = evidence(process([asks], resources=(lock,)), process([computes], pid=2, ppid=1))
    assert found(known).get("database-lock-wait") in (None, "possible")


@pytest.mark.parametrize(("rounds", "expected"), [(25, "possible"), (0, "likely")])
def test_a_long_transaction_at_work_is_only_slow(rounds: int, expected: str) -> None:
    """Its holder sleeps between two of its writes."""
    lock = Resource(
        "m", "mutex", "a mutex wanted in mdb_txn_renew0", locked=True, waiters=(1,), owner_tid=2, owner_pid=2
    )
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("book", 33))
    asks = thread(1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True, counters=counters())
    pause = Wait("sleep", "pselect6", endless=False, timeout_s=0.04, remaining_s=0.02)
    imports = thread(2, [frame("results", 57)], wait=pause, is_main=True, counters=counters(0.001, rounds))
    known = evidence(process([asks], resources=(lock,)), process([imports], pid=2, ppid=1))
    assert found(known)["database-lock-wait"] == expected


def test_a_writer_that_begins_twice_has_its_own_deadlock() -> None:
    """LMDB's mutex records the thread that waits for it; what other writers wait for is the same."""
    lock = Resource(
        "m",
        "mutex",
        "a mutex wanted in mdb_txn_renew0",
        locked=True,
        waiters=(1, 2),
        owner_tid=1,
        owner_basis="recorded",
    )
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("checkpoint", 63))
    twice = thread(1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True)
    other = thread(2, frames, wait=Wait("mutex", "futex", "m", endless=True))
    assert "database-lock-wait" not in found(evidence(process([twice, other], resources=(lock,))))


def test_a_writer_in_a_circle_with_a_lock_of_python() -> None:
    """The holder of the transaction wants a lock that the waiting writer has: the order of the two is the cause."""
    begins = Resource(
        "m", "mutex", "a mutex wanted in mdb_txn_renew0", locked=True, waiters=(1,), owner_tid=2, owner_basis="recorded"
    )
    guard = Resource(
        "g", "lock", "Lock guard", locked=True, waiters=(2,), owner_tid=1, owner_basis="recorded", closed=True
    )
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("checkpoint", 63))
    writer = thread(1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True)
    holder = thread(2, [frame("store", 34)], wait=Wait("lock", "futex", "g", endless=True))
    known = evidence(process([writer, holder], resources=(begins, guard), signal_handlers=()))
    assert verdict(known) == "lock-order-deadlock"
    assert found(known).get("database-lock-wait") in (None, "possible")


def test_a_transaction_whose_holder_waits_for_what_the_waiter_would_put() -> None:
    """No order of locks helps: the transaction is to wait for nothing, and its line and the waiting one are named."""
    begins = Resource(
        "m", "mutex", "a mutex wanted in mdb_txn_renew0", locked=True, waiters=(1,), owner_tid=2, owner_basis="recorded"
    )
    puts = Waker("reach", "memory", tid=1, grade="names", site=frame("feed", 80))
    inbox = Resource("q", "queue", "Queue inbox", waiters=(2,), wakers=(puts,), closed=True)
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("ensure", 70))
    writer = thread(1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True)
    holder = thread(2, [frame("store", 50)], wait=Wait("condition", "futex", "q", endless=True))
    known = evidence(process([writer, holder], resources=(begins, inbox), signal_handlers=()))
    assert (verdict(known), lines(known)[:2]) == ("database-lock-wait", [70, 50])


LIBRARY = "/venv/lib/python3.12/site-packages/redis"


def asks_server(*others: Tuple[PythonFrame, ...], at: str = "acquire") -> Evidence:
    """Return a program that a library lets wait for a lock which a server keeps, and that server.

    ``at``: the library's function. ``others``: the stacks of other programs that are connected with the server.
    """
    asks = (frame(at, 218, f"{LIBRARY}/lock.py"), frame("book", 63), frame("main", 95))
    clients = [(7, asks), *enumerate(others, 8)]
    programs = [
        process(
            [thread(pid, frames, wait=Wait("sleep", "select"), samples=samples((40, frames)), is_main=True)], pid=pid
        )
        for pid, frames in clients
    ]
    sockets = [
        Resource(f"s{pid}", "socket", "socket", ends=(End(pid, 4, "rw"), End(99, pid, "rw"))) for pid, _f in clients
    ]
    serves = thread(99, wait=Wait("other", "epoll_wait", endless=False), is_main=True)
    return evidence(*programs, process([serves], pid=99, python=None, argv=("redis-server",), resources=tuple(sockets)))


def test_a_library_asks_a_server_for_a_lock_that_nobody_is_seen_to_hold() -> None:
    """Only the program that asks is connected with the server: whoever held the lock is gone, or in no transaction of it."""
    known = asks_server()
    assert (found(known)["database-lock-wait"], lines(known)[0]) == ("likely", 63)


def test_another_client_of_the_server_may_hold_the_lock_and_be_at_work() -> None:
    """A lock that is in use ends with that use: nothing says that it is kept for ever."""
    known = asks_server((frame("settle", 12), frame("main", 95)))
    assert found(known).get("database-lock-wait") in (None, "possible")


def test_a_lock_that_was_got_meanwhile_is_not_kept() -> None:
    """One sample shows the program at other work: the lock does come."""
    known = asks_server()
    main = known.processes[0].threads[0]
    worked = (*main.samples, *samples((2, (frame("write", 70), frame("book", 64), frame("main", 95)))))
    program = changed(known.processes[0], threads=(changed(main, samples=worked),))
    known = changed(known, processes=(program, *known.processes[1:]))
    assert found(known).get("database-lock-wait") in (None, "possible")


def test_a_sleep_in_another_function_of_a_library_asks_for_no_lock() -> None:
    """A client that fetches again and again is no client of locks."""
    assert "database-lock-wait" not in found(asks_server(at="fetch"))


def test_a_task_asks_a_server_for_a_lock() -> None:
    """A task's library sleeps between two attempts: what it wants is the lock, whatever the loop does."""
    frames = (*stack("asyncio.tasks.sleep"), frame("acquire", 221, f"{LIBRARY}/asyncio/lock.py"), frame("book", 63))
    task = Task(
        "Task-2",
        "Task-2",
        "pending",
        "loop-1",
        frames,
        "sleep(0.1)",
        wait=TaskWait("sleep", endless=False, timeout_s=0.1),
    )
    main = Task(
        "Task-1",
        "Task-1",
        "pending",
        "loop-1",
        (frame("main", 90),),
        "Task-2",
        wait=TaskWait("task", tasks=("Task-2",), endless=True),
    )
    idle = thread(1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=False), is_main=True)
    known = evidence(
        process([idle], tasks=(main, task), loops=(Loop("loop-1", 1, ready=0, scheduled=1, main_task="Task-1"),))
    )
    assert found(known).get("database-lock-wait") == "possible"


def test_another_thread_of_the_program_may_have_the_lock() -> None:
    """It sleeps in the middle of its turn, perhaps inside the lock's `with`: the lock changes hands."""
    known = asks_server()
    turn = thread(70, [frame("write_index", 31)], wait=Wait("sleep", "select", endless=False))
    program = changed(known.processes[0], threads=(*known.processes[0].threads, turn))
    known = changed(known, processes=(program, *known.processes[1:]))
    assert found(known).get("database-lock-wait") in (None, "possible")


@pytest.mark.parametrize(
    ("title", "others", "expected"),
    [("SELECT waiting", 0, "likely"), ("SELECT", 0, None), ("SELECT waiting", 1, None)],
)
def test_a_task_whose_loop_watches_a_session_that_waits(title: str, others: int, expected: Optional[str]) -> None:
    """The task awaits an event of its library's; of two tasks in that library it is not known whose session waits."""
    known = client(f"postgres: app postgres 127.0.0.1(60902) {title}")
    socket = known.processes[0].resources[0]
    waits = TaskWait("event", None, endless=True)
    frames = (
        *stack("asyncio.locks.wait"),
        frame("wait_async", 126, "/venv/lib/python3.12/site-packages/pg/waiting.py"),
    )
    tasks = [
        Task(
            f"t{n}", f"Task-{n}", "pending", "l", (*frames, frame("sync_carrier", 27)), "Event", wait=waits, ready=False
        )
        for n in range(1 + others)
    ]
    loop = Loop("l", 7, ready=0, scheduled=1, watched=1, sockets=("socket-1",))
    main = thread(7, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=False), is_main=True)
    asks = evidence(process([main], resources=(socket,), loops=(loop,), tasks=tuple(tasks), pid=7))
    assert found(asks).get("database-lock-wait") == expected


@pytest.mark.parametrize(("left", "expected"), [(9.0, "possible"), (3600.0, "likely")])
def test_a_transaction_that_waits_for_a_slow_process(left: float, expected: str) -> None:
    """The holder asks another process of the tree, which sleeps a little before it answers."""
    lock = Resource(
        "m", "mutex", "a mutex wanted in mdb_txn_renew0", locked=True, waiters=(1,), owner_tid=2, owner_pid=1
    )
    asked = Resource(
        "s", "socket", "socket a → b", waiters=(2,), peer_in_tree=True, wakers=(Waker("end", "kernel", pid=3),)
    )
    frames = (NativeFrame("mdb_txn_renew0", "/site/lmdb/cpython.so", 0x10), frame("checkpoint", 63))
    waits = thread(1, frames, wait=Wait("mutex", "futex", "m", endless=True), is_main=True, counters=counters())
    asks = thread(2, [frame("weigh", 54)], wait=Wait("socket", "recvfrom", "s", endless=True), counters=counters())
    nap = Wait("sleep", "clock_nanosleep", timeout_s=left, remaining_s=left, endless=False)
    scale = thread(3, [frame("serve", 9)], wait=nap, is_main=True, counters=counters())
    known = evidence(process([waits, asks], resources=(lock, asked)), process([scale], pid=3, ppid=1), window=1.0)
    assert found(known).get("database-lock-wait") == expected
