"""Keeps two encoders running: starts each anew when it has done its piece."""
import asyncio
import sys

PIECE = """
import sys, time, zlib
for part in range(6):
    zlib.compress(bytes(300000), 6)
    print(part, flush=True)
    time.sleep(0.1)
"""


class Encoder:
    def __init__(self, name):
        self.name = name
        self.pieces = 0
        self.parts = 0

    async def encode(self):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", PIECE, stdout=asyncio.subprocess.PIPE)
        async for _ in process.stdout:
            self.parts += 1
            if self.parts == 1 and self.name == "video":
                print("ready", flush=True)
        await process.wait()
        self.pieces += 1

    async def keep(self):
        while True:
            await self.encode()


async def main():
    encoders = [Encoder("video"), Encoder("audio")]
    await asyncio.gather(*(encoder.keep() for encoder in encoders))


if __name__ == "__main__":
    asyncio.run(main())
