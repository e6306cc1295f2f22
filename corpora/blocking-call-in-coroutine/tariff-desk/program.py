"""The tariff desk: clients read and change prices over a line protocol."""
import asyncio
import os
import tempfile

from store import Archiver, Store


class Desk:
    def __init__(self, store):
        self.store = store
        self.commands = {"price": self.price, "change": self.change}

    async def price(self, zone):
        return str(self.store.price(zone))

    async def change(self, zone, cents):
        self.store.change(zone, int(cents))  # CULPRIT
        return "ok"

    async def dispatch(self, line):
        name, *words = line.split()
        return await self.commands[name](*words)


class Front:
    def __init__(self, desk):
        self.desk = desk

    async def serve(self, reader, writer):
        while True:
            line = await reader.readline()
            if not line:
                break
            answer = await self.desk.dispatch(line.decode())
            writer.write(answer.encode() + b"\n")
            await writer.drain()
        writer.close()


async def client(port, lines):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for line in lines:
        writer.write(line.encode() + b"\n")
        await writer.drain()
        print(line, "->", (await reader.readline()).decode().strip(), flush=True)


async def main():
    folder = tempfile.mkdtemp()
    store = Store(os.path.join(folder, "tariffs.db"))
    store.create()
    archiver = Archiver(store.path)
    archiver.start()
    archiver.begun.wait()
    server = await asyncio.start_server(Front(Desk(store)).serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print("ready", flush=True)
    readers = [client(port, ["price Z%04d" % n for n in range(50)]) for _ in range(3)]
    await asyncio.gather(client(port, ["price Z0001", "change Z0001 150"]), *readers)


if __name__ == "__main__":
    asyncio.run(main())
