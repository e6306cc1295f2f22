"""Evidence of speech-tuning as a capture of torchrun's tree would have it: torch 2.6, NCCL, four ranks on four GPUs."""
from __future__ import annotations

from pathlib import Path

from postmortem.evidence import (
    ControlGroup, Counters, Evidence, Gil, Interpreter, Machine, NativeFrame, Process, PythonFrame, PythonInfo, Sample, Thread,
    Timings, Trigger, Wait,
)  # fmt: skip

APP = "/app/program.py"
LINES = [line.split("  # CULP" "RIT")[0] for line in Path(__file__).with_name("program.py").read_text("utf-8").splitlines()]
SITE = "/usr/local/lib/python3.11/site-packages/"
C10D = SITE + "torch/distributed/distributed_c10d.py"
LOGGER = SITE + "torch/distributed/c10d_logger.py"
TORCH_CUDA = SITE + "torch/lib/libtorch_cuda.so"
TORCH_PYTHON = SITE + "torch/lib/libtorch_python.so"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"
CUDART = SITE + "nvidia/cuda_runtime/lib/libcudart.so.12"
LIBSTDCXX = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
WINDOW = 1.0


def line_of(text):
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def app(text, function, qualname=None):
    return PythonFrame(APP, line_of(text), function, qualname or function, "__main__")


def lib(file, line, function, qualname=None, module=None):
    return PythonFrame(file, line, function, qualname or function, module)


def nat(function, module, address):
    return NativeFrame(function, module, address)


WRAPPER = lib(LOGGER, 81, "wrapper", "_exception_logger.<locals>.wrapper", "torch.distributed.c10d_logger")
TAIL = (app("tuner.epoch(number)", "main"), PythonFrame(APP, len(LINES), "<module>", "<module>", "__main__"))

ALL_REDUCE = (
    lib(C10D, 2811, "all_reduce", None, "torch.distributed.distributed_c10d"),
    WRAPPER,
    app("dist.all_reduce(", "average_gradients", "Tuner.average_gradients"),
    app("self.average_gradients()", "step", "Tuner.step"),
    app("self.step(waves.cuda()", "epoch", "Tuner.epoch"),
) + TAIL
ALL_REDUCE_NATIVE = (
    nat("clock_nanosleep", LIBC, 0x7F21A64E57F8),
    nat("__nanosleep", LIBC, 0x7F21A64EA677),
    nat("c10d::ProcessGroupNCCL::WorkNCCL::synchronizeInternal", TORCH_CUDA, 0x7F2146A0B1C4),
    nat("c10d::ProcessGroupNCCL::WorkNCCL::wait", TORCH_CUDA, 0x7F2146A0B7F2),
    nat(None, TORCH_PYTHON, 0x7F219D3B66D0),
)
BARRIER = (
    lib(C10D, 4556, "barrier", None, "torch.distributed.distributed_c10d"),
    WRAPPER,
    app("dist.barrier()", "epoch", "Tuner.epoch"),
) + TAIL
BARRIER_NATIVE = (
    nat(None, LIBCUDA, 0x7F0A5C2E41B3),
    nat("cuStreamSynchronize", LIBCUDA, 0x7F0A5C4A0F11),
    nat("cudaStreamSynchronize", CUDART, 0x7F0AF12580E5),
    nat("c10d::ProcessGroupNCCL::WorkNCCL::synchronizeInternal", TORCH_CUDA, 0x7F0A86A0B2E0),
    nat("c10d::ProcessGroupNCCL::WorkNCCL::wait", TORCH_CUDA, 0x7F0A86A0B7F2),
    nat(None, TORCH_PYTHON, 0x7F0ADD3B66D0),
)


def helper(tid, name, native, wait, switches, cpu=0.0):
    return Thread(
        tid, name, "S", "detached", wait, native, Counters(
            WINDOW, cpu_s=cpu, voluntary_switches=switches, involuntary_switches=0, run_delay_s=0.0, minor_faults=0, major_faults=0,
            io_delay_s=0.0, read_calls=None, write_calls=None, states={"S": 20},
            syscalls={wait.syscall: 20} if wait.syscall else {}, wchan={"futex_wait_queue": 20} if wait.syscall == "futex" else {},
        ),
    )  # fmt: skip


