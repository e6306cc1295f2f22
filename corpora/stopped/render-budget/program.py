"""Renders map tiles in a child process and lets it rest while the machine has less memory to spare than it likes."""
import asyncio
import ctypes
import multiprocessing
import signal

import psutil


def render(tiles, results):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    for tile in range(tiles):
        results.send((tile, sum(n * n % 251 for n in range(20000))))
    results.close()


class Governor:
    """Suspends the process while too little memory is free; `spare` is a share of all."""

    def __init__(self, pid, spare):
        self.process = psutil.Process(pid)
        self.spare = spare
        self.resting = asyncio.Event()

    def short(self):
        memory = psutil.virtual_memory()
        return memory.available < memory.total * self.spare  # CULPRIT

    async def govern(self, every):
        while self.process.is_running():
            if self.short():
                self.process.suspend()  # CULPRIT
                self.resting.set()
            else:
                self.process.resume()
            await asyncio.sleep(every)


class Renderer:
    def __init__(self, tiles):
        context = multiprocessing.get_context("fork")
        self.inbox, outbox = context.Pipe(duplex=False)
        self.worker = context.Process(target=render, args=(tiles, outbox), name="render", daemon=True)
        self.worker.start()
        outbox.close()
        self.first = self.inbox.recv()

    async def tiles(self):
        loop = asyncio.get_running_loop()
        while True:
            try:
                yield await loop.run_in_executor(None, self.inbox.recv)
            except EOFError:
                return


async def main():
    renderer = Renderer(tiles=100000)
    governor = Governor(renderer.worker.pid, spare=1.5)  # CULPRIT
    watch = asyncio.ensure_future(governor.govern(every=0.5))
    await governor.resting.wait()
    print("ready", flush=True)
    done = 1
    async for _ in renderer.tiles():
        done += 1
    watch.cancel()
    print(done, "tiles")


if __name__ == "__main__":
    asyncio.run(main())
