"""A site controller: each gateway talks to its devices in a loop of its own, in a thread of its own."""
import asyncio
import queue
import threading


class Outbox:
    """Commands from any thread, taken by the gateway's coroutine."""

    def __init__(self):
        self._items = queue.Queue()

    def post(self, item):
        self._items.put(item)

    async def next_item(self):
        while self._items.empty():  # CULPRIT
            await asyncio.sleep(0)  # CULPRIT
        return self._items.get()


class Channel:
    def __init__(self, outbox):
        self.outbox = outbox
        self.acknowledged = 0

    async def run(self):
        while True:
            command = await self.outbox.next_item()
            await self.execute(command)

    async def execute(self, command):
        done, number = command
        self.acknowledged = number
        done.set()


class Gateway(threading.Thread):
    def __init__(self, name):
        super().__init__(name=name, daemon=True)
        self.outbox = Outbox()
        self.channel = Channel(self.outbox)
        self.loop = asyncio.new_event_loop()
        self.online = threading.Event()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self.online.set)
        self.loop.run_until_complete(self.channel.run())

    def ping(self):
        answer = threading.Event()
        self.loop.call_soon_threadsafe(answer.set)
        answer.wait()


class Site:
    def __init__(self, names):
        self.gateways = [Gateway(name) for name in names]

    def start(self):
        for gateway in self.gateways:
            gateway.start()
            gateway.online.wait()

    def sweep(self, number):
        for gateway in self.gateways:
            gateway.ping()
            done = threading.Event()
            gateway.outbox.post((done, number))
            done.wait()


def main():
    site = Site("gateway-%02d" % n for n in range(40))
    print("ready", flush=True)
    site.start()
    for number in range(2000):
        site.sweep(number)


if __name__ == "__main__":
    main()
