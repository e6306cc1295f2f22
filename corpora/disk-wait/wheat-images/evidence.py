"""Evidence of wheat-images as a capture would have it: two ranks in all_reduce, one waits for its loader's process, in D."""
from __future__ import annotations

from pathlib import Path

from postmortem.evidence import (
    ControlGroup, Counters, End, Evidence, Gil, Interpreter, Machine, NativeFrame, Process, PythonFrame, PythonInfo, Resource,
    Sample, Thread, Timings, Trigger, Wait, Waker,
)  # fmt: skip

APP = "/app/program.py"
LINES = [line.split("  # CULP" "RIT")[0] for line in Path(__file__).with_name("program.py").read_text("utf-8").splitlines()]
EXE = "/usr/local/bin/python3.12"
STD = "/usr/local/lib/python3.12/"
SITE = STD + "site-packages/"
C10D = SITE + "torch/distributed/distributed_c10d.py"
LOGGER = SITE + "torch/distributed/c10d_logger.py"
LOADER = SITE + "torch/utils/data/dataloader.py"
FETCH = SITE + "torch/utils/data/_utils/fetch.py"
WORKERS = SITE + "torch/utils/data/_utils/worker.py"
SPAWN = SITE + "torch/multiprocessing/spawn.py"
TORCH_CPU = SITE + "torch/lib/libtorch_cpu.so"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
WINDOW = 1.0
MAIN = 900


def line_of(text):
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def app(text, function, qualname=None, module="__mp_main__"):
    return PythonFrame(APP, line_of(text), function, qualname or function, module)


def lib(file, line, function, qualname=None, module=None):
    return PythonFrame(file, line, function, qualname or function, module)


def counted(state, syscall, wchan, **more):
    return Counters(
        WINDOW, cpu_s=more.get("cpu", 0.0), voluntary_switches=more.get("switches", 0), involuntary_switches=0, run_delay_s=0.0, minor_faults=0,
        major_faults=0, io_delay_s=more.get("io_delay", 0.0), read_calls=0, write_calls=0, states={state: 20}, syscalls={syscall: 20},
        wchan={wchan: 20},
    )  # fmt: skip


OUTSIDE = (
    lib(SPAWN, 90, "_wrap", None, "torch.multiprocessing.spawn"),
    lib(STD + "multiprocessing/process.py", 108, "run", "BaseProcess.run", "multiprocessing.process"),
    lib(STD + "multiprocessing/process.py", 314, "_bootstrap", "BaseProcess._bootstrap", "multiprocessing.process"),
    lib(STD + "multiprocessing/spawn.py", 135, "_main", None, "multiprocessing.spawn"),
    lib(STD + "multiprocessing/spawn.py", 122, "spawn_main", None, "multiprocessing.spawn"),
    lib("<string>", 1, "<module>", None, "__main__"),
)
REDUCING = (
    lib(C10D, 2811, "all_reduce", None, "torch.distributed.distributed_c10d"),
    lib(LOGGER, 81, "wrapper", "_exception_logger.<locals>.wrapper", "torch.distributed.c10d_logger"),
    app("dist.all_reduce(", "train"),
) + OUTSIDE
LOADING = (
    lib(STD + "selectors.py", 415, "select", "_PollLikeSelector.select", "selectors"),
    lib(STD + "multiprocessing/connection.py", 1136, "wait", None, "multiprocessing.connection"),
    lib(STD + "multiprocessing/connection.py", 440, "_poll", "Connection._poll", "multiprocessing.connection"),
    lib(STD + "multiprocessing/connection.py", 257, "poll", "_ConnectionBase.poll", "multiprocessing.connection"),
    lib(STD + "multiprocessing/queues.py", 113, "get", "Queue.get", "multiprocessing.queues"),
    lib(LOADER, 1243, "_try_get_data", "_MultiProcessingDataLoaderIter._try_get_data", "torch.utils.data.dataloader"),
    lib(LOADER, 1412, "_get_data", "_MultiProcessingDataLoaderIter._get_data", "torch.utils.data.dataloader"),
    lib(LOADER, 1448, "_next_data", "_MultiProcessingDataLoaderIter._next_data", "torch.utils.data.dataloader"),
    lib(LOADER, 708, "__next__", "_BaseDataLoaderIter.__next__", "torch.utils.data.dataloader"),
    app("for batch in loader", "train"),
) + OUTSIDE
READING = (
    app("file.read()", "__getitem__", "Pictures.__getitem__"),
    lib(FETCH, 52, "fetch", "_MapDatasetFetcher.fetch", "torch.utils.data._utils.fetch"),
    lib(WORKERS, 351, "_worker_loop", None, "torch.utils.data._utils.worker"),
    lib(STD + "multiprocessing/process.py", 108, "run", "BaseProcess.run", "multiprocessing.process"),
    lib(STD + "multiprocessing/process.py", 314, "_bootstrap", "BaseProcess._bootstrap", "multiprocessing.process"),
)
FEEDING = (
    lib(STD + "selectors.py", 415, "select", "_PollLikeSelector.select", "selectors"),
    lib(STD + "multiprocessing/connection.py", 1136, "wait", None, "multiprocessing.connection"),
    lib(STD + "multiprocessing/connection.py", 440, "_poll", "Connection._poll", "multiprocessing.connection"),
    lib(STD + "multiprocessing/connection.py", 257, "poll", "_ConnectionBase.poll", "multiprocessing.connection"),
    lib(STD + "multiprocessing/queues.py", 113, "get", "Queue.get", "multiprocessing.queues"),
    lib(WORKERS, 327, "_worker_loop", None, "torch.utils.data._utils.worker"),
    lib(STD + "multiprocessing/process.py", 108, "run", "BaseProcess.run", "multiprocessing.process"),
    lib(STD + "multiprocessing/process.py", 314, "_bootstrap", "BaseProcess._bootstrap", "multiprocessing.process"),
)


