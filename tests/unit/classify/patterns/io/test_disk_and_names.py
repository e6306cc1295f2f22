"""What waits for a disk, or for a name."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import pytest

from postmortem.evidence import (
    Calling,
    Loop,
    NativeFrame,
    Pool,
    Process,
    Resource,
    Task,
    TaskWait,
    Thread,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counted, evidence, found, frame, lines, process, stack, thread, verdict

# ---------------------------------------------------------------------- disk-wait


def stuck(states: Dict[str, int], wchan: str, call: str = "read", switches: int = 0, cpu: float = 0.0) -> Thread:
    looks = counted(states, {call: 16}, {wchan: 16}, cpu, 0, switches)
    return thread(1, stack("load", "main"), wait=Wait("other", call), counters=looks, state="D")


def test_a_dead_share() -> None:
    """State D in a call on a file, look after look, or interruptibly where FUSE waits for its program."""
    for states, channel in (({"D": 16}, "rpc_wait_bit_killable"), ({"S": 16}, "request_wait_answer")):
        known = evidence(process([stuck(states, channel)]))
        assert (found(known), lines(known)) == ({"disk-wait": "likely"}, [1])


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (stuck({"D": 16}, "folio_wait_bit_common", switches=400), "possible"),  # a backup at work
        (stuck({"D": 4, "S": 12}, "x"), None),
        (stuck({"D": 16}, "kernel_clone", "clone3"), None),  # a parent lends its memory to a child
        (stuck({"D": 16}, "folio_wait_bit_common", "none"), None),  # a page fault
        (stuck({"D": 10, "R": 6}, "x", cpu=0.6), None),  # it computes
        (stuck({"S": 16}, "do_wait", "wait4"), None),
    ],
)
def test_what_is_no_dead_disk(known: Thread, said: Optional[str]) -> None:
    """Many short waits are work; state D has other reasons too."""
    assert found(evidence(process([known]))).get("disk-wait") == said


def test_a_child_that_cannot_even_start() -> None:
    """It hangs in execve, its parent in vfork: the parent's line starts a program on a dead share."""
    looks = counted({"D": 16}, {"execve": 16}, {"fuse_lock_inode": 16})
    execs = Thread(2, "python", "D", wait=Wait("other", "execve"), is_main=True, counters=looks)
    starts = Process(2, 1, ("python",), threads=(execs,))
    forks = stuck({"D": 16}, "kernel_clone", "clone3")
    known = evidence(process([changed(forks, wait=Wait("process", "clone3", endless=True))], pid=1), starts)
    assert (verdict(known), lines(known)) == ("disk-wait", [1])


def test_state_d_without_a_recorded_call() -> None:
    """The observations show where in the kernel it sleeps, but no system call."""
    bare = changed(stuck({}, "x"), wait=None, counters=counted({"D": 16}, {}, {"rpc_wait_bit_killable": 16}))
    assert found(evidence(process([bare]))) == {"disk-wait": "likely"}


def test_one_moment_does_not_tell() -> None:
    """State D without a window."""
    bare = changed(stuck({}, "x"), counters=None)
    assert "disk-wait" in {a.pattern for a in classify(evidence(process([bare]), window=None)).abstained}


# ---------------------------------------------------------------------- dns-wait


SERVER = Resource("socket-1", "socket", "socket 10.0.0.2:4 → 10.0.0.53:53 (descriptor 3)", remote="10.0.0.53:53")
ASKS = Wait("socket", "poll", resource="socket-1", timeout_s=5.0, endless=False)


def resolver(tid: int = 1, *functions: str, switches: int = 0, lasts: Optional[float] = 1.0) -> Thread:
    frames = stack(*(functions or ("socket.getaddrinfo", "fetch", "main")))
    looks = counted({"S": 16}, {"poll": 16}, switches=switches)
    return thread(tid, frames, wait=ASKS, counters=looks, calling=Calling("_socket.getaddrinfo", lasts_s=lasts))


