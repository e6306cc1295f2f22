"""Follows parcels: asks the carrier's slow interface for each in a pool of threads, and answers enquiries meanwhile."""
import asyncio
import concurrent.futures
import json
import time


class Carrier:
    """Stands in for the carrier's client, which knows nothing of asyncio and needs most of a second."""

    def status(self, number):
        time.sleep(0.7)
        return {"number": number, "state": "in transit"}


class Tracker:
    def __init__(self, carrier, threads):
        self.carrier = carrier
        self.pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="carrier")
        self.states = {}
        self.asked = 0

    async def refresh(self, number):
        loop = asyncio.get_running_loop()
        while True:
            answer = await loop.run_in_executor(self.pool, self.carrier.status, number)
            self.states[number] = answer["state"]
            self.asked += 1

    async def enquiry(self, reader, writer):
        number = (await reader.readline()).decode().strip()
        writer.write(json.dumps({number: self.states.get(number)}).encode() + b"\n")
        await writer.drain()
        writer.close()


async def report(tracker):
    while True:
        await asyncio.sleep(0.5)
        print("answers so far:", tracker.asked, flush=True)


async def main():
    tracker = Tracker(Carrier(), threads=3)
    server = await asyncio.start_server(tracker.enquiry, "127.0.0.1", 0)
    print("ready", flush=True)
    async with server:
        await asyncio.gather(report(tracker), *[tracker.refresh("P-%d" % n) for n in range(3)])


if __name__ == "__main__":
    asyncio.run(main())
