"""Watches three thousand fares, each checked every few minutes, and answers on a local port."""
import asyncio
import random


class Watcher:
    def __init__(self, number):
        self.number = number
        self.checks = 0

    async def run(self):
        await asyncio.sleep(random.uniform(0, 180))
        while True:
            self.checks += 1
            await asyncio.sleep(180)


class Office:
    def __init__(self, count):
        self.watchers = [Watcher(number) for number in range(count)]

    async def answer(self, reader, writer):
        await reader.readline()
        writer.write(b"%d\n" % sum(watcher.checks for watcher in self.watchers))
        await writer.drain()
        writer.close()


async def main():
    office = Office(3000)
    server = await asyncio.start_server(office.answer, "127.0.0.1", 0)
    tasks = [asyncio.ensure_future(watcher.run()) for watcher in office.watchers]
    await asyncio.sleep(0)
    print("ready", flush=True)
    async with server:
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main())
