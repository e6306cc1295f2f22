"""Two stages of a pipeline exchange frames and credits through queues."""
import asyncio


class Stage:
    def __init__(self, name):
        self.name = name
        self.inbox = asyncio.Queue()
        self.peer = None
        self.seen = []

    def connect(self, peer):
        self.peer = peer
        peer.peer = self

    async def exchange(self, frames):
        for frame in frames:
            credit = await self.inbox.get()  # CULPRIT
            self.seen.append(credit)
            await self.peer.inbox.put((self.name, frame))  # CULPRIT
        return self.seen


class Link:
    def __init__(self):
        self.near, self.far = Stage("near"), Stage("far")
        self.near.connect(self.far)

    async def run(self, count):
        tasks = [asyncio.ensure_future(stage.exchange(range(count))) for stage in (self.near, self.far)]
        return [await task for task in tasks]


async def main():
    link = Link()
    print("ready", flush=True)
    near, far = await link.run(20)
    print("exchanged", len(near), len(far))


if __name__ == "__main__":
    asyncio.run(main())
