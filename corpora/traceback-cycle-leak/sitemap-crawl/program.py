"""Reads sitemaps from a mirror on this machine, several at a time, and goes over the failed ones again later."""
import asyncio
import xml.etree.ElementTree as ElementTree

DOCUMENT = 1280 * 1024


async def mirror(reader, writer):
    """Stands in for the mirror: whole documents, some of them cut off."""
    while True:
        line = await reader.readline()
        if not line:
            break
        number = int(line)
        text = b"<urlset>" + b"<url/>" * (DOCUMENT // 6)
        if number % 2:
            text += b"</urlset>"
        writer.write(b"%d\n" % len(text) + text)
        await writer.drain()
    writer.close()


class Crawl:
    def __init__(self, address):
        self.address = address
        self.pages = {}
        self.outcomes = {}

    async def read(self, number):
        reader, writer = await asyncio.open_connection(*self.address, limit=2 ** 22)
        try:
            writer.write(b"%d\n" % number)
            size = int(await reader.readline())
            document = await reader.readexactly(size)
        finally:
            writer.close()
        return self.count(number, document)

    def count(self, number, document):
        text = document.decode()
        self.pages[number] = text.count("<url/>")
        if not text.endswith("</urlset>"):
            ElementTree.fromstring(text[-2000:])
        return self.pages[number]

    async def round(self, numbers):
        results = await asyncio.gather(*(self.read(number) for number in numbers), return_exceptions=True)
        self.outcomes.update(zip(numbers, results))  # CULPRIT

    async def follow(self, first):
        while True:
            await asyncio.sleep(1.5)
            await self.round([first])
            first += 1


async def main():
    server = await asyncio.start_server(mirror, "127.0.0.1", 0)
    crawl = Crawl(server.sockets[0].getsockname())
    for first in range(0, 40, 4):
        await crawl.round(range(first, first + 4))
    print("ready", flush=True)
    await crawl.follow(40)


if __name__ == "__main__":
    asyncio.run(main())
