"""Clients poll for the next message of a channel; a thread of a driver delivers one every 1.2 seconds."""
import asyncio
import threading
import time


class Channel:
    def __init__(self, name):
        self.name = name
        self.waiting = []
        self.count = 0

    def poll(self):
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return future

    def deliver(self):
        self.count += 1
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            future.set_result(self.count)


class Driver(threading.Thread):
    def __init__(self, loop, channels):
        super().__init__(name="driver", daemon=True)
        self.loop = loop
        self.channels = channels

    def run(self):
        while True:
            time.sleep(1.2)
            for channel in self.channels:
                self.loop.call_soon_threadsafe(channel.deliver)


async def client(channels):
    while True:
        print(*await asyncio.gather(*(channel.poll() for channel in channels)), flush=True)


async def main():
    channels = [Channel("news"), Channel("weather")]
    Driver(asyncio.get_running_loop(), channels).start()
    print("ready", flush=True)
    await asyncio.gather(client(channels), client(channels))


if __name__ == "__main__":
    asyncio.run(main())
