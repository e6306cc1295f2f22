"""An asyncio service that runs until it is told to stop, by a client or by the service manager."""
import asyncio


class Service:
    def __init__(self):
        self.stop = None
        self.greeted = 0

    async def serve(self, reader, writer):
        line = await reader.readline()
        if line == b"stop\n":
            self.stop.set()
        else:
            self.greeted += 1
            writer.write(b"hello " + line)
            await writer.drain()
        writer.close()

    async def run(self):
        self.stop = asyncio.Event()
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        print("ready", flush=True)
        await self.stop.wait()
        server.close()
        await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(Service().run())