def rank(pid, number):
    waits_in_barrier = number == 2
    python = BARRIER if waits_in_barrier else ALL_REDUCE
    native = BARRIER_NATIVE if waits_in_barrier else ALL_REDUCE_NATIVE
    if waits_in_barrier:
        wait = None
        counters = Counters(
            WINDOW, cpu_s=0.99, voluntary_switches=2, involuntary_switches=11, run_delay_s=0.004, minor_faults=0, major_faults=0,
            io_delay_s=0.0, states={"R": 20}, syscalls={"running": 18, "sched_yield": 2}, wchan={},
        )  # fmt: skip
    else:
        wait = Wait("sleep", "clock_nanosleep", timeout_s=0.01, endless=False)
        counters = Counters(
            WINDOW, cpu_s=0.01, voluntary_switches=98, involuntary_switches=0, run_delay_s=0.001, minor_faults=0, major_faults=0,
            io_delay_s=0.0, states={"S": 20}, syscalls={"clock_nanosleep": 20}, wchan={"hrtimer_nanosleep": 20},
        )  # fmt: skip
    main = Thread(
        pid, "MainThread", "R" if waits_in_barrier else "S", "detached", wait, native + python, counters,
        (Sample(97, 0.0, 0.99, python),), is_main=True, daemon=False, ident=0x7F0000000740 + number, interpreter=0, gc=False,
    )  # fmt: skip
    condition = (
        nat("__futex_abstimed_wait_common", LIBC, 0x7F21A6499117),
        nat("pthread_cond_clockwait", LIBC, 0x7F21A649BB2F),
    )
    threads = (
        main,
        helper(pid + 20, "cuda-EvtHandlr", (nat("__poll", LIBC, 0x7F21A6518BCF), nat(None, LIBCUDA, 0x7F215C2F3C0F)), Wait("event-loop", "poll", endless=False), 10),
        helper(pid + 31, "pt_tcpstore", (nat("__poll", LIBC, 0x7F21A6518BCF),), Wait("event-loop", "poll", endless=True), 0) if number == 0 else None,
        helper(
            pid + 34, "pt_nccl_watchdg", condition + (
                nat("c10d::ProcessGroupNCCL::watchdogHandler", TORCH_CUDA, 0x7F2146A17A3B),
                nat("c10d::ProcessGroupNCCL::ncclCommWatchdog", TORCH_CUDA, 0x7F2146A1914D),
                nat(None, LIBSTDCXX, 0x7F21A58DBBF4),
            ), Wait("futex", "futex", timeout_s=0.1, endless=False), 10,
        ),
        helper(
            pid + 35, "pt_nccl_heartbt", condition + (
                nat("c10d::ProcessGroupNCCL::heartbeatMonitor", TORCH_CUDA, 0x7F2146A1C20E), nat(None, LIBSTDCXX, 0x7F21A58DBBF4),
            ), Wait("futex", "futex", timeout_s=60.0, endless=False), 0,
        ),
        helper(pid + 41, "NCCL Service", (nat("__poll", LIBC, 0x7F21A6518BCF), nat(None, SITE + "nvidia/nccl/lib/libnccl.so.2", 0x7F2128477C21)), Wait("event-loop", "poll", endless=True), 0),
        helper(pid + 43, "NCCL Progress", (nat("pthread_cond_wait", LIBC, 0x7F21A649BA41), nat("ncclProxyProgress", SITE + "nvidia/nccl/lib/libnccl.so.2", 0x7F212847AA02)), Wait("futex", "futex", endless=True), 0),
        helper(pid + 52, "pt_autograd_0", (nat("pthread_cond_wait", LIBC, 0x7F21A649BA41), nat("torch::autograd::ReadyQueue::pop", SITE + "torch/lib/libtorch_cpu.so", 0x7F21903D7FAC), nat("torch::autograd::Engine::thread_main", SITE + "torch/lib/libtorch_cpu.so", 0x7F21903DC11B)), Wait("futex", "futex", endless=True), 0),
    )  # fmt: skip
    return Process(
        pid, 1, ("/usr/local/bin/python3.11", "-u", "program.py"), "/usr/local/bin/python3.11", "R" if waits_in_barrier else "S",
        PythonInfo("3.11.9", debug=False, finalizing=False),
        (Interpreter(0, Gil(locked=False, switch_interval=0.005), collecting=False),),
        tuple(thread for thread in threads if thread is not None), age_s=214.0 + number / 100.0, cpus_allowed=32,
        io={"rchar": 0, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, rss_growth=0, directory="/app",
        counters=Counters(WINDOW, cpu_s=1.0 if waits_in_barrier else 0.02, major_faults=0), cgroup=ControlGroup("/train", frozen=False),
        listening=(), signal_handlers=(), forked=False, catches=(), cancels=(),
    )  # fmt: skip


def agent():
    api = SITE + "torch/distributed/elastic/agent/server/api.py"
    python = (
        lib(api, 869, "_invoke_run", "SimpleElasticAgent._invoke_run", "torch.distributed.elastic.agent.server.api"),
        lib(api, 696, "run", "SimpleElasticAgent.run", "torch.distributed.elastic.agent.server.api"),
        lib(SITE + "torch/distributed/elastic/metrics/api.py", 137, "wrapper", "prof.<locals>.wrap.<locals>.wrapper", "torch.distributed.elastic.metrics.api"),
        lib(SITE + "torch/distributed/launcher/api.py", 260, "launch_agent", None, "torch.distributed.launcher.api"),
        lib(SITE + "torch/distributed/launcher/api.py", 138, "__call__", "elastic_launch.__call__", "torch.distributed.launcher.api"),
        lib(SITE + "torch/distributed/run.py", 909, "run", None, "torch.distributed.run"),
        lib(SITE + "torch/distributed/run.py", 918, "main", None, "torch.distributed.run"),
        PythonFrame("/usr/local/bin/torchrun", 8, "<module>", "<module>", "__main__"),
    )  # fmt: skip
    main = Thread(
        1, "MainThread", "S", "detached", Wait("sleep", "clock_nanosleep", timeout_s=0.1, endless=False),
        (nat("clock_nanosleep", LIBC, 0x7F55124E57F8),) + python,
        Counters(WINDOW, cpu_s=0.0, voluntary_switches=10, involuntary_switches=0, states={"S": 20}, syscalls={"clock_nanosleep": 20}, wchan={"hrtimer_nanosleep": 20}),
        (Sample(97, 0.0, 0.99, python),), is_main=True, daemon=False, ident=0x7F5512A00740, interpreter=0, gc=False,
    )  # fmt: skip
    return Process(
        1, 0, ("/usr/local/bin/python3.11", "/usr/local/bin/torchrun", "--nproc-per-node=4", "program.py"), "/usr/local/bin/python3.11",
        "S", PythonInfo("3.11.9", debug=False, finalizing=False),
        (Interpreter(0, Gil(locked=False, switch_interval=0.005), collecting=False),), (main,), age_s=219.0, cpus_allowed=32,
        io={"rchar": 0, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, rss_growth=0, directory="/app",
        counters=Counters(WINDOW, cpu_s=0.0, major_faults=0), cgroup=ControlGroup("/train", frozen=False), listening=(29500,),
        signal_handlers=(), forked=False, catches=(1, 2, 15), cancels=(),
    )  # fmt: skip


def evidence() -> Evidence:
    return Evidence(
        Trigger("timeout", 200.0),
        (agent(),) + tuple(rank(71 + number * 100, number) for number in range(4)),
        sources={
            APP: {number: line for number, line in enumerate(LINES, 1) if line.strip()},
            C10D: {2811: "        work.wait()", 4556: "        work.wait()"},
            LOGGER: {81: "            return func(*args, **kwargs)"},
        },
        loops={
            APP: {
                line_of("dist.all_reduce("): (line_of("for parameter in"),),
                line_of("self.step(waves.cuda()"): (line_of("for waves, labels in self.data"),),
                line_of("tuner.epoch(number)"): (line_of("for number in range(10)"),),
            }
        },
        branches={APP: {line_of("self.average_gradients()"): (line_of("if not torch.isfinite"),)}},
        timings=Timings(observe_s=1.0, pause_s=0.4, extract_s=1.9),
        window_s=WINDOW,
        machine=Machine(load=2.4, memory=270_000_000_000, available=201_000_000_000, swap_free=0, swapped_in=0, swapped_out=0, oom_kills=0, steal=0.0, stalls={}),
        tool_version="0.1.0",
    )  # fmt: skip
