"""What the cores are of: two threads in a proven lock cycle, and around them everything else that the reader follows.

Prints "ready" when all is in place. Runs on every interpreter of the matrix.
"""

import asyncio
import collections
import contextlib
import sys
import threading
import time

threading.stack_size(256 << 10)
first, second = threading.Lock(), threading.RLock()
both = threading.Barrier(2)
changed = threading.Condition()
never = threading.Event()
started = threading.Semaphore(0)
plenty = {f"key {n}": [n, str(n) * 3, (n, {n}), {n: b"bytes"}] for n in range(300)}


class Base:
    def __init__(self):
        self.guard = threading.Lock()
        self.queue = collections.deque(range(200))
        self.text = "käse € 𝄞"


class Slotted:
    __slots__ = ("empty", "guard")

    def __init__(self):
        self.guard = threading.Lock()


class Ledger(Base):
    inner = Slotted()

    def deposit(self):
        with first:
            both.wait()
            with second:
                pass

    def withdraw(self):
        with second:
            both.wait()
            with first:
                pass


@contextlib.contextmanager
def managed(lock):
    with lock:
        yield lock


def generators():
    def numbers():
        with managed(threading.Lock()):
            yield from (never.wait() or n for n in range(3))

    started.release()
    return list(numbers())


def conditions():
    with changed, contextlib.ExitStack() as stack:
        stack.enter_context(Base().guard)
        started.release()
        changed.wait()


def exceptions():
    try:
        try:
            raise ValueError("first", 1)
        except ValueError:
            {}["missing"]
    except KeyError as error:
        kept = error  # noqa: F841
        started.release()
        never.wait()


def recursion(depth=240, kept=None):
    if depth:
        recursion(depth - 1, [depth] * 3)
    started.release()
    never.wait()


def tasks():
    async def leaf(lock):
        async with lock:
            await asyncio.Event().wait()

    async def middle(lock):
        return await leaf(lock)

    async def agen():
        for n in range(5):
            await asyncio.sleep(0 if n < 2 else 600)
            yield n

    async def consume():
        async for _ in agen():
            pass

    async def main():
        lock = asyncio.Lock()
        children = [asyncio.ensure_future(middle(lock)) for _ in range(12)]
        children += [asyncio.ensure_future(consume()), asyncio.ensure_future(asyncio.sleep(600))]
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        await asyncio.sleep(0.05)
        asyncio.get_running_loop().call_soon(started.release)
        await asyncio.gather(*children)
        server.close()

    asyncio.run(main())


def another_interpreter():
    """One that sleeps, where this version can make one."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = __import__(name)
            ident = module.create()
            started.release()
            module.run_string(ident, "import collections, time\ntime.sleep(600)")
        except ImportError:
            continue
        return
    started.release()


ledger = Ledger()
threads = [
    threading.Thread(target=function, name=function.__name__, daemon=True)
    for function in (
        ledger.deposit,
        ledger.withdraw,
        generators,
        conditions,
        exceptions,
        recursion,
        tasks,
        another_interpreter,
    )
]
for thread in threads:
    thread.start()
for _ in range(6):
    started.acquire()


def settled(thread):
    """Asleep in the kernel: nothing in its memory moves any more."""
    with open(f"/proc/self/task/{thread.native_id}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[0] == "S"


while not first.locked() or not all(settled(thread) for thread in threads):
    time.sleep(0.01)
time.sleep(0.2)
print("ready", flush=True)
sys.stdin.read()
