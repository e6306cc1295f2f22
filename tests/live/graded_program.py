"""Threads and tasks that wait without a deadline: ``seen_…`` are only looked at by others, ``saved_…`` can be ended.

Each has an object of its own; the name of its thread, or of its task's coroutine, is what the test goes by.
"""

import asyncio
import functools
import http.server
import logging
import queue
import sched
import selectors
import signal
import socket
import socketserver
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

LONG = 1000
started = []


def begin(target, *args, name=None, **named):
    thread = threading.Thread(target=target, args=args, kwargs=named, name=name or target.__name__, daemon=True)
    thread.start()
    return thread


def waiter(name, wait):
    """Wait in a thread of that name."""

    def run():
        started.append(name)
        wait()

    return begin(run, name=name)


# ---------------------------------------------------------------------- those that only look


class Service:
    """A heartbeat, statistics and a watchdog, as services have them."""

    def __init__(self):
        self.done = threading.Event()
        self.started = threading.Event()
        self.jobs = queue.Queue()
        self.lock = threading.Lock()
        self.ready = threading.Condition()
        self.results = threading.Semaphore(0)
        self.beats = 0
        self.log = logging.getLogger("service")

    def heartbeat(self):
        while True:
            self.beats += 1
            self.started.set()  # another event
            time.sleep(LONG)

    def statistics(self):
        while True:
            time.sleep(LONG)
            self.log.info("%s %s %s %s", self.jobs.qsize(), self.done.is_set(), self.lock.locked(), self.jobs.empty())
            self.report(self.jobs)

    def report(self, jobs):
        with jobs.mutex:
            print(len(jobs.queue), jobs.maxsize)

    def watch(self):
        while not self.done.is_set():
            time.sleep(LONG)
            logging.warning("still not done: %r", self)

    def census(self):
        while True:
            time.sleep(LONG)
            for thread in threading.enumerate():
                print(thread.name, thread.is_alive(), thread.ident)
            for name, thread in list(sys._current_frames().items()):
                print(name, thread)


SERVICE = Service()


class Meeting(threading.Thread):
    """Reached through the registry of threads alone."""

    def __init__(self):
        super().__init__(name="seen_barrier", daemon=True)
        self.barrier = threading.Barrier(2)

    def run(self):
        started.append(self.name)
        self.barrier.wait()


async def seen_async(event):
    await event.wait()


def bystanders():
    waiter("seen_event", SERVICE.done.wait)
    waiter("seen_queue", SERVICE.jobs.get)
    waiter("seen_semaphore", SERVICE.results.acquire)
    waiter("seen_condition", lambda: SERVICE.ready.__enter__() and SERVICE.ready.wait())
    for each in (SERVICE.heartbeat, SERVICE.statistics, SERVICE.watch, SERVICE.census):
        begin(each)
    Meeting().start()


# ---------------------------------------------------------------------- those that end waits


class Rescue:
    """An object that each way of ending its wait leads to."""

    def __init__(self):
        self.gate = threading.Event()


DIRECT, DEEP, LISTED, PARTIAL = Rescue(), Rescue(), Rescue(), Rescue()
SIGNALLED, TIMED, ACCEPTED, SERVED, SELECTED = Rescue(), Rescue(), Rescue(), Rescue(), Rescue()
POOLED, SCHEDULED, LATER, STREAMED, WORKED = Rescue(), Rescue(), Rescue(), Rescue(), Rescue()
ITEMS = queue.Queue()


def direct():
    turns = 0
    while True:
        turns += 1
        if turns > 1:
            DIRECT.gate.set()
        time.sleep(LONG)


class Deep:
    def __init__(self, rescue):
        self.rescue = rescue

    def loop(self):
        while True:
            time.sleep(LONG)
            self.step()

    def step(self):
        if self.rescue is not None:
            self.finish(self.rescue)

    @staticmethod
    def finish(what):
        what.gate.set()


def listed(callbacks):
    time.sleep(LONG)
    for callback in callbacks:
        callback()


def dispatch(table):
    while True:
        time.sleep(LONG)
        command = input()
        table[command]()


