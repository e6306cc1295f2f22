"""What the clean raw facts are taken of: threads and tasks in a lock cycle, a child that reads a pipe, sockets, a pool."""

import asyncio
import concurrent.futures
import socket
import subprocess
import sys
import threading

first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
CHILD = "import sys; sys.stdin.read()"


def crossed(mine, other):
    with mine:
        both.wait()
        with other:
            pass


def counting():
    number = 0
    while not first.acquire(timeout=0.05):
        number += sum(range(1000))


def tasks():
    async def waits(lock):
        async with lock:
            await asyncio.Event().wait()

    async def main():
        lock = asyncio.Lock()
        await asyncio.gather(*(waits(lock) for _ in range(3)), asyncio.sleep(600))

    asyncio.run(main())


listener = socket.create_server(("127.0.0.1", 0))
near, far = socket.socketpair()
child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
pool = concurrent.futures.ThreadPoolExecutor(2)
pool.submit(near.recv, 1)
jobs = ((crossed, first, second), (crossed, second, first), (counting,), (tasks,), (listener.accept,))
for function, *arguments in jobs:
    threading.Thread(target=function, args=arguments, daemon=True).start()
child.stdout.read()
