"""A command-line client of an RPC service, over one asyncio connection."""
import asyncio
import json
import socket
import sys


class Connection:
    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.number = 0

    @classmethod
    async def open(cls, address):
        return cls(*await asyncio.open_connection(*address))

    async def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        self.writer.write(json.dumps(request).encode() + b"\n")
        await self.writer.drain()
        answer = json.loads(await self.reader.readline())  # CULPRIT
        return answer["result"]


class Inventory:
    def __init__(self, connection):
        self.connection = connection

    async def items(self, shelf):
        return await self.connection.call("items", shelf=shelf)  # CULPRIT


async def run(address):
    inventory = Inventory(await Connection.open(address))
    print("ready", flush=True)
    for shelf in "ab":
        print(shelf, await inventory.items(shelf))


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = stand_in.getsockname()
    asyncio.run(run(address))


if __name__ == "__main__":
    main()
