"""Reads scanned folios with four workers; a lamp on the panel shows that it lives."""
import asyncio
import time
import zlib


class Panel:
    def __init__(self):
        self.worst = 0.0

    async def lamp(self):
        while True:
            due = time.monotonic() + 0.25
            await asyncio.sleep(0.25)
            self.worst = max(self.worst, time.monotonic() - due)
            print("lamp, at worst %.3f s late" % self.worst, flush=True)


class Reader:
    def __init__(self):
        self.jobs = asyncio.Queue(maxsize=1)
        self.raster = bytes((n * n) % 251 for n in range(60000))
        self.read = 0

    def recognise(self, folio):
        seed = folio
        for _ in range(20):
            seed = zlib.crc32(zlib.compress(self.raster[folio % 100 :], 6), seed)
        return seed

    async def work(self):
        while True:
            folio = await self.jobs.get()
            self.recognise(folio)
            self.read += 1
            self.jobs.task_done()

    async def batch(self, first, count):
        for number in range(first, first + count):
            await self.jobs.put(number)
        await self.jobs.join()


async def main():
    panel = Panel()
    reader = Reader()
    lamp = asyncio.ensure_future(panel.lamp())
    workers = [asyncio.ensure_future(reader.work()) for _ in range(4)]
    print("ready", flush=True)
    for batch in range(5000):
        await reader.batch(batch * 200, 200)
    for task in [lamp, *workers]:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
