"""A multiplexer of sessions over one transport, with flow control."""
import asyncio
import collections


class Window:
    """How many bytes the peer is ready to take."""

    def __init__(self, size):
        self.free = size

    def take(self, count):
        self.free -= count

    def give(self, count):
        self.free += count


class Transport:
    def __init__(self):
        self.sent = collections.deque(maxlen=64)
        self.window = Window(4096)

    def writable(self, count):
        return self.window.free >= count

    async def write(self, frame):
        while not self.writable(len(frame)):  # CULPRIT
            await asyncio.sleep(0)  # CULPRIT
        self.window.take(len(frame))
        self.sent.append(frame)


class Session:
    def __init__(self, number, transport):
        self.number = number
        self.transport = transport
        self.inbox = asyncio.Queue()

    async def pump(self):
        while True:
            frame = await self.inbox.get()
            await self.transport.write(frame)
            self.inbox.task_done()

    async def send(self, payload):
        await self.inbox.put(b"%04d" % self.number + payload)


class Mux:
    def __init__(self, count):
        self.transport = Transport()
        self.sessions = [Session(n, self.transport) for n in range(count)]
        self.pumps = [asyncio.ensure_future(session.pump()) for session in self.sessions]

    async def broadcast(self, payload):
        for session in self.sessions:
            await session.send(payload)
        await asyncio.gather(*(session.inbox.join() for session in self.sessions))


async def housekeeping():
    while True:
        await asyncio.sleep(30)


async def main():
    mux = Mux(4)
    keeper = asyncio.ensure_future(housekeeping())
    await mux.broadcast(b"x" * 200)
    print("ready", flush=True)
    await mux.broadcast(b"y" * 1200)
    keeper.cancel()


if __name__ == "__main__":
    asyncio.run(main())
