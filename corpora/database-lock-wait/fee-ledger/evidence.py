"""Evidence of fee-ledger as a capture of its tree has it, beside PostgreSQL 15 on the same machine: psycopg2 2.9 on CPython 3.12."""
from __future__ import annotations

from pathlib import Path

from postmortem.evidence import (
    Counters, End, Evidence, Gil, Interpreter, Machine, NativeFrame, Process, PythonFrame, PythonInfo, Resource, Sample, Thread,
    Timings, Trigger, Wait, Waker,
)  # fmt: skip

APP = "/app/program.py"
LINES = [line.split("  # CULP" "RIT")[0] for line in Path(__file__).with_name("program.py").read_text("utf-8").splitlines()]
EXE = "/usr/local/bin/python3.12"
STD = "/usr/local/lib/python3.12/"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LIBPQ = "/usr/lib/x86_64-linux-gnu/libpq.so.5"
PSYCOPG = "/usr/local/lib/python3.12/site-packages/psycopg2/_psycopg.cpython-312-x86_64-linux-gnu.so"
WINDOW = 1.0
MAIN = 5120
OPEN, WAITS = MAIN + 1, MAIN + 2


def line_of(text):
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def app(text, function, qualname=None, module="__main__"):
    return PythonFrame(APP, line_of(text), function, qualname or function, module)


def lib(file, line, function, qualname, module):
    return PythonFrame(STD + file, line, function, qualname, module)


STARTED = (
    lib("multiprocessing/process.py", 108, "run", "BaseProcess.run", "multiprocessing.process"),
    lib("multiprocessing/process.py", 314, "_bootstrap", "BaseProcess._bootstrap", "multiprocessing.process"),
    lib("multiprocessing/popen_fork.py", 71, "_launch", "Popen._launch", "multiprocessing.popen_fork"),
    lib("multiprocessing/popen_fork.py", 19, "__init__", "Popen.__init__", "multiprocessing.popen_fork"),
    lib("multiprocessing/context.py", 282, "_Popen", "ForkProcess._Popen", "multiprocessing.context"),
    lib("multiprocessing/process.py", 121, "start", "BaseProcess.start", "multiprocessing.process"),
    app("worker.start()", "main"),
    PythonFrame(APP, line_of("    main()"), "<module>", "<module>", "__main__"),
)
RESTS = (app("time.sleep(5)", "branch"),)
IN_QUERY = (
    app("cursor.execute(statement", "run", "Ledger.run"),
    app("FOR UPDATE", "balance", "Ledger.balance"),
    app("balance = self.balance(member)", "book", "Ledger.book"),
    app("ledger.book(member", "branch"),
)
IN_JOIN = (
    lib("multiprocessing/popen_fork.py", 27, "poll", "Popen.poll", "multiprocessing.popen_fork"),
    lib("multiprocessing/popen_fork.py", 43, "wait", "Popen.wait", "multiprocessing.popen_fork"),
    lib("multiprocessing/process.py", 149, "join", "BaseProcess.join", "multiprocessing.process"),
    app("workers[1].join()", "main"),
    PythonFrame(APP, line_of("    main()"), "<module>", "<module>", "__main__"),
)


def thread(tid, name, wait, native, python, wchan):
    return Thread(
        tid, name, "S", "detached", wait, native + python,
        Counters(
            WINDOW, cpu_s=0.0, voluntary_switches=0, involuntary_switches=0, run_delay_s=0.0, minor_faults=0, major_faults=0,
            io_delay_s=0.0, states={"S": 20}, syscalls={wait.syscall: 20}, wchan={wchan: 20},
        ),
        (Sample(98, 0.0, 0.99, python),), is_main=True, daemon=False, ident=0x7F10AA000740, interpreter=0, gc=False,
    )  # fmt: skip


def process(pid, parent, main, resources):
    return Process(
        pid, parent, (EXE, "program.py"), EXE, "S", PythonInfo("3.12.8", debug=False, finalizing=False),
        (Interpreter(0, Gil(locked=False, switch_interval=0.005), collecting=False),), (main,), resources, age_s=40.0,
        cpus_allowed=8, io={"rchar": 0, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, rss_growth=0, directory="/app",
        listening=(), counters=Counters(WINDOW, cpu_s=0.0, major_faults=0), signal_handlers=(), forked=pid != MAIN, catches=(),
        cancels=(),
    )  # fmt: skip


def session(pid, fd, port, server, title):
    return Resource(
        "socket-1", "socket", f"socket 127.0.0.1:{port} → 127.0.0.1:5432 with PID {server} (postgres) (descriptor {fd})",
        local=f"127.0.0.1:{port}", remote="127.0.0.1:5432", accepted=False, listening=False, state="ESTABLISHED", received=0,
        unsent=0, ends=(End(pid, fd, "rw"), End(server, 9, "rw", in_tree=False, program=title)),
    )  # fmt: skip


def workers():
    resting = thread(
        OPEN, "MainThread", Wait("sleep", "clock_nanosleep", timeout_s=5.0, endless=False),
        (NativeFrame("clock_nanosleep", LIBC, 0x7F10A8AC1F1A),), RESTS + STARTED, "hrtimer_nanosleep",
    )  # fmt: skip
    yield process(OPEN, MAIN, resting, (session(OPEN, 6, 40410, 711, TITLES[0]),))
    asking = thread(
        WAITS, "MainThread", Wait("socket", "poll", "socket-1", endless=True, fd=6, detail="socket", verb="call"),
        (
            NativeFrame("__poll", LIBC, 0x7F10A8AD8BCF), NativeFrame("PQgetResult", LIBPQ, 0x7F10A7A21B30),
            NativeFrame("pq_execute", PSYCOPG, 0x7F10A7C1203F),
        ),
        IN_QUERY + STARTED, "do_sys_poll",
    )  # fmt: skip
    yield process(WAITS, MAIN, asking, (session(WAITS, 6, 40412, 713, TITLES[1]),))


TITLES = (
    "postgres: fees ledger 127.0.0.1(40410) idle in transaction",
    "postgres: fees ledger 127.0.0.1(40412) SELECT waiting",
)


def evidence():
    child = Resource(
        "child-1", "process", f"process {WAITS}", wakers=(Waker("end", "kernel", pid=WAITS),), closed=True,
        because=("only the exit of a child process ends a wait for it",),
    )  # fmt: skip
    main = thread(
        MAIN, "MainThread", Wait("process", "wait4", "child-1", endless=True, pid=WAITS),
        (NativeFrame("__wait4", LIBC, 0x7F10A8AC1C37),), IN_JOIN, "do_wait",
    )  # fmt: skip
    return Evidence(
        Trigger("timeout", 40.0),
        (process(MAIN, 1, main, (child,)), *workers()),
        sources={APP: {number: line for number, line in enumerate(LINES, 1) if line.strip()}},
        timings=Timings(observe_s=1.0, pause_s=0.02, extract_s=0.4),
        window_s=WINDOW,
        machine=Machine(
            load=0.1, memory=33_000_000_000, available=27_000_000_000, swap_free=0, swapped_in=0, swapped_out=0, oom_kills=0,
            steal=0.0, stalls={},
        ),
        tool_version="0.1.0",
    )  # fmt: skip
