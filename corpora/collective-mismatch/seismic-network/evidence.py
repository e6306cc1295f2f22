"""Evidence of seismic-network as a capture of its tree would have it: torch 2.6, gloo, three ranks made by mp.spawn."""
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
SPAWN = SITE + "torch/multiprocessing/spawn.py"
TORCH_CPU = SITE + "torch/lib/libtorch_cpu.so"
TORCH_PYTHON = SITE + "torch/lib/libtorch_python.so"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LIBSTDCXX = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
WINDOW = 1.0
MAIN = 4210


def line_of(text):
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def app(text, function, qualname=None, module="__mp_main__"):
    return PythonFrame(APP, line_of(text), function, qualname or function, module)


def lib(file, line, function, qualname=None, module=None):
    return PythonFrame(file, line, function, qualname or function, module)


def c10d(line, function):
    return (
        lib(C10D, line, function, function, "torch.distributed.distributed_c10d"),
        lib(LOGGER, 81, "wrapper", "_exception_logger.<locals>.wrapper", "torch.distributed.c10d_logger"),
    )


def quiet(**found):
    return Counters(
        WINDOW, cpu_s=0.0, voluntary_switches=found.pop("switches", 0), involuntary_switches=0, run_delay_s=0.0, minor_faults=0,
        major_faults=0, io_delay_s=0.0, states={"S": 20}, **found,
    )  # fmt: skip


OUTSIDE = (
    lib(SPAWN, 90, "_wrap", None, "torch.multiprocessing.spawn"),
    lib(STD + "multiprocessing/process.py", 108, "run", "BaseProcess.run", "multiprocessing.process"),
    lib(STD + "multiprocessing/process.py", 314, "_bootstrap", "BaseProcess._bootstrap", "multiprocessing.process"),
    lib(STD + "multiprocessing/spawn.py", 135, "_main", None, "multiprocessing.spawn"),
    lib(STD + "multiprocessing/spawn.py", 122, "spawn_main", None, "multiprocessing.spawn"),
    lib("<string>", 1, "<module>", None, "__main__"),
)
WORKER = (app("Training(rank, Detector()", "worker"),) + OUTSIDE
ROOT = (
    c10d(2730, "broadcast") + c10d(3483, "broadcast_object_list") + (
        app("dist.broadcast_object_list(", "share", "Validation.share"),
        lib(SITE + "torch/utils/_contextlib.py", 116, "decorate_context", "context_decorator.<locals>.decorate_context", "torch.utils._contextlib"),
        app("self.validation.share(", "run", "Training.run"),
    ) + WORKER
)  # fmt: skip
OTHERS = (
    c10d(2811, "all_reduce") + (
        app("dist.all_reduce(tensor)", "average", "Training.average"),
        app("parameter.grad = self.average", "step", "Training.step"),
        app("self.step(number)", "run", "Training.run"),
    ) + WORKER
)  # fmt: skip
COND = (
    NativeFrame("__futex_abstimed_wait_common", LIBC, 0x7F6E1D499117),
    NativeFrame("pthread_cond_clockwait", LIBC, 0x7F6E1D49BB2F),
)
WORK_WAIT = COND + (
    NativeFrame("c10d::Work::wait", TORCH_CPU, 0x7F6E0D6A3F22),
    NativeFrame(None, TORCH_PYTHON, 0x7F6E15B66D01),
)


def runner(in_flight, operation):
    """A thread of gloo's that does the collectives, or waits for one to do."""
    if not in_flight:
        return (
            NativeFrame("pthread_cond_wait", LIBC, 0x7F6E1D49BA41),
            NativeFrame("c10d::ProcessGroupGloo::runLoop", TORCH_CPU, 0x7F6E0D71B0C5),
            NativeFrame(None, LIBSTDCXX, 0x7F6E1C8DBBF4),
        )
    return COND + (
        NativeFrame("gloo::transport::tcp::UnboundBuffer::" + ("waitSend" if operation == "broadcast" else "waitRecv"), TORCH_CPU, 0x7F6E0F2AA180),
        NativeFrame("gloo::" + operation, TORCH_CPU, 0x7F6E0F26C7E2),
        NativeFrame("c10d::ProcessGroupGloo::AsyncWork::execute", TORCH_CPU, 0x7F6E0D718F2C),
        NativeFrame("c10d::ProcessGroupGloo::runLoop", TORCH_CPU, 0x7F6E0D71B0C5),
        NativeFrame(None, LIBSTDCXX, 0x7F6E1C8DBBF4),
    )


def native_thread(tid, name, stack, syscall="futex", kind="futex", switches=0, timeout=None):
    wait = Wait(kind, syscall, timeout_s=timeout, endless=timeout is None)
    wchan = "futex_wait_queue" if syscall == "futex" else "ep_poll"
    return Thread(tid, name, "S", "detached", wait, stack, quiet(syscalls={syscall: 20}, wchan={wchan: 20}, switches=switches))


