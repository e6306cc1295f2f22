"""Books lorries into loading bays; closing the yard ends every watch, and each watch gives back its bay."""
import asyncio


class Yard:
    def __init__(self, bays):
        self.lock = asyncio.Lock()
        self.free = list(bays)
        self.watches = []

    async def watch(self, lorry):
        async with self.lock:
            bay = self.free.pop()
        try:
            await asyncio.sleep(3600)
        finally:
            async with self.lock:  # CULPRIT
                self.free.append(bay)

    def book(self, lorry):
        self.watches.append(asyncio.get_running_loop().create_task(self.watch(lorry)))

    async def close(self):
        async with self.lock:  # CULPRIT
            for watch in self.watches:
                watch.cancel()
            print("ready", flush=True)
            await asyncio.gather(*self.watches, return_exceptions=True)  # CULPRIT
            self.free.clear()


async def main():
    yard = Yard(["A", "B", "C"])
    for lorry in ("L1", "L2"):
        yard.book(lorry)
    await asyncio.sleep(0.1)
    await yard.close()


asyncio.run(main())
