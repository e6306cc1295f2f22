"""Evaluates the load curves of two hundred electricity meters and tells every second how far it is."""
import asyncio
import time


class Meter:
    def __init__(self, number, days):
        self.number = number
        self.days = days
        self.totals = []

    def curve(self, day):
        return [(self.number * 31 + day * 17 + quarter * quarter) % 977 for quarter in range(96)]

    def evaluate(self, day):
        total = 0
        for repeat in range(650):
            total += max(self.curve(day + repeat)) - repeat
        self.totals.append(total)

    async def run(self):
        for day in range(self.days):
            self.evaluate(day)  # CULPRIT
            await asyncio.sleep(0)  # CULPRIT


async def heartbeat(meters):
    while True:
        due = time.monotonic() + 1
        await asyncio.sleep(1)
        done = sum(len(meter.totals) for meter in meters)
        print("%d days done, beat %.3f s late" % (done, time.monotonic() - due), flush=True)


async def main():
    meters = [Meter(number, 730) for number in range(200)]
    beat = asyncio.ensure_future(heartbeat(meters))
    print("ready", flush=True)
    await asyncio.gather(*[meter.run() for meter in meters])  # CULPRIT
    beat.cancel()


if __name__ == "__main__":
    asyncio.run(main())