def process(pid, ppid, argv, threads, resources=(), state="S", forked=False, io_delay=0.0):
    return Process(
        pid, ppid, argv, EXE, state, PythonInfo("3.12.8", debug=False, finalizing=False),
        (Interpreter(0, Gil(locked=False, switch_interval=0.005), collecting=False),), threads, resources, age_s=420.0, cpus_allowed=16,
        io={"rchar": 0, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, rss_growth=0, directory="/app", listening=(),
        counters=Counters(WINDOW, cpu_s=0.0, major_faults=0, io_delay_s=io_delay), cgroup=ControlGroup("/train", frozen=False),
        signal_handlers=(), forked=forked, catches=(), cancels=(),
    )  # fmt: skip


def main_thread(pid, python, native, wait, counters, state="S"):
    return Thread(
        pid, "MainThread", state, "detached", wait, native + python, counters, (Sample(98, 0.0, 0.99, python),), is_main=True, daemon=False,
        ident=0x7F6E1DA00740 + pid, interpreter=0, gc=False,
    )  # fmt: skip


def argv(handle):
    return (EXE, "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6, pipe_handle=%d)" % handle, "--multiprocessing-fork")


POLL = (NativeFrame("__poll", LIBC, 0x7F6E1D518BCF),)
COND = (
    NativeFrame("__futex_abstimed_wait_common", LIBC, 0x7F6E1D499117),
    NativeFrame("pthread_cond_clockwait", LIBC, 0x7F6E1D49BB2F),
    NativeFrame("c10d::Work::wait", TORCH_CPU, 0x7F6E0D6A3F22),
)


def rank(number):
    pid = MAIN + 3 + number
    pipe = Resource("pipe-1", "pipe", "pipe of the loader's results", wakers=(Waker("end", "kernel", pid=pid + 10),), closed=True,
                    key="pipe:[%d]" % (77100 + number), value=0, limit=65536, ends=(End(pid, 14, "r"), End(pid, 15, "w"), End(pid + 10, 15, "w")))  # fmt: skip
    if number == 1:
        wait = Wait("pipe", "poll", "pipe-1", timeout_s=5.0, endless=False, fd=14)
        main = main_thread(pid, LOADING, POLL, wait, counted("S", "poll", "do_sys_poll"))
    else:
        wait = Wait("futex", "futex", timeout_s=1800.0, endless=False)
        main = main_thread(pid, REDUCING, COND, wait, counted("S", "futex", "futex_wait_queue"))
    loop = Thread(
        pid + 20, "gloo_loop", "S", "detached", Wait("event-loop", "epoll_wait", timeout_s=0.1, endless=False),
        (NativeFrame("epoll_wait", LIBC, 0x7F6E1D525A56), NativeFrame("gloo::transport::tcp::Loop::run", TORCH_CPU, 0x7F6E0F2A2D11)),
        counted("S", "epoll_wait", "ep_poll", switches=10),
    )  # fmt: skip
    return process(pid, MAIN, argv(8 + number), (main, loop), (pipe,))


def loader(number):
    pid = MAIN + 13 + number
    if number == 1:
        main = main_thread(
            pid, READING, (NativeFrame("read", LIBC, 0x7F6E1D514C7C),),
            Wait("file", "read", endless=True, fd=16, detail="/data/wheat/041221.raw"),
            counted("D", "read", "folio_wait_bit_common", io_delay=1.0), "D",
        )  # fmt: skip
        return process(pid, MAIN + 3 + number, argv(30), (main,), state="D", forked=False, io_delay=1.0)
    main = main_thread(pid, FEEDING, POLL, Wait("pipe", "poll", timeout_s=5.0, endless=False, fd=12), counted("S", "poll", "do_sys_poll"))
    return process(pid, MAIN + 3 + number, argv(30), (main,))


def parent():
    python = (
        lib(STD + "selectors.py", 415, "select", "_PollLikeSelector.select", "selectors"),
        lib(STD + "multiprocessing/connection.py", 1136, "wait", None, "multiprocessing.connection"),
        lib(SPAWN, 134, "join", "ProcessContext.join", "torch.multiprocessing.spawn"),
        lib(SPAWN, 296, "start_processes", None, "torch.multiprocessing.spawn"),
        lib(SPAWN, 340, "spawn", None, "torch.multiprocessing.spawn"),
        PythonFrame(APP, line_of("mp.spawn(train"), "<module>", "<module>", "__main__"),
    )
    wait = Wait("process", "poll", endless=True, detail="the first child to end")
    return process(MAIN, 1, (EXE, "program.py"), (main_thread(MAIN, python, POLL, wait, counted("S", "poll", "do_sys_poll")),))


def evidence() -> Evidence:
    return Evidence(
        Trigger("timeout", 420.0),
        (parent(),) + tuple(make(number) for number in range(3) for make in (rank, loader)),
        sources={
            APP: {number: line for number, line in enumerate(LINES, 1) if line.strip()},
            C10D: {2811: "        work.wait()"},
            LOGGER: {81: "            return func(*args, **kwargs)"},
        },
        loops={APP: {line_of("dist.all_reduce("): (line_of("for batch in loader"),), line_of("for batch in loader"): (line_of("for batch in loader"),)}},
        timings=Timings(observe_s=1.0, pause_s=0.3, extract_s=1.4),
        window_s=WINDOW,
        machine=Machine(load=1.1, memory=66_000_000_000, available=51_000_000_000, swap_free=0, swapped_in=0, swapped_out=0, oom_kills=0, steal=0.0, stalls={"io some": 0.97, "io full": 0.94}),
        tool_version="0.1.0",
    )  # fmt: skip
