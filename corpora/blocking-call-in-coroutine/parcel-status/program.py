"""Follows parcels: asks the carrier for the state of each and answers enquiries on a local port."""
import asyncio
import json
import time


class Carrier:
    """Stands in for the carrier's client; it lets a client ask three times a minute."""

    def __init__(self):
        self.calls = 0

    def status(self, number):
        self.calls += 1
        if self.calls % 4 == 0:
            return {"code": 429, "retry_after": 240}
        return {"code": 200, "state": "in transit", "number": number}


class Tracker:
    def __init__(self, carrier):
        self.carrier = carrier
        self.states = {}

    async def refresh(self, numbers):
        while True:
            for number in numbers:
                answer = self.carrier.status(number)
                while answer["code"] == 429:
                    print("ready", flush=True)
                    time.sleep(answer["retry_after"])  # CULPRIT
                    answer = self.carrier.status(number)
                self.states[number] = answer["state"]
            await asyncio.sleep(0.05)

    async def enquiry(self, reader, writer):
        number = (await reader.readline()).decode().strip()
        writer.write(json.dumps({number: self.states.get(number)}).encode() + b"\n")
        await writer.drain()
        writer.close()


async def report(tracker):
    while True:
        await asyncio.sleep(0.5)
        print("known parcels:", len(tracker.states), flush=True)


async def main():
    tracker = Tracker(Carrier())
    server = await asyncio.start_server(tracker.enquiry, "127.0.0.1", 0)
    asyncio.ensure_future(report(tracker))
    async with server:
        await tracker.refresh(["P-100", "P-101", "P-102"])


if __name__ == "__main__":
    asyncio.run(main())
