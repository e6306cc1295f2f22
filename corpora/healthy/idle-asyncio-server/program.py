"""An asyncio service that counts words, with a housekeeping task."""
import asyncio


class WordCount:
    def __init__(self):
        self.cache = {}

    async def serve(self, reader, writer):
        while True:
            line = await reader.readline()
            if not line:
                break
            writer.write(b"%d\n" % len(line.split()))
            await writer.drain()
        writer.close()

    async def housekeeping(self):
        while True:
            await asyncio.sleep(60)
            self.cache.clear()


async def main():
    service = WordCount()
    keeper = asyncio.ensure_future(service.housekeeping())
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()
    await keeper


if __name__ == "__main__":
    asyncio.run(main())
