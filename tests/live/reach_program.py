"""Threads and tasks that wait for things, each reached in another way; the names of functions and variables say which.

``shut``: nobody can reach it but its waiters. ``open``: somebody can, or nobody knows.
"""

import _thread
import asyncio
import atexit
import contextvars
import ctypes
import functools
import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
import weakref

gc.disable()  # tasks that nobody refers to would be collected, which ends their waits
REGISTRY = {}
KEPT = []
started = []


class Store:
    def __init__(self):
        self.condition = threading.Condition()
        self.jobs = queue.Queue()


def shut_condition():
    store = Store()
    started.append(1)
    with store.condition:
        store.condition.wait()


def shut_event():
    shut = threading.Event()
    started.append(1)
    shut.wait()


def shut_argument(shut):
    for _ in range(9):  # what it leaves behind on stacks and in freed memory refers to nothing
        [shut] * 3, {1: shut}, str(shut), functools.partial(print, shut)
    started.append(1)
    shut.get()


def shut_closure():
    shut = queue.Queue()

    def again():
        return shut

    started.append(1)
    again().get()


def shut_simple():
    shut = queue.SimpleQueue()
    started.append(1)
    shut.get()


class Opening:
    """Waits while it is made."""

    def __init__(self, *given, **named):
        self.answers = queue.Queue()
        started.append(1)
        self.answers.get()


def shut_made():
    Opening(1)


def shut_named():
    Opening(1, name="answers")


class Keeping:
    """Is kept by C code while it is made."""

    def __init__(self):
        self.answers = queue.Queue()
        KEPT.append(ctypes.py_object(self))
        started.append(1)
        self.answers.get()


def open_made():
    Keeping()


OPTIONS = {"name": "answers"}


def unpacked():
    Opening(**OPTIONS)  # how many references C code has to it depends on what was in the dict


class Closing:
    def __init__(self):
        self.answers = queue.Queue()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        started.append(1)
        self.answers.get()


def shut_left():
    with Closing():
        pass


OWN = threading.local()
VARIABLE = contextvars.ContextVar("VARIABLE")


def of_local():
    OWN.kept = own = queue.Queue()
    started.append(1)
    own.get()


def of_context():
    own = queue.Queue()
    VARIABLE.set(own)
    started.append(1)
    own.get()


def shared(common):
    started.append(1)
    common.get()


def sharer(common):
    threading.Thread(target=shared, args=(common,), name="shared", daemon=True).start()
    started.append(1)
    time.sleep(1000)


def open_start():
    given = queue.Queue()
    _thread.start_new_thread(dozer, (given,))
    started.append(1)
    given.get()


def dozer(given):
    del given  # it has it no more, but what it was started with has
    time.sleep(1000)


def open_fork():
    forked = queue.Queue()
    os.register_at_fork(after_in_child=functools.partial(forked.put, 1))
    started.append(1)
    forked.get()


def open_queued():
    put = queue.Queue()
    REGISTRY["simple"] = jobs = queue.SimpleQueue()
    for item in (1, put, 2):
        jobs.put(item)
    jobs.get()
    del item, jobs
    started.append(1)
    put.get()


def open_entry():
    cached = queue.Queue()
    found = [cached]

    @functools.lru_cache(maxsize=8)
    def cache(number):
        return found.pop() if not number else None

    cache(0), cache(1), cache(2)
    REGISTRY["bounded"] = cache
    started.append(1)
    cached.get()


def open_global():
    named = queue.Queue()
    REGISTRY["named"] = {"deep": [named]}
    started.append(1)
    named.get()


def open_generator():
    held = queue.Queue()

    def consumer():
        mine = held
        yield
        mine.put(1)

    REGISTRY["generator"] = generator = consumer()
    next(generator)
    del generator
    started.append(1)
    held.get()


def open_namespace():
    store = Store()
    REGISTRY["namespace"] = vars(store)
    started.append(1)
    store.jobs.get()


def open_weak():
    weak = threading.Event()
    REGISTRY["weak"] = weakref.ref(weak)
    started.append(1)
    weak.wait()


def open_callback():
    called = threading.Event()
    REGISTRY["victim"] = victim = Store()
    called.kept = weakref.ref(victim, lambda _: called.set())  # whoever drops the victim sets it
    del victim
    started.append(1)
    called.wait()


def open_traceback():
    traced = queue.Queue()

    def fail():
        mine = traced
        raise ValueError(mine)

    try:
        fail()
    except ValueError as exc:
        REGISTRY["error"] = exc
    started.append(1)
    traced.get()


def open_foreign():
    foreign = queue.Queue()
    KEPT.append(ctypes.py_object(foreign))  # nothing but C code knows of it
    started.append(1)
    foreign.get()


def open_atexit():
    late = queue.Queue()
    atexit.register(late.put, 1)
    started.append(1)
    late.get()


def open_cached():
    cached = queue.Queue()

    @functools.lru_cache(maxsize=None)
    def cache():
        return cached

    cache()
    REGISTRY["cache"] = cache
    started.append(1)
    cached.get()


async def inner(future):
    await future


async def shut_task():
    shut = asyncio.get_running_loop().create_future()
    await inner(shut)


async def shut_async_event():
    shut = asyncio.Event()
    await shut.wait()


async def open_registered():
    listed = asyncio.get_running_loop().create_future()
    REGISTRY["future"] = listed
    await listed


async def open_timer():
    loop = asyncio.get_running_loop()
    timed = loop.create_future()
    loop.call_later(1000, timed.set_result, None)
    await inner(timed)


async def open_reader():
    loop = asyncio.get_running_loop()
    read = loop.create_future()
    pair = socket.socketpair()
    KEPT.append(pair)
    loop.add_reader(pair[0], lambda: read.set_result(None))
    await read


async def open_other():
    given = asyncio.get_running_loop().create_future()
    asyncio.ensure_future(holder(given))  # noqa: RUF006 - only the future is to be reached
    await given


async def holder(future):
    await asyncio.sleep(1000)
    future.set_result(None)


def on_signal(number, frame):
    """Never called."""


class Handler:
    def __call__(self, number, frame):
        """Never called."""


async def main():
    signal.signal(signal.SIGUSR1, functools.partial(on_signal))
    signal.signal(signal.SIGUSR2, Handler())
    for coroutine in (shut_task, shut_async_event, open_registered, open_timer, open_reader, open_other):
        asyncio.ensure_future(coroutine())  # noqa: RUF006 - only asyncio's lists know of them
    targets = (
        shut_condition,
        shut_event,
        shut_closure,
        shut_simple,
        shut_made,
        shut_named,
        shut_left,
        open_made,
        unpacked,
        open_global,
        open_generator,
        open_namespace,
        open_weak,
        open_callback,
        open_traceback,
        open_foreign,
        open_atexit,
        open_cached,
        of_local,
        of_context,
        open_start,
        open_fork,
        open_queued,
        open_entry,
    )
    for target in targets:
        threading.Thread(target=target, name=target.__name__, daemon=True).start()
    threading.Thread(target=shut_argument, args=(queue.Queue(),), name="shut_argument", daemon=True).start()
    threading.Thread(target=sharer, args=(queue.Queue(),), name="sharer", daemon=True).start()
    while len(started) < len(targets) + 3:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.sleep(1000)


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    asyncio.run(main())
