"""A feed reader with a scheduler of its own inside the event loop."""
import asyncio
import heapq
import time


class Agenda:
    def __init__(self):
        self.entries = []

    def add(self, due, name):
        heapq.heappush(self.entries, (due, name))

    def take_due(self, now):
        due = []
        while self.entries and self.entries[0][0] <= now:
            due.append(heapq.heappop(self.entries))
        return due


class Reader:
    def __init__(self):
        self.agenda = Agenda()
        self.fetched = []

    async def fetch(self, name):
        await asyncio.sleep(0.01)
        self.fetched.append(name)

    async def run(self, names):
        start = time.monotonic()
        for number, name in enumerate(names):
            self.agenda.add(start + number * 900, name)
        while self.agenda.entries:  # CULPRIT
            for _, name in self.agenda.take_due(time.monotonic()):
                await self.fetch(name)


async def heartbeat():
    while True:
        await asyncio.sleep(1)


async def main():
    beat = asyncio.ensure_future(heartbeat())
    print("ready", flush=True)
    await Reader().run(["news", "weather", "sport"])
    beat.cancel()


if __name__ == "__main__":
    asyncio.run(main())
