"""Inspects weld seams: three cameras deliver pictures, one inspector looks at them at its own pace."""
import asyncio
import zlib


class Camera:
    def __init__(self, name, pictures):
        self.name = name
        self.pictures = pictures
        self.taken = 0

    async def run(self):
        while True:
            self.taken += 1
            await self.pictures.put((self.name, self.taken, bytes(512)))


class Inspector:
    def __init__(self, pictures):
        self.pictures = pictures
        self.seen = 0
        self.waiting = 0

    async def judge(self, picture):
        await asyncio.sleep(0.03)
        return zlib.crc32(picture) % 100 > 2

    async def run(self):
        while True:
            name, number, picture = await self.pictures.get()
            await self.judge(picture)
            self.seen += 1


async def main():
    pictures = asyncio.Queue(maxsize=16)
    inspector = Inspector(pictures)
    cameras = [Camera("cam-%d" % n, pictures) for n in range(3)]
    print("ready", flush=True)
    await asyncio.gather(inspector.run(), *[camera.run() for camera in cameras])


if __name__ == "__main__":
    asyncio.run(main())
