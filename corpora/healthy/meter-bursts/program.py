"""Receives the readings of a district's meters, which come all at once every second, and stores them."""
import asyncio
import random


class District:
    def __init__(self, meters):
        self.readings = asyncio.Queue()
        self.meters = meters

    async def receive(self):
        while True:
            for meter in range(self.meters):
                self.readings.put_nowait((meter, random.random()))
            await asyncio.sleep(1)


class Store:
    def __init__(self):
        self.latest = {}
        self.stored = 0

    async def insert(self, rows):
        await asyncio.sleep(0.05)
        self.latest.update(rows)
        self.stored += len(rows)

    async def run(self, readings):
        while True:
            rows = [await readings.get()]
            while len(rows) < 50 and not readings.empty():
                rows.append(readings.get_nowait())
            await self.insert(rows)


async def main():
    district, store = District(600), Store()
    print("ready", flush=True)
    await asyncio.gather(district.receive(), store.run(district.readings))


if __name__ == "__main__":
    asyncio.run(main())
