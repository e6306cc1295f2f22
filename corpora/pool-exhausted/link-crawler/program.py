"""Crawls the pages of a site, at most three requests at a time."""
import asyncio

SITE = {
    "/": ["/news", "/shop", "/team"],
    "/news": ["/news/1", "/news/2"],
    "/shop": ["/shop/lamp"],
    "/team": ["/team/ada"],
}


class Crawler:
    def __init__(self, limit):
        self.slots = asyncio.Semaphore(limit)
        self.seen = []

    async def fetch(self, path):
        await asyncio.sleep(0.01)
        self.seen.append(path)
        return SITE.get(path, [])

    async def crawl(self, path):
        async with self.slots:  # CULPRIT
            links = await self.fetch(path)
            await asyncio.gather(*(self.crawl(link) for link in links))  # CULPRIT


async def main():
    crawler = Crawler(limit=3)
    print("ready", flush=True)
    await crawler.crawl("/")
    print(len(crawler.seen), "pages")


if __name__ == "__main__":
    asyncio.run(main())