def rank(number):
    pid = MAIN + 3 + number
    python = ROOT if number == 0 else OTHERS
    operation = "broadcast" if number == 0 else "allreduce"
    main = Thread(
        pid, "MainThread", "S", "detached", Wait("futex", "futex", timeout_s=1800.0, endless=False), WORK_WAIT + python,
        quiet(syscalls={"futex": 20}, wchan={"futex_wait_queue": 20}), (Sample(98, 0.0, 0.99, python),), is_main=True, daemon=False,
        ident=0x7F6E1DA00740 + number, interpreter=0, gc=False,
    )  # fmt: skip
    epoll = (NativeFrame("epoll_wait", LIBC, 0x7F6E1D525A56), NativeFrame("gloo::transport::tcp::Loop::run", TORCH_CPU, 0x7F6E0F2A2D11))
    threads = (main, native_thread(pid + 20, "gloo_loop", epoll, "epoll_wait", "event-loop", 10, 0.1)) + tuple(
        native_thread(pid + 21 + index, "pt_gloo_runloop", runner(index == 0, operation)) for index in range(2)
    )
    sockets = tuple(
        Resource(
            "socket-%d" % index, "socket", "TCP connection between ranks %d and %d" % (number, other),
            local="127.0.0.1:%d" % (40000 + number * 10 + other), remote="127.0.0.1:%d" % (40000 + other * 10 + number), peer_in_tree=True,
            state="ESTABLISHED", received=0, unsent=0, key="tcp:%d-%d" % (min(number, other), max(number, other)),
        )
        for index, other in enumerate(rank_ for rank_ in range(3) if rank_ != number)
    )  # fmt: skip
    return Process(
        pid, MAIN, (EXE, "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6, pipe_handle=%d)" % (8 + number), "--multiprocessing-fork"),
        EXE, "S", PythonInfo("3.12.8", debug=False, finalizing=False),
        (Interpreter(0, Gil(locked=False, switch_interval=0.005), collecting=False),), threads, sockets, age_s=58.0, cpus_allowed=8,
        io={"rchar": 0, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, rss_growth=0, directory="/app", listening=(),
        counters=Counters(WINDOW, cpu_s=0.0, major_faults=0), cgroup=ControlGroup("/train", frozen=False), signal_handlers=(), forked=False,
        catches=(), cancels=(),
    )  # fmt: skip


def parent():
    python = (
        lib(STD + "selectors.py", 415, "select", "_PollLikeSelector.select", "selectors"),
        lib(STD + "multiprocessing/connection.py", 1136, "wait", None, "multiprocessing.connection"),
        lib(SPAWN, 134, "join", "ProcessContext.join", "torch.multiprocessing.spawn"),
        lib(SPAWN, 296, "start_processes", None, "torch.multiprocessing.spawn"),
        lib(SPAWN, 340, "spawn", None, "torch.multiprocessing.spawn"),
        PythonFrame(APP, line_of("mp.spawn(worker"), "<module>", "<module>", "__main__"),
    )
    pids = [MAIN + 3 + number for number in range(3)]
    sentinels = Resource(
        "descriptors-1", "descriptors", "the ends of three children", wakers=tuple(Waker("end", "kernel", pid=pid) for pid in pids),
        closed=True, because=("only these children can end it",),
        ends=(End(MAIN, 9, "r"),) + tuple(End(pid, 5, "w") for pid in pids),
    )  # fmt: skip
    main = Thread(
        MAIN, "MainThread", "S", "detached", Wait("process", "poll", "descriptors-1", endless=True, detail="the first child to end"),
        (NativeFrame("__poll", LIBC, 0x7F6E1D518BCF),) + python, quiet(syscalls={"poll": 20}, wchan={"do_sys_poll": 20}),
        (Sample(98, 0.0, 0.99, python),), is_main=True, daemon=False, ident=0x7F6E1DB00740, interpreter=0, gc=False,
    )  # fmt: skip
    return Process(
        MAIN, 1, (EXE, "program.py"), EXE, "S", PythonInfo("3.12.8", debug=False, finalizing=False),
        (Interpreter(0, Gil(locked=False, switch_interval=0.005), collecting=False),), (main,), (sentinels,), age_s=61.0, cpus_allowed=8,
        io={"rchar": 0, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, rss_growth=0, directory="/app", listening=(),
        counters=Counters(WINDOW, cpu_s=0.0, major_faults=0), cgroup=ControlGroup("/train", frozen=False), signal_handlers=(), forked=False,
        catches=(), cancels=(),
    )  # fmt: skip


def evidence() -> Evidence:
    return Evidence(
        Trigger("timeout", 60.0),
        (parent(),) + tuple(rank(number) for number in range(3)),
        sources={
            APP: {number: line for number, line in enumerate(LINES, 1) if line.strip()},
            C10D: {2730: "        work.wait()", 2811: "        work.wait()", 3483: "    broadcast(object_sizes_tensor, src=global_src, group=group)"},
            LOGGER: {81: "            return func(*args, **kwargs)"},
        },
        loops={
            APP: {
                line_of("parameter.grad = self.average"): (line_of("for parameter in"),),
                line_of("self.validation.share("): (line_of("for number in range(steps)"),),
                line_of("            self.step(number)"): (line_of("for number in range(steps)"),),
            }
        },
        timings=Timings(observe_s=1.0, pause_s=0.3, extract_s=1.2),
        window_s=WINDOW,
        machine=Machine(load=0.3, memory=33_000_000_000, available=27_000_000_000, swap_free=0, swapped_in=0, swapped_out=0, oom_kills=0, steal=0.0, stalls={}),
        tool_version="0.1.0",
    )  # fmt: skip
