"""Pollers, each a function in a thread or a task: what its name begins with is what it waits for."""

import asyncio
import concurrent.futures
import os
import queue
import subprocess
import sys
import threading
import time

future = concurrent.futures.Future()
futures = [concurrent.futures.Future() for _ in range(3)]
futures[0].set_result(1)
event, stop = threading.Event(), threading.Event()
items = queue.Queue()
simple = queue.SimpleQueue()
full = queue.Queue(1)
full.put(1)
lock = threading.Lock()
lock.acquire()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def future_done():
    while not future.done():
        time.sleep(0.05)


def future_of_several():
    while not all(f.done() for f in futures):
        time.sleep(0.05)


def future_result():
    while True:
        try:
            return future.result(timeout=0.1)
        except concurrent.futures.TimeoutError:
            print("still waiting", file=sys.stderr)


def future_beside_jobs():
    """Run a coroutine from a thread, as asgiref does."""
    jobs = queue.Queue()
    while True:
        try:
            job = jobs.get(block=False)
        except queue.Empty:
            if future.done():
                return
            time.sleep(0.001)
        else:
            job.run()
            del job


def future_in_pauses():
    while not future.done():
        stop.wait(0.05)


class Flow:
    def __init__(self):
        self.future = concurrent.futures.Future()

    @property
    def finished(self):
        return self.future.done()

    def over(self):
        return self.finished

    def pause(self):
        time.sleep(0.05)

    def run(self):
        deadline = None
        while not self.over():
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            self.pause()


def future_through_methods():
    Flow().run()


def event_set():
    while not event.is_set():
        time.sleep(0.05)


def event_wait():
    while not event.wait(0.05):
        pass


def queue_get():
    while True:
        try:
            item = items.get(timeout=0.1)
        except queue.Empty:
            continue
        print(item)


def queue_simple():
    while True:
        if simple.empty():
            time.sleep(0.05)
            continue
        print(simple.get())


def queue_full():
    while True:
        try:
            full.put(2, block=False)
            break
        except queue.Full:
            time.sleep(0.05)


def lock_tried():
    while not lock.acquire(timeout=0.1):
        pass


def lock_asked():
    while not lock.acquire(blocking=False):
        time.sleep(0.05)


class Flusher(threading.Thread):
    """Others wait in its method until it has caught up; its own loop waits for nothing of its own."""

    def __init__(self):
        super().__init__(name="rest_flusher", daemon=True)
        self.clean, self.stopped = False, False

    def run(self):
        while not self.stopped:
            time.sleep(0.05)

    def flush(self):
        while not self.clean or self.stopped:
            time.sleep(0.05)


flusher = Flusher()
flusher.start()


class Job:
    def __init__(self):
        self.loaded, self.result = False, None
        self.running, self.stopping, self.failed = True, False, False
        self.stopped, self.connections = False, [object()]


job = Job()
other_job, own_job = Job(), Job()


def event_variable():
    while not job.loaded:
        time.sleep(0.05)


def event_variable_between():
    while True:
        if other_job.result is not None:
            break
        time.sleep(0.05)


class Shared:
    ready = False


shared = Shared()


def event_class_variable():
    while not shared.ready:
        time.sleep(0.05)


def event_variable_of_class():
    while not Shared.ready:
        time.sleep(0.05)


def rest_while_running():
    while job.running:
        time.sleep(0.05)


def rest_until_stopped():
    while not job.stopping:
        time.sleep(0.05)


def rest_variable_that_the_loop_sets():
    while not own_job.loaded:
        time.sleep(0.05)
        own_job.loaded = own_job.loaded


def event_two_variables():
    while not (job.loaded or job.failed):
        time.sleep(0.05)


results, wanted_key, arrived = {1: "one"}, 7, 0
pending = [Job()]


def event_global():
    while arrived < 3:
        time.sleep(0.05)


def event_contents():
    while len(results) < 3:
        time.sleep(0.05)


def event_missing_key():
    while wanted_key not in results:
        time.sleep(0.05)


def event_local_contents():
    found = []
    job.found = found
    while True:
        if found:
            return
        time.sleep(0.05)


def event_contents_until_none_is_left():
    while job.connections and not job.stopping:
        time.sleep(0.05)


def rest_contents_that_the_loop_changes():
    while pending:
        for each in list(pending):
            if each.loaded:
                pending.remove(each)
        time.sleep(0.05)


def rest_until_stopped_or_closed():
    while not job.stopping and not job.stopped:
        time.sleep(0.05)


def thread_further():
    flusher.flush()


def thread_alive():
    other = threads["event_set"]
    while other.is_alive():
        time.sleep(0.05)


def thread_joined():
    other = threads["event_set"]
    while other.is_alive():
        other.join(0.1)


def process_poll():
    while child.poll() is None:
        time.sleep(0.05)


def process_wait():
    while True:
        try:
            child.wait(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            print("still runs", file=sys.stderr)


# ---------------------------------------------------------------- no waits, or limited ones


def report():
    with open(os.devnull, "w") as out:
        out.write("beat")


def rest_heartbeat():
    while not stop.wait(0.1):
        report()


def rest_sleeping():
    while True:
        time.sleep(0.05)


def rest_schedule():
    due = {"report": 0.0}
    while not stop.is_set():
        for name in list(due):
            if due[name] < time.monotonic():
                report()
                due[name] = time.monotonic() + 0.1
        time.sleep(0.05)


def limit_attempts():
    for _attempt in range(100000):
        if future.done():
            break
        time.sleep(0.05)


def limit_clock():
    until = time.monotonic() + 1000
    while not future.done():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.05)


# ---------------------------------------------------------------- tasks


async def main():
    answer = asyncio.get_running_loop().create_future()
    flag, jobs = asyncio.Event(), asyncio.Queue()

    async def sleeper():
        await answer

    slept = asyncio.ensure_future(sleeper())

    async def task_done():
        while not slept.done():
            await asyncio.sleep(0.05)

    async def future_task():
        while not answer.done():
            await asyncio.sleep(0.05)

    async def event_task():
        while not flag.is_set():
            await asyncio.sleep(0.05)

    async def queue_task():
        while True:
            try:
                item = await asyncio.wait_for(jobs.get(), 0.1)
            except asyncio.TimeoutError:
                continue
            print(item)

    async def future_of_thread():
        while not future.done():
            await asyncio.sleep(0.05)

    async def process_task():
        while child.poll() is None:
            await asyncio.sleep(0.05)

    async def rest_task():
        while not flag.is_set():
            report()
            await asyncio.sleep(0.05)

    several = (task_done, future_task, event_task, queue_task, future_of_thread, process_task, rest_task)
    running = [asyncio.ensure_future(one()) for one in several]
    await asyncio.sleep(0.3)
    print("ready", flush=True)
    await asyncio.gather(*running)


threads = {}
for name, function in list(globals().items()):
    kind = name.partition("_")[0]
    kinds = ("future", "event", "queue", "lock", "thread", "process", "rest", "limit")
    if callable(function) and "_" in name and kind in kinds:
        threads[name] = threading.Thread(target=function, name=name, daemon=True)
for name in ("event_set", *(one for one in threads if one != "event_set")):
    threads[name].start()
asyncio.run(main())
