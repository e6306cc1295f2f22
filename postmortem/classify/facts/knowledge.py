"""Frames of the standard library and of common frameworks, in one table for all patterns.

Files are matched by path suffix, functions by name; both are stable over 3.8-3.15 unless a row says otherwise.
"""

from __future__ import annotations

import itertools
from typing import Optional, Sequence, Tuple

from ... import sourcepaths
from ...evidence import NativeFrame, Process, PythonFrame, Thread

#: Functions that yield one turn to the event loop without waiting for anything: awaiting them in a loop is polling.
#: asyncio: Lib/asyncio/tasks.py; anyio: _backends/_asyncio.py, _trio.py, lowlevel.py; trio 0.22-0.31: _timeouts.py and
#: _core/_run.py, _traps.py; gevent 21-25: hub.py.
LOOP_TURN = (
    ("asyncio/tasks.py", ("__sleep0", "sleep")),
    ("anyio/_core/_eventloop.py", ("sleep",)),
    ("anyio/_backends/_asyncio.py", ("sleep", "checkpoint", "cancel_shielded_checkpoint")),
    ("anyio/lowlevel.py", ("checkpoint", "cancel_shielded_checkpoint")),
    ("anyio/_backends/_trio.py", ("sleep", "checkpoint", "cancel_shielded_checkpoint")),
    ("trio/_timeouts.py", ("sleep", "sleep_until")),
    ("trio/_core/_run.py", ("checkpoint", "checkpoint_if_cancelled", "cancel_shielded_checkpoint")),
    ("trio/_core/_traps.py", ("cancel_shielded_checkpoint", "_async_yield", "_real_async_yield")),
    ("gevent/hub.py", ("sleep",)),
)

#: The event loop's own code: a sample with only these innermost frames did no work of the program.
LOOP_MACHINERY = (
    "asyncio/", "/selectors.py", "/anyio/", "/uvloop/", "/sniffio/", "/contextvars.py", "/trio/", "/outcome/", "/gevent/",
    "/twisted/internet/", "/twisted/logger/", "/twisted/python/",
)  # fmt: skip

#: Functions in which a thread waits until a coroutine that it has handed to a loop of another thread has ended. Sources:
#: asgiref/sync.py and current_thread_executor.py of 3.2-3.8.
BRIDGES = (("asgiref/current_thread_executor.py", "run_until_future"), ("asgiref/sync.py", "_run_event_loop"))

#: Functions in which a thread waits for the result of what it has a reactor do (Twisted 20.3-26.10; crochet 1.9-2.1).
REACTOR_RESULTS = (("twisted/internet/threads.py", "blockingCallFromThread"), ("crochet/_eventloop.py", "_result"))

#: Functions in which a task waits for the network: (path suffix, functions).
AWAITS_NETWORK = (
    ("asyncio/streams.py", ("_wait_for_data", "_drain_helper", "open_connection")),
    ("asyncio/selector_events.py", ("sock_recv", "sock_recv_into", "sock_sendall", "sock_connect", "sock_accept")),
    ("asyncio/base_events.py", ("create_connection",)),
    ("anyio/_backends/_asyncio.py", ("receive", "receive_some")),
    ("aiohttp/streams.py", ("read", "_wait")),
)

#: The frame of one turn of an event loop, and the frames of a thread that runs one.
LOOP_ONCE = ("asyncio/base_events.py", "_run_once")
LOOP_RUN = (("asyncio/base_events.py", "run_forever"), LOOP_ONCE)
#: The frame that runs one callback or task step; the frame that it calls is the program's.
LOOP_STEP = ("asyncio/events.py", "_run")
#: Likewise of other loops written in Python: Twisted's calls that are due (18.9-25.5).
LOOP_STEPS = (LOOP_STEP, ("twisted/internet/base.py", "runUntilCurrent"))


def multiprocessing(module: str) -> Tuple[str, ...]:
    """Return the path suffixes of a module of multiprocessing.

    They match the standard library's module and those that grew out of it: multiprocess (0.70, used by pathos), the same
    code with another pickler, and billiard (3.6-4.2, used by celery), whose queues and processes are the same and whose
    pool is its own.
    """
    return f"multiprocessing/{module}.py", f"/multiprocess/{module}.py", f"/billiard/{module}.py"


