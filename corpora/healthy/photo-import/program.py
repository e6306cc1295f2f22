"""Imports photos: anyio tasks hand the decoding to threads, two at a time."""
import zlib

import anyio
import anyio.to_thread

PHOTO = zlib.compress(bytes(range(256)) * 8000, 1)


def decode(number):
    pixels = zlib.decompress(PHOTO)
    for _ in range(6):
        pixels = zlib.decompress(zlib.compress(pixels, 6))
    return len(pixels) + number


class Import:
    def __init__(self, at_once):
        self.limiter = anyio.CapacityLimiter(at_once)
        self.sizes = {}

    async def one(self, number):
        self.sizes[number] = await anyio.to_thread.run_sync(decode, number, limiter=self.limiter)
        if number == 0:
            print("ready", flush=True)

    async def batch(self, numbers):
        async with anyio.create_task_group() as group:
            for number in numbers:
                group.start_soon(self.one, number)


async def main():
    photos = Import(at_once=2)
    for first in range(0, 100_000, 12):
        await photos.batch(range(first, first + 12))
        await anyio.sleep(0.1)


if __name__ == "__main__":
    anyio.run(main)
