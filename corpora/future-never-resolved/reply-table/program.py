"""A request/reply protocol over an in-memory transport: replies find their requests by number."""
import asyncio
import itertools


class Transport:
    def __init__(self):
        self.client = None

    def send(self, number, text):
        asyncio.get_running_loop().call_soon(self.client.received, number, text.upper())


class Client:
    def __init__(self, transport, depth):
        self.transport = transport
        self.depth = depth
        self.numbers = itertools.count(1)
        self.pending = {}
        transport.client = self

    async def ask(self, text):
        number = next(self.numbers)
        future = asyncio.get_running_loop().create_future()
        self.pending[number % self.depth] = future  # CULPRIT
        self.transport.send(number, text)
        return await future  # CULPRIT

    def received(self, number, text):
        future = self.pending.pop(number % self.depth, None)
        if future is not None:
            future.set_result(text)


async def main():
    client = Client(Transport(), depth=4)
    print(await client.ask("hello"))
    print("ready", flush=True)
    print(await asyncio.gather(*(client.ask("line %d" % line) for line in range(6))))


if __name__ == "__main__":
    asyncio.run(main())
