"""The program above on a disk that takes requests and completes none: 3.11, seen for a second after three."""
from pathlib import Path

from postmortem.evidence import (
    ControlGroup,
    Counters,
    End,
    Evidence,
    Gil,
    HeldLock,
    Interpreter,
    Machine,
    NativeFrame,
    Process,
    PythonFrame,
    PythonInfo,
    Resource,
    Sample,
    Thread,
    Timings,
    Trigger,
    Wait,
)

FILE = "/app/program.py"
THREADING = "/usr/lib/python3.11/threading.py"
PYTHON = "/usr/bin/python3.11"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
TEXT = Path(__file__).with_name("program.py").read_text("utf-8")
LINES = [text.split("  # CULP")[0] for text in TEXT.splitlines()]
SECONDS = 1.0


def line(text):
    return next(number for number, have in enumerate(LINES, 1) if text in have)


def here(text, function, qualname):
    return PythonFrame(FILE, line(text), function, qualname, "__main__")


def native(function, module=PYTHON, address=0x55D0C0A41000, trust="symbol"):
    return NativeFrame(function, module, address + 64 * len(function), trust=trust)


def counters(state, syscall, wchan, io_delay=0.0):
    return Counters(
        SECONDS, cpu_s=0.0, voluntary_switches=0, involuntary_switches=0, run_delay_s=0.0,
        minor_faults=0, major_faults=0, io_delay_s=io_delay, states={state: 20}, syscalls={syscall: 20}, wchan={wchan: 20},
    )  # fmt: skip


BOOT = (
    PythonFrame(THREADING, 1045, "_bootstrap_inner", "Thread._bootstrap_inner", "threading"),
    PythonFrame(THREADING, 1002, "_bootstrap", "Thread._bootstrap", "threading"),
)
RUN = here("self.journal.append(", "run", "Teller.run")
SYNC = here("os.fsync(", "append", "Journal.append")
ENTER = here("with self.guard:", "append", "Journal.append")
JOIN = (
    PythonFrame(THREADING, 1139, "_wait_for_tstate_lock", "Thread._wait_for_tstate_lock", "threading"),
    PythonFrame(THREADING, 1119, "join", "Thread.join", "threading"),
    here("teller.join()", "main", "main"),
    PythonFrame(FILE, len(LINES), "<module>", "<module>", "__main__"),
)
LOCK_NATIVE = (
    native("__futex_abstimed_wait_common", LIBC, 0x7F21B8E89000, "unwind"),
    native("PyThread_acquire_lock_timed"),
    native("lock_PyThread_acquire_lock"),
)


def samples(frames):
    return (Sample(100, 0.0, 0.99, frames),)


def teller(number, tid, frames, natives, state, wait, count, holds=()):
    return Thread(
        tid, f"teller-{number}", state, "detached", wait, natives + frames, count, samples(frames), holds=holds,
        daemon=False, ident=0x7F21B0000000 + tid * 4096, interpreter=0,
    )  # fmt: skip


def evidence():
    guard = Resource(
        "lock-1", "lock", "lock Journal.guard", owner_tid=4203, owner_basis="with-slot",
        waiters=(4202, 4204), locked=True,
    )  # fmt: skip
    alive = Resource("lock-2", "lock", "lock of thread teller-0", locked=True, waiters=(4201,))
    journal = Resource("file-1", "file", "file /data/ledger.journal", ends=(End(4201, 3, "w"),))
    in_lock = (ENTER, RUN, *BOOT)
    in_sync = (SYNC, RUN, *BOOT)
    waits = Wait("lock", "futex", "lock-1", endless=True)
    idle = counters("S", "futex", "futex_wait_queue")
    threads = (
        Thread(
            4201, "MainThread", "S", "detached", Wait("lock", "futex", "lock-2", endless=True), LOCK_NATIVE + JOIN, idle,
            samples(JOIN), is_main=True, daemon=False, ident=0x7F21B8D4A740, interpreter=0, joins=4202,
        ),  # fmt: skip
        teller(0, 4202, in_lock, LOCK_NATIVE, "S", waits, idle),
        teller(
            1, 4203, in_sync, (native("fsync", LIBC, 0x7F21B8F0B000, "unwind"), native("os_fsync")), "D",
            Wait("file", "fsync", "file-1", endless=True, fd=3, detail="fsync of /data/ledger.journal"),
            counters("D", "fsync", "jbd2_log_wait_commit", SECONDS),
            (HeldLock("lock-1", SYNC.at(line("with self.guard:")), 0, "with-slot"),),
        ),  # fmt: skip
        teller(2, 4204, in_lock, LOCK_NATIVE, "S", waits, idle),
    )
    process = Process(
        4201, 4188, (PYTHON, "program.py", "/data/ledger.journal"), PYTHON, "S",
        PythonInfo("3.11.2", finalizing=False), (Interpreter(0, Gil(False, None, 0.005), False),), threads,
        (guard, alive, journal), age_s=3.0, cpus_allowed=4,
        io={"rchar": 0, "wchar": 0, "syscr": 0, "syscw": 0, "read_bytes": 0, "write_bytes": 0},
        rss_growth=0, listening=(), directory="/app", counters=Counters(SECONDS, cpu_s=0.0, io_delay_s=SECONDS, minor_faults=0, major_faults=0),
        cgroup=ControlGroup("/system.slice/ledger.service", False, memory_used=21 << 20, oom_kills=0,
                            stalls={"cpu some": 0.0, "io some": 0.98, "io full": 0.98, "memory some": 0.0}),
        signal_handlers=(), forked=False, catches=(),
    )  # fmt: skip
    append, join, sync, guarded = map(line, ("self.journal.append(", "teller.join()", "os.fsync(", "with self.guard:"))
    shown = sorted({append, join, sync, guarded, len(LINES)})
    return Evidence(
        Trigger("timeout", 3.0),
        (process,),
        sources={FILE: {number: LINES[number - 1] for number in shown}},
        loops={FILE: {append: (append - 1,), join: (join - 1,)}},
        timings=Timings(SECONDS, 0.1, 0.3),
        window_s=SECONDS,
        machine=Machine(
            3.1, 16 << 30, 12 << 30, 4 << 30, 0, 0, 0, 0.0,
            {"cpu some": 0.0, "io some": 0.99, "io full": 0.97, "memory some": 0.0, "memory full": 0.0},
        ),  # fmt: skip
    )