#: Functions of a multiprocessing.pool.Pool's own threads; its workers run the last one.
POOL_THREADS = tuple(
    itertools.product(multiprocessing("pool"), ("_handle_workers", "_handle_tasks", "_handle_results", "worker"))
)

#: Functions in which idle threads of a healthy program wait: (path suffix, function).
IDLE = (
    ("concurrent/futures/thread.py", "_worker"),
    ("concurrent/futures/process.py", "_process_worker"),
    ("concurrent/futures/process.py", "wait_result_broken_or_wakeup"),
    *POOL_THREADS,
    *itertools.product(multiprocessing("queues"), ("_feed",)),
    *itertools.product(multiprocessing("resource_tracker"), ("main",)),
    ("anyio/_backends/_asyncio.py", "run"),  # WorkerThread.run: an idle to_thread worker
    ("gevent/threadpool.py", "run"),  # _WorkerGreenlet.run: an idle worker of the hub's thread pool
)

#: The condition on which an idle worker waits for a job, by a lock (gevent 20.12 to 26.9).
GETS_JOB = (("gevent/_threading.py", "wait"),)

#: Functions of a user interface's library that wait for events in native code, where they are the innermost Python frame.
WINDOW_LOOPS = (("/tkinter/__init__.py", "mainloop"), ("/tkinter/__init__.py", "wait_window"))

#: Functions of event loops below which callbacks run (Twisted 8 to 25, paho-mqtt 1 and 2).
LOOPS = (LOOP_STEP, *WINDOW_LOOPS, ("twisted/internet/base.py", "mainLoop"), ("paho/mqtt/client.py", "loop_forever"))

#: Where a task waits for signals of the operating system (trio/_signals.py: open_signal_receiver).
_RECEIVES_SIGNALS = (("trio/_signals.py", "__anext__"),)

#: Functions of interactive shells that run what a person has typed: (path suffix, function).
SHELLS = (("IPython/core/interactiveshell.py", "run_code"), ("/code.py", "runcode"))

#: The function of a worker that runs a job (Lib/concurrent/futures/thread.py).
RUNS_ITEM = ("concurrent/futures/thread.py", "run")
#: The feeder thread, which writes queued objects to the pipe of a queue (Lib/multiprocessing/queues.py).
FEEDS = tuple(itertools.product(multiprocessing("queues"), ("_feed",)))
#: What reads an item from that pipe, and what waits until all items are done.
_GETS = tuple(itertools.product(multiprocessing("queues"), ("get",)))
_JOINS = tuple(itertools.product(multiprocessing("queues"), ("join",)))
#: System calls that wait until one of several descriptors is ready.
SELECT_CALLS = frozenset(("select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait"))

#: Frames of a waiter among which the method of such a queue is.
_INNERMOST = 5
#: The frame in which a child of multiprocessing begins.
BEGINS = tuple(itertools.product(multiprocessing("process"), ("_bootstrap",)))

#: Functions of multiprocessing's managers: a thread of the server for each client, and a client's call.
SERVES_CLIENT = tuple(itertools.product(multiprocessing("managers"), ("serve_client",)))
ASKS_MANAGER = tuple(itertools.product(multiprocessing("managers"), ("_callmethod",)))

#: Functions that wait for work done by any other threads of the process.
COLLECTS = (
    ("/queue.py", "join"),
    ("asyncio/queues.py", "join"),
    ("concurrent/futures/_base.py", "result"),
    ("concurrent/futures/_base.py", "wait"),
    ("concurrent/futures/_base.py", "as_completed"),
    ("concurrent/futures/thread.py", "shutdown"),
    *itertools.product(multiprocessing("pool"), ("get", "wait", "next")),
)

#: Interpreter shutdown: threading._shutdown waits for threads, executors' _python_exit joins workers.
EXIT = (("threading.py", "_shutdown"), ("concurrent/futures/thread.py", "_python_exit"))

#: Python code run when an object is destroyed, without an explicit call: (path suffix or "", function).
FINALIZERS = (("", "__del__"), ("/weakref.py", "__call__"))

