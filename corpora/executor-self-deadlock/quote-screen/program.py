"""Quotes for a shop's web pages: the page is synchronous code, the prices behind it are looked up asynchronously."""
import asyncio

from asgiref.sync import async_to_sync, sync_to_async


class PriceTable:
    """The part that talks to the database; synchronous, and bound to one thread."""

    def __init__(self, prices):
        self.prices = prices

    def lookup(self, article):
        return self.prices[article]


class Quotes:
    def __init__(self, table):
        self.lookup = sync_to_async(table.lookup)  # CULPRIT

    async def line(self, article, count):
        price = await self.lookup(article)  # CULPRIT
        return article, count, count * price

    async def lines(self, basket):
        jobs = [self.line(article, count) for article, count in basket.items()]
        return await asyncio.gather(*jobs)  # CULPRIT


class QuotePage:
    def __init__(self, quotes):
        self.quotes = quotes

    def render(self, basket):
        lines = async_to_sync(self.quotes.lines)(basket)  # CULPRIT
        return "\n".join("%-10s %3d %6d" % line for line in lines)


class Application:
    def __init__(self, page):
        self.render = sync_to_async(page.render)

    async def handle(self, baskets):
        for basket in baskets:
            print(await self.render(basket), flush=True)


def main():
    page = QuotePage(Quotes(PriceTable({"bolt": 12, "nut": 7, "washer": 3})))
    print("ready", flush=True)
    asyncio.run(Application(page).handle([{"bolt": 10, "nut": 10}, {"washer": 40}]))


if __name__ == "__main__":
    main()
