"""Indexes documents in an asyncio service that stays responsive while it does."""
import asyncio
import re
import time


class Indexer:
    def __init__(self):
        self.postings = {}
        self.done = 0

    def index(self, number, text):
        for word in re.findall(r"\w+", text):
            self.postings.setdefault(word, set()).add(number)

    async def run(self, documents):
        for number, text in enumerate(documents):
            for _ in range(40):
                self.index(number % 1000, text)
            self.done += 1
            await asyncio.sleep(0)


def documents():
    for number in range(10_000_000):
        yield "the quick brown fox number %d jumps over the lazy dog %d " % (number, number * 7) * 5


async def heartbeat(indexer):
    while True:
        before, start = indexer.done, time.monotonic()
        await asyncio.sleep(1)
        late = time.monotonic() - start - 1
        print("indexed", indexer.done - before, "late by %.3f" % late, flush=True)


async def main():
    indexer = Indexer()
    beat = asyncio.ensure_future(heartbeat(indexer))
    print("ready", flush=True)
    await indexer.run(documents())
    beat.cancel()


if __name__ == "__main__":
    asyncio.run(main())