def finish(rescue):
    rescue.gate.set()


def on_signal(number, frame):
    finish(SIGNALLED)


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        ACCEPTED.gate.set()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.rescue.gate.set()


def select_loop(rescue):
    selector = selectors.DefaultSelector()
    pair = socket.socketpair()
    selector.register(pair[0], selectors.EVENT_READ, lambda: finish(rescue))
    started.append("selecting")
    while True:
        for key, _events in selector.select():
            key.data()


def scheduler(rescue):
    plan = sched.scheduler()
    plan.enter(LONG, 1, finish, (rescue,))
    started.append("scheduled")
    plan.run()


class Job:
    def __init__(self, rescue):
        self.finished = rescue.gate

    def work(self):
        self.finished.set()


def worker(jobs):
    while True:
        time.sleep(LONG)
        job = jobs.get()
        job.work()


def producer():
    while True:
        time.sleep(LONG)
        ITEMS.put(None)


async def on_client(reader, writer):
    STREAMED.gate.set()


async def timed_future(future):
    await future


async def saved_by_task(future):
    await future


async def saved_by_callback(future):
    await future


async def job():
    await asyncio.sleep(LONG)


def ended(future, task):
    future.set_result(task)


async def setter(future):
    await asyncio.sleep(LONG)
    future.set_result(None)


async def clock():
    while True:
        await asyncio.sleep(LONG)


async def main():
    loop = asyncio.get_running_loop()
    tasks = [asyncio.ensure_future(clock())]
    future = loop.create_future()
    loop.call_later(LONG, future.set_result, None)
    tasks.append(asyncio.ensure_future(timed_future(future)))
    other = loop.create_future()
    tasks += [asyncio.ensure_future(saved_by_task(other)), asyncio.ensure_future(setter(other))]
    third = loop.create_future()
    tasks += [asyncio.ensure_future(saved_by_callback(third)), asyncio.ensure_future(job())]
    tasks[-1].add_done_callback(functools.partial(ended, third))
    tasks.append(asyncio.ensure_future(seen_async(asyncio.Event())))
    loop.call_later(LONG, finish, LATER)
    server = await asyncio.start_server(on_client, "127.0.0.1", 0)
    await asyncio.sleep(0.1)
    while len(started) < EXPECTED:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    print("ready", flush=True)
    await asyncio.sleep(LONG)
    server.close()


def rescued():
    waits = dict(
        saved_direct=DIRECT, saved_deep=DEEP, saved_listed=LISTED, saved_partial=PARTIAL, saved_signal=SIGNALLED,
        saved_timer=TIMED, saved_accept=ACCEPTED, saved_http=SERVED, saved_selector=SELECTED, saved_pool=POOLED,
        saved_sched=SCHEDULED, saved_call_later=LATER, saved_stream=STREAMED, saved_worker=WORKED,
    )  # fmt: skip
    for name, rescue in waits.items():
        waiter(name, rescue.gate.wait)
    waiter("saved_queue", ITEMS.get)
    begin(direct)
    begin(Deep(DEEP).loop, name="deep")
    begin(listed, [print, LISTED.gate.set])
    begin(dispatch, {"free": functools.partial(finish, PARTIAL)})
    signal.signal(signal.SIGUSR1, on_signal)
    timer = threading.Timer(LONG, TIMED.gate.set)
    timer.daemon = True
    timer.start()
    begin(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler).serve_forever, name="accepting")
    pages = http.server.HTTPServer(("127.0.0.1", 0), Page)
    pages.rescue = SERVED
    begin(pages.serve_forever, name="serving")
    begin(select_loop, SELECTED)
    begin(scheduler, SCHEDULED)
    jobs = queue.Queue()
    jobs.put(Job(WORKED))
    begin(worker, jobs)
    begin(producer)
    pool = ThreadPoolExecutor(1)
    pool.submit(time.sleep, LONG)
    pool.submit(finish, POOLED)
    return len(waits) + 1 + 2


if __name__ == "__main__":
    bystanders()
    EXPECTED = 5 + rescued()
    asyncio.run(main())