#: CPython's functions that call finalizers (Objects/typeobject.c, weakrefobject.c, Modules/gcmodule.c; since 3.13
#: Python/gc.c, gc_free_threading.c and brc.c, whose object queues are processed between two instructions) and Python
#: signal handlers (Modules/signalmodule.c); visible only if the interpreter has symbols. 3.8 to 3.15.
NATIVE_FINALIZER = frozenset((
    "subtype_dealloc", "slot_tp_finalize", "PyObject_CallFinalizer", "PyObject_CallFinalizerFromDealloc",
    "PyObject_ClearWeakRefs", "handle_callback", "handle_weakrefs", "finalize_garbage", "gc_collect_main",
    "invoke_gc_callback", "_Py_RunGC", "_PyGC_Collect", "_PyGC_CollectNoFail", "gc_collect_internal",
    "_Py_Dealloc", "call_weakref_callbacks", "_Py_brc_merge_refcounts", "merge_queued_objects",
))  # fmt: skip
NATIVE_SIGNAL = frozenset(("_PyErr_CheckSignalsTstate", "_PyErr_CheckSignals", "PyErr_CheckSignals"))

#: C functions that resolve names, blocking (Modules/socketmodule.c), and the C library functions that they call, under their
#: names with and without debug symbols (glibc: sysdeps/posix/getaddrinfo.c, inet/getnameinfo.c, resolv/res_send.c;
#: musl: the first).
RESOLVES = frozenset((
    "_socket.getaddrinfo", "_socket.gethostbyname", "_socket.gethostbyname_ex", "_socket.gethostbyaddr",
    "_socket.getnameinfo",
))  # fmt: skip
NATIVE_RESOLVES = frozenset((
    "getaddrinfo", "getnameinfo", "gethostbyname_r", "gethostbyname2_r", "gethostbyname3_r", "gethostbyname4_r",
    "gethostbyaddr_r", "gethostbyname", "gethostbyaddr", "res_context_send", "res_nsend", "res_send", "res_nsearch",
    "socket_getaddrinfo",
))  # fmt: skip

#: Functions of resolvers that are written in Python (dnspython 1.16-2.8, dns/query.py): each asks one name server.
PYTHON_RESOLVES = tuple(("/dns/query.py", name) for name in ("udp", "tcp", "udp_with_fallback", "tls", "https", "quic"))

#: Kernel functions in which a thread waits for a remote file system: interruptible (state S) in FUSE, until a signal
#: arrives (fs/fuse/dev.c); NFS (net/sunrpc/sched.c), CIFS (fs/smb/client/transport.c), 9p (net/9p/client.c), Ceph, autofs.
STORAGE = (
    "request_wait_answer",
    "__fuse_request_send",
    "fuse_simple_request",
    "rpc_wait_bit_killable",
    "wait_for_response",
    "p9_client_rpc",
    "ceph_mdsc_wait_request",
    "autofs_wait",
    "nfs_wait_bit_killable",
    "io_schedule",
    "folio_wait_bit_common",
    "wait_on_page_bit_common",
)
#: Kernel functions with state D that involve no storage: vfork's parent until the child has called exec (kernel/fork.c),
#: the freezer of cgroup v1, a core dump being written, userfaultfd, memory reclaim.
NO_STORAGE = (
    "kernel_clone",
    "_do_fork",
    "do_fork",
    "wait_for_vfork_done",
    "__refrigerator",
    "do_coredump",
    "coredump_wait",
    "handle_userfault",
    "mem_cgroup_handle_over_high",
    "mem_cgroup_oom_synchronize",
    "futex_wait_queue",
    "do_exit",
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "msleep",
    "do_freezer_trap",
)


def request_of(client: Sequence[PythonFrame], server: Sequence[PythonFrame]) -> Optional[str]:
    """Return the method that both a client of a multiprocessing manager asks for and a thread of the manager runs; else None."""
    asks = next((i for i, frame in enumerate(client) if in_table(frame, ASKS_MANAGER)), len(client))
    runs = next((i for i, frame in enumerate(server) if in_table(frame, SERVES_CLIENT)), 0)
    asked = client[asks + 1].function if asks + 1 < len(client) else None
    return asked if runs and asked == server[runs - 1].function else None


