"""Prices orders; the price list is async, the tax rules are old synchronous code."""
import asyncio


class PriceList:
    def __init__(self):
        self.prices = {"lamp": 30, "chair": 55}

    async def lookup(self, article):
        await asyncio.sleep(0.01)
        return self.prices[article]


class SyncPrices:
    """The price list for code that is not async."""

    def __init__(self, prices, loop):
        self.prices = prices
        self.loop = loop

    def lookup(self, article):
        return asyncio.run_coroutine_threadsafe(self.prices.lookup(article), self.loop).result()  # CULPRIT


class TaxRules:
    def __init__(self, prices):
        self.prices = prices

    def gross(self, article):
        return self.prices.lookup(article) * 1.2


async def handle(order, rules):
    await asyncio.sleep(0.05)
    return [rules.gross(article) for article in order]  # CULPRIT


async def main():
    rules = TaxRules(SyncPrices(PriceList(), asyncio.get_running_loop()))
    print("ready", flush=True)
    print(await handle(["lamp", "chair"], rules))


if __name__ == "__main__":
    asyncio.run(main())
