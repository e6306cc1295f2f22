"""Reads scanned folios in batches as they come from the scanner; a lamp on the panel shows that it lives."""
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
    def __init__(self, at_once):
        self.limit = asyncio.Semaphore(at_once)
        self.raster = bytes((n * n) % 251 for n in range(60000))
        self.read = 0

    def recognise(self, folio):
        seed = folio
        for _ in range(60):
            seed = zlib.crc32(zlib.compress(self.raster[folio % 100 :], 6), seed)
        return seed

    async def folio(self, number):
        async with self.limit:
            self.recognise(number)  # CULPRIT
            self.read += 1

    async def batch(self, first, count):
        tasks = [asyncio.ensure_future(self.folio(first + n)) for n in range(count)]  # CULPRIT
        await asyncio.wait(tasks)


async def main():
    panel = Panel()
    reader = Reader(at_once=4)
    lamp = asyncio.ensure_future(panel.lamp())
    print("ready", flush=True)
    for batch in range(500):
        await reader.batch(batch * 200, 200)
    lamp.cancel()


if __name__ == "__main__":
    asyncio.run(main())
