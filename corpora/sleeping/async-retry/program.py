"""Uploads results; waits longer after every failure."""
import asyncio


class Uploader:
    def __init__(self, first_delay=0.01, factor=60):
        self.delay = first_delay
        self.factor = factor

    async def send(self, name):
        raise ConnectionError(name)

    async def upload(self, name):
        while True:
            try:
                return await self.send(name)
            except ConnectionError:
                await asyncio.sleep(self.delay)  # CULPRIT
                self.delay *= self.factor


async def main():
    print("ready", flush=True)
    await asyncio.gather(*(Uploader().upload(name) for name in ("a.csv", "b.csv")))


if __name__ == "__main__":
    asyncio.run(main())
