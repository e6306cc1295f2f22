"""Snippets of locks and threads."""

from __future__ import annotations

from typing import Dict

from .snippet import Snippet, of

SNIPPETS: Dict[str, Snippet] = {
    "lock-order-deadlock": of(
        """
def transfer(source, target, amount):
    with source.lock:
        with target.lock:  # another thread transfers the other way round
            source.balance -= amount
            target.balance += amount
""",
        """
def transfer(source, target, amount):
    first, second = sorted((source, target), key=lambda account: account.number)
    with first.lock, second.lock:  # one order for everybody
        source.balance -= amount
        target.balance += amount
""",
    ),
    "self-deadlock": of(
        """
def add(self, item):
    with self.lock:
        if self.full():
            self.flush()  # which takes self.lock again
        self.items.append(item)
""",
        """
def add(self, item):
    with self.lock:
        if self.full():
            self._flush_locked()  # for those who hold the lock; flush() takes it and calls this
        self.items.append(item)
""",
    ),
    "finalizer-deadlock": of(
        """
class Connection:
    def __del__(self):  # runs anywhere, also within a `with pool.lock`
        with self.pool.lock:
            self.pool.free.append(self.handle)
""",
        """
class Connection:
    def __del__(self):
        self.pool.returned.append(self.handle)  # a deque: appending takes no lock; the pool looks at it when asked


class Pool:
    def take(self):
        with self.lock:
            while self.returned:
                self.free.append(self.returned.popleft())
            return self.free.pop()
""",
    ),
    "signal-handler-deadlock": of(
        """
def on_hangup(number, frame):
    with settings_lock:  # the interrupted code may hold it
        reload_settings()


signal.signal(signal.SIGHUP, on_hangup)
""",
        """
hung_up = False


def on_hangup(number, frame):
    global hung_up
    hung_up = True  # the main loop looks at it, and reloads


signal.signal(signal.SIGHUP, on_hangup)
""",
    ),
    "orphaned-lock": of(
        """
lock.acquire()
table.update(read(source))  # raises, and the lock stays taken
lock.release()
""",
        """
with lock:
    table.update(read(source))
""",
    ),
    "fork-inherited-lock": of(
        """
logging_thread.start()
with multiprocessing.get_context("fork").Pool() as pool:  # a lock that the thread holds now is never released there
    pool.map(render, pages)
""",
        """
logging_thread.start()
with multiprocessing.get_context("spawn").Pool() as pool:  # new interpreters, which inherit no locks
    pool.map(render, pages)
""",
    ),
    "fork-lost-thread": of(
        """
exporter = Exporter()  # with a thread that sends what is added
with multiprocessing.get_context("fork").Pool() as pool:
    pool.map(measure, sites)  # adds and flushes in processes that lack the thread
""",
        """
def start():
    global exporter
    exporter = Exporter()


with multiprocessing.get_context("fork").Pool(initializer=start) as pool:
    pool.map(measure, sites)
""",
    ),
    "import-deadlock": of(
        """
# plugins.py
worker = threading.Thread(target=load_all)  # which imports plugins
worker.start()
worker.join()  # while plugins is still being imported
""",
        """
# plugins.py
def start():  # called by the program, once everything is imported
    worker = threading.Thread(target=load_all)
    worker.start()
    return worker
""",
    ),
    "lock-contention": of(
        """
with self.lock:
    page = requests.get(url, timeout=10)  # everybody waits for the network
    self.pages[url] = page.text
""",
        """
page = requests.get(url, timeout=10)
with self.lock:
    self.pages[url] = page.text
""",
    ),
    "executor-self-deadlock": of(
        """
def render(page):
    parts = [pool.submit(draw, part) for part in page.parts]
    return [part.result() for part in parts]  # waits for work that is queued behind itself


for page in pages:
    pool.submit(render, page)
""",
        """
def render(page):
    parts = [drawing.submit(draw, part) for part in page.parts]  # a pool of its own for what is waited for
    return [part.result() for part in parts]


for page in pages:
    rendering.submit(render, page)
""",
    ),
    "pool-exhausted": of(
        """
def copy(number):
    with pool.connection() as source:
        with pool.connection() as target:  # with as many threads as connections nobody gets a second one
            target.write(source.read(number))
""",
        """
def copy(number):
    with pool.connection() as connection:
        data = connection.read(number)
    with pool.connection(timeout=30) as connection:  # one at a time, and an error instead of silence
        connection.write(data)
""",
    ),
    "missed-wakeup": of(
        """
def consume():
    with condition:
        condition.wait()  # the notification may have come before
    handle(items.pop())


def produce(item):
    items.append(item)
    with condition:
        condition.notify()
""",
        """
def consume():
    with condition:
        condition.wait_for(lambda: items)  # looks before it waits
        item = items.pop()
    handle(item)


def produce(item):
    with condition:
        items.append(item)
        condition.notify()
""",
    ),
    "shutdown-join": of(
        """
def run():
    while True:
        deliver(mails.get())  # for ever; the interpreter joins this thread before it ends


threading.Thread(target=run).start()
""",
        """
def run():
    for mail in iter(mails.get, None):
        deliver(mail)


worker = threading.Thread(target=run)
worker.start()
...
mails.put(None)  # no more to come
worker.join()
""",
    ),
}