def has_items(process: Process) -> bool:
    """Return whether a feeder thread of a process has an item to write: it does not wait for one."""
    feeders = [thread for thread in process.threads if any(in_table(frame, FEEDS) for frame in thread.python)]
    return any(feeder.wait is None or feeder.wait.kind != "condition" for feeder in feeders)


def gets_item(frames: Sequence[PythonFrame]) -> bool:
    """Return whether a stack waits for an item of a queue of multiprocessing."""
    return any(in_table(frame, _GETS) for frame in frames[:_INNERMOST])


def receives_signals(frames: Sequence[PythonFrame]) -> bool:
    """Return whether a task's stack waits for signals of the operating system."""
    return any(in_table(frame, _RECEIVES_SIGNALS) for frame in frames)


def joins_queue(frames: Sequence[PythonFrame]) -> bool:
    """Return whether a stack waits until all items of a queue of multiprocessing are done."""
    return any(in_table(frame, _JOINS) for frame in frames[:_INNERMOST])


def is_stdlib(frame: PythonFrame) -> bool:
    """Return whether a frame is in the standard library."""
    return sourcepaths.is_stdlib(frame.file)


def is_library(frame: PythonFrame) -> bool:
    """Return whether a frame is in the standard library or an installed package."""
    return not sourcepaths.is_program(frame.file)


def is_typed(frames: Sequence[PythonFrame]) -> bool:
    """Return whether a stack runs what a person has typed into an interactive shell."""
    return any(in_table(frame, SHELLS) for frame in frames)


def is_loop_turn(frame: PythonFrame) -> bool:
    """Return whether a frame only yields one turn to the event loop."""
    return any(frame.file.endswith(file) and frame.function in functions for file, functions in LOOP_TURN)


def awaits_network(stack: Sequence[PythonFrame]) -> bool:
    """Return whether a task with these frames waits for a network peer."""
    return any(
        f.file.endswith(file) and f.function in functions for f in stack[:3] for file, functions in AWAITS_NETWORK
    )


def is_loop_machinery(frame: PythonFrame) -> bool:
    """Return whether a frame belongs to the event loop's own code."""
    return any(part in frame.file for part in LOOP_MACHINERY)


def resolves(thread: Thread) -> bool:
    """Return whether a thread waits in a call that resolves a name, of the C library or of a resolver in Python."""
    if thread.wait is None:
        return False
    if asks_name_server(thread) is not None:
        return True
    if thread.calling is not None and thread.calling.function in RESOLVES:
        return True
    above = itertools.takewhile(lambda frame: isinstance(frame, NativeFrame), thread.stack)
    names = [frame.function or "" for frame in above if isinstance(frame, NativeFrame)]
    return any(name.replace("__GI_", "").lstrip("_") in NATIVE_RESOLVES for name in names)


def asks_name_server(thread: Thread) -> Optional[PythonFrame]:
    """Return the frame in which a resolver written in Python asks a name server; None without one."""
    return next((frame for frame in thread.python if in_table(frame, PYTHON_RESOLVES)), None)


def is_finalizer(frame: PythonFrame) -> bool:
    """Return whether a frame is a finalizer or a weak reference's callback."""
    return in_table(frame, FINALIZERS)


def in_table(frame: PythonFrame, table: Sequence[Tuple[str, str]]) -> bool:
    """Return whether a frame matches a row (path suffix, function)."""
    return any(frame.file.endswith(file) and frame.function == function for file, function in table)


def own_frame(frames: Sequence[PythonFrame]) -> Optional[PythonFrame]:
    """Return the innermost frame of the program itself, or of an installed package if there is none.

    Never a frame of the standard library, whose code is not the user's to change. Code compiled from a string, such as
    the methods of a manager's proxies, is returned only if the program has no other frame.
    """
    mine = [f for f in frames if not is_library(f)]
    return next((f for f in mine if not f.file.startswith("<")), None) or next(iter(mine), direct_frame(frames))


def direct_frame(frames: Sequence[PythonFrame]) -> Optional[PythonFrame]:
    """Return the innermost frame outside the standard library, of the program or of a package."""
    return next((f for f in frames if not is_stdlib(f)), None)
