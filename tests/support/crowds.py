"""Evidence of a crowd as bench/graph.py makes one, and of an observation window, written by hand: neither needs a capture."""

from __future__ import annotations

from typing import Tuple

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.evidence.vocabulary import Doing

PROGRAM = "/app/crowd.py"


def frame(function: str, line: int, file: str = PROGRAM) -> ev.PythonFrame:
    return ev.PythonFrame(file, line, function)


def crowd(threads: int = 2000, tasks: int = 20_000) -> Tuple[ev.Evidence, fi.Diagnosis]:
    """Threads in one circle of locks, tasks in one circle of asyncio locks: everybody waits for the next one."""
    waiting = tuple(
        ev.Thread(
            1000 + n,
            f"Thread-{n} (run)",
            "S",
            "detached",
            ev.Wait("lock", "futex", f"lock-{(n + 1) % threads}", endless=True),
            stack=(frame("pass_on", 17), frame("run", 14), frame("run", 1010, "/usr/lib/python3.12/threading.py")),
            counters=ev.Counters(1.0, 0.0, 0, 0),
            samples=(ev.Sample(90 + n % 7, 0.01, 0.99, (frame("pass_on", 17), frame("run", 14))),),
            timeline=_lane(n),
            holds=(ev.HeldLock(f"lock-{n}", frame("run", 12), 1, "with-slot"),),
        )
        for n in range(threads)
    )
    loop_thread = ev.Thread(
        999,
        "MainThread",
        "S",
        "detached",
        ev.Wait("event-loop", "epoll_wait", endless=True),
        is_main=True,
        stack=(frame("select", 468, "/usr/lib/python3.12/selectors.py"), frame("<module>", 44)),
    )
    waiting_tasks = tuple(
        ev.Task(
            f"task-{n}",
            f"Task-{n}",
            "pending",
            "loop-1",
            (frame("pass_on", 27), frame("run", 24)),
            "Lock.acquire",
            wait=ev.TaskWait("lock", f"async-lock-{(n + 1) % tasks}", endless=True),
            holds=(ev.HeldLock(f"async-lock-{n}", frame("run", 22), 1, "with-slot"),),
        )
        for n in range(tasks)
    )
    locks = tuple(
        ev.Resource(f"lock-{n}", "lock", f"Lock Worker.mine #{n}", 1000 + n, "with-slot", (1000 + (n - 1) % threads,))
        for n in range(threads)
    )
    loops = tuple(
        ev.Resource(
            f"async-lock-{n}",
            "async-lock",
            f"asyncio.Lock Job.mine #{n}",
            owner_task=f"task-{n}",
            owner_basis="with-slot",
            waiting_tasks=(f"task-{(n - 1) % tasks}",),
        )
        for n in range(tasks)
    )
    process = ev.Process(
        999,
        argv=("python", "crowd.py"),
        python=ev.PythonInfo("3.12.1"),
        threads=(loop_thread, *waiting),
        tasks=waiting_tasks,
        resources=(*locks, *loops),
        interpreters=(ev.Interpreter(0, ev.Gil(False)),),
        loops=(ev.Loop("loop-1", 999, ready=0, scheduled=0, watched=0),),
    )
    lines = {12: "        with self.mine:", 14: "            self.pass_on()", 17: "        with self.other:"}
    evidence = ev.Evidence(ev.Trigger("timeout", 2.0), (process,), sources={PROGRAM: lines}, window_s=1.0)
    culprits = tuple(fi.Culprit(999, 1000 + n, None, PROGRAM, 17, "pass_on", lines[17]) for n in range(threads))
    finding = fi.Finding(
        "lock-order-deadlock",
        "proven",
        f"{threads} threads wait for each other in a circle",
        "None goes on.",
        "Take the locks in the same order everywhere.",
        culprits=culprits,
        evidence=("each link was read",),
    )
    return evidence, fi.Diagnosis("lock-order-deadlock", "lock-order-deadlock-1-crowd", (finding,))


def _lane(number: int) -> Tuple[ev.Stretch, ...]:
    """Forty looks, each thread's shifted a little."""
    doings: Tuple[Doing, ...] = ("blocked", "waits", "holds", "blocked", "runs")
    return tuple(
        ev.Stretch(n * 0.025, (n + 1) * 0.025, doings[(n * 3 + number * 7 + n * number) % 5]) for n in range(40)
    )


def thrashing() -> Tuple[ev.Evidence, fi.Diagnosis]:
    """Three threads that hand the GIL round, seen a thousand times, and one that sleeps."""
    turns: Tuple[Doing, ...] = ("holds", "waits", "waits")
    busy = tuple(
        ev.Thread(
            11 + n,
            f"worker-{n}",
            "S",
            "waits" if n else "holds",
            ev.Wait("gil", "futex") if n else None,
            stack=(frame("crunch", 30 + n), frame("run", 9)),
            samples=(
                ev.Sample(60, 0.0, 0.9, (frame("crunch", 30), frame("run", 9))),
                ev.Sample(40, 0.1, 1.0, (frame("run", 9),)),
            ),
            timeline=tuple(ev.Stretch(k / 100, (k + 1) / 100, turns[(k + n) % 3]) for k in range(100)),
            is_main=n == 0,
        )
        for n in range(3)
    )
    asleep = ev.Thread(
        20,
        "sleeper",
        "S",
        "detached",
        ev.Wait("sleep", "clock_nanosleep"),
        stack=(frame("nap", 50),),
        timeline=(ev.Stretch(0.0, 0.7, "blocked"), ev.Stretch(0.7, 0.8, "unknown"), ev.Stretch(0.8, 1.0, "runs")),
    )
    process = ev.Process(
        11,
        argv=("python", "busy.py"),
        python=ev.PythonInfo("3.12.1"),
        threads=(*busy, asleep),
        interpreters=(ev.Interpreter(0, ev.Gil(True, 11, 0.005, 900, 900.0)),),
    )
    evidence = ev.Evidence(ev.Trigger("timeout", 2.0), (process,), window_s=1.0)
    culprit = fi.Culprit(11, 12, None, PROGRAM, 30, "crunch")
    finding = fi.Finding(
        "gil-thrash", "likely", "3 threads hand the GIL to and fro", "Because.", "Do not.", culprits=(culprit,)
    )
    return evidence, fi.Diagnosis("gil-thrash", "gil-thrash-1-x", (finding,))