def test_a_name_server_that_does_not_answer() -> None:
    """The same call for the whole window; its 5 s are not the end of it."""
    known = evidence(process([resolver()], resources=(SERVER,)))
    assert (found(known), lines(known)) == ({"dns-wait": "likely"}, [2])
    assert "10.0.0.53:53" in classify(known).findings[0].summary


@pytest.mark.parametrize(("switches", "expected"), [(1, "likely"), (60, None)])
def test_a_resolver_written_in_python(switches: int, expected: Optional[str]) -> None:
    """Where dnspython waits for an answer; one after the other that come soon are no wait for a name."""
    asks = frame("udp", 706, "/venv/lib/python3.12/site-packages/dns/query.py")
    frames = (*stack("selectors.select"), asks, frame("records", 80))
    waits = thread(1, frames, wait=ASKS, counters=counted({"S": 16}, {"poll": 16}, switches=switches))
    known = evidence(process([waits], resources=(SERVER,)))
    assert found(known).get("dns-wait") == expected
    assert expected is None or "dns.query.udp" in classify(known).findings[0].evidence[0]


def test_names_that_are_answered() -> None:
    """Hundreds of look-ups one after the other."""
    assert found(evidence(process([resolver(switches=60, lasts=None)], resources=(SERVER,)))) == {}


def test_native_names_tell_as_well() -> None:
    """Where the value stack does not say what was called: getaddrinfo on the C stack above all Python."""
    native = tuple(NativeFrame(name, "/lib/libc.so.6", 1) for name in ("__poll", "send_dg", "__GI_getaddrinfo"))
    plain = changed(resolver(), calling=None)
    assert found(evidence(process([changed(plain, stack=(*native, *plain.stack))]))) == {"dns-wait": "likely"}


def test_a_lone_core_is_one_moment() -> None:
    """At most possible."""
    bare = changed(resolver(), counters=None)
    assert found(evidence(process([bare], resources=(SERVER,)), window=None, kind="core")) == {"dns-wait": "possible"}


def filled(queued: int, listening: Tuple[int, ...] = ()) -> Process:
    """Two workers of asyncio's default executor resolve names; a task waits for each."""
    where = (
        "socket.getaddrinfo",
        "concurrent.futures.thread.run",
        "concurrent.futures.thread._worker",
        "threading.run",
    )
    workers: List[Thread] = [resolver(tid, *where) for tid in (2, 3)]
    main = thread(
        1,
        stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever"),
        wait=Wait("event-loop", "epoll_wait", endless=True),
        counters=counted({"S": 16}),
    )
    tasks = [
        Task(
            f"task-{n}",
            f"Task-{n}",
            "pending",
            "loop-1",
            (*stack("asyncio.base_events.getaddrinfo"), frame("fetch", 7)),
            "Future",
            wait=TaskWait("thread", f"async-future-{n}", endless=True),
        )
        for n in (2, 3)
    ]
    futures = [
        Resource(f"async-future-{n}", "async-future", "Future", wakers=(Waker("runner", "memory", tid=n),), closed=True)
        for n in (2, 3)
    ]
    pool = Pool("executor-1", "ThreadPoolExecutor", "ThreadPoolExecutor x", 2, (2, 3), queued=queued)
    return process(
        [main, *workers],
        tasks=tuple(tasks),
        resources=(SERVER, *futures),
        pools=(pool,),
        listening=listening,
        loops=(Loop("loop-1", 1, ready=0, scheduled=0),),
    )


def test_an_executor_full_of_look_ups() -> None:
    """Nobody else's job is taken: even a server hangs. The line is the one that awaits the name."""
    known = evidence(filled(4, listening=(80,)))
    assert (verdict(known), found(known)["dns-wait"], lines(known)) == ("dns-wait", "likely", [7])
    assert "1 other thread waits in the same way" in classify(known).findings[0].evidence[-1]


def test_one_slow_name_of_a_server_is_only_possible() -> None:
    """Its other clients are served."""
    assert found(evidence(filled(0, listening=(80,))))["dns-wait"] == "possible"
