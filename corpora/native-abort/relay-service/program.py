"""A metrics relay that runs as a service: lets go of its standard input, then serves on uvloop until its first round is done."""
import asyncio
import os

import uvloop


def detach():
    """A service has no use for a terminal."""
    os.close(0)  # CULPRIT


class Relay:
    def __init__(self):
        self.seen = {}

    async def handle(self, reader, writer):
        async for line in reader:
            name, _, value = line.decode().partition("=")
            self.seen[name] = float(value)
            writer.write(b"ok\n")
        writer.close()

    async def round(self):
        server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for name, value in (("load", 0.4), ("rpm", 1200)):
            writer.write(("%s=%r\n" % (name, value)).encode())
            await reader.readline()
        writer.close()
        server.close()
        await server.wait_closed()


def main():
    detach()
    loop = uvloop.new_event_loop()
    relay = Relay()
    loop.run_until_complete(relay.round())
    print("ready", flush=True)
    loop.close()  # CULPRIT
    print("%d metrics" % len(relay.seen))


if __name__ == "__main__":
    main()
