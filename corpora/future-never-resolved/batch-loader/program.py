"""Loads users in batches: requests of one turn of the loop become one query."""
import asyncio
import logging

USERS = {1: "ada", 2: "bob", 3: "eve"}


class BatchLoader:
    def __init__(self, query):
        self.query = query
        self.queue = []

    def load(self, key):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self.queue:
            loop.call_soon(self.dispatch)
        self.queue.append((key, future))
        return future

    def dispatch(self):
        batch, self.queue = self.queue, []
        rows = self.query([key for key, _ in batch])  # CULPRIT
        for (_, future), row in zip(batch, rows):
            future.set_result(row)


def query(keys):
    return [USERS[key] for key in keys]


class Page:
    def __init__(self, loader):
        self.loader = loader

    async def author(self, key):
        return await self.loader.load(key)  # CULPRIT

    async def render(self, keys):
        return ", ".join(await asyncio.gather(*map(self.author, keys)))


async def main():
    page = Page(BatchLoader(query))
    print(await page.render([1, 2]))
    print("ready", flush=True)
    print(await page.render([3, 4]))


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(main())
