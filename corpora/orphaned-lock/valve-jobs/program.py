"""Runs the valve jobs of an irrigation plan; a job that was replaced before it began is cancelled."""
import asyncio

import anyio


class Pump:
    """Feeds one valve at a time."""

    def __init__(self):
        self.lock = anyio.Lock()
        self.litres = {}

    async def water(self, bed, litres):
        async with self.lock:  # CULPRIT
            await anyio.sleep(litres / 100)
            self.litres[bed] = self.litres.get(bed, 0) + litres


class Plan:
    def __init__(self, pump):
        self.pump = pump
        self.jobs = {}
        self.replaced = []

    def set(self, bed, litres):
        old = self.jobs.get(bed)
        if old is not None:
            old.cancel()  # CULPRIT
            self.replaced.append((bed, old))
        self.jobs[bed] = asyncio.ensure_future(self.pump.water(bed, litres))

    async def finish(self):
        await asyncio.gather(*self.jobs.values())


async def changes():
    """What the gardener types."""
    for change in [("roses", 12), ("roses", 8), ("beans", 20), ("leek", 15)]:
        yield change
        await asyncio.sleep(0)


async def main():
    plan = Plan(Pump())
    async for bed, litres in changes():
        plan.set(bed, litres)
    print("ready", flush=True)
    await plan.finish()
    print(plan.pump.litres)


if __name__ == "__main__":
    asyncio.run(main())
