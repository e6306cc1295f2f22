"""Renders invoices on demand: an asyncio front, and two threads that do the typesetting."""
import asyncio
import concurrent.futures
import time


class Typesetter:
    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="typeset")

    def page(self, invoice, number):
        time.sleep(0.5)
        return "%s, page %d" % (invoice, number)

    def pages(self, invoice, count):
        return [self.page(invoice, number) for number in range(count)]

    def render(self, invoice, count):
        job = self.pool.submit(self.pages, invoice, count)
        return "\n".join(job.result())  # CULPRIT


class Front:
    def __init__(self, typesetter):
        self.typesetter = typesetter
        self.open = 0

    async def show(self, invoice, count):
        self.open += 1
        try:
            return self.typesetter.render(invoice, count)  # CULPRIT
        finally:
            self.open -= 1

    async def status(self):
        while True:
            print("open requests:", self.open, flush=True)
            await asyncio.sleep(0.5)


async def main():
    front = Front(Typesetter())
    status = asyncio.ensure_future(front.status())
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(front.show("R-1001", 900), front.show("R-1002", 2), front.show("R-1003", 1))
    status.cancel()


if __name__ == "__main__":
    asyncio.run(main())
