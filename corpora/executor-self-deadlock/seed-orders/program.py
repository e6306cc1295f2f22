"""A seed shop: orders are priced in a pool of threads, their acknowledgements go through an event loop of its own."""
import asyncio
import concurrent.futures
import threading


class Pricing:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="pricing")

    def price(self, sort, grams):
        return len(sort) * grams // 10

    def total(self, order):
        parts = [self.pool.submit(self.price, sort, grams) for sort, grams in order]
        return sum(part.result() for part in parts)  # CULPRIT

    def totals(self, orders):
        return [self.pool.submit(self.total, order) for order in orders]


class Mailbox(threading.Thread):
    """Sends acknowledgements; a receipt comes back for each, by number."""

    def __init__(self):
        super().__init__(name="mailbox", daemon=True)
        self.loop = asyncio.new_event_loop()
        self.receipts = {}

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def send(self, number):
        receipt = self.loop.create_future()
        self.receipts["%04d" % number] = receipt
        self.loop.call_later(0.01, self.received, number)
        return await receipt  # CULPRIT

    def received(self, number):
        receipt = self.receipts.pop(number, None)  # CULPRIT
        if receipt is not None:
            receipt.set_result("ok")

    def acknowledge(self, number):
        return asyncio.run_coroutine_threadsafe(self.send(number), self.loop)


def main():
    pricing, mailbox = Pricing(2), Mailbox()
    mailbox.start()
    acknowledged = [mailbox.acknowledge(number) for number in (17, 18)]
    totals = pricing.totals([[("beans", 500), ("kale", 20)], [("leek", 30)], [("peas", 250)]])
    print("ready", flush=True)
    concurrent.futures.wait(acknowledged + totals)
    print([total.result() for total in totals])


if __name__ == "__main__":
    main()
