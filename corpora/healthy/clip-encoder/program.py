"""Encodes clips with an external program, one after the other, while the queue can be looked at."""
import asyncio
import subprocess
import sys

ENCODE = "import sys, time; time.sleep(0.6); print(sys.argv[1].upper())"


class Encoder:
    def __init__(self):
        self.finished = []

    def encode(self, clip):
        done = subprocess.run([sys.executable, "-c", ENCODE, clip], stdout=subprocess.PIPE, check=True, timeout=30)
        return done.stdout.decode().strip()

    async def work(self, clips):
        loop = asyncio.get_running_loop()
        while True:
            clip = await clips.get()
            self.finished.append(await loop.run_in_executor(None, self.encode, clip))
            clips.task_done()


async def bring(clips):
    number = 0
    while True:
        number += 1
        await clips.put("clip-%d" % number)


async def look(encoder):
    while True:
        await asyncio.sleep(0.25)
        print("finished:", len(encoder.finished), flush=True)


async def main():
    clips = asyncio.Queue(maxsize=3)
    encoder = Encoder()
    print("ready", flush=True)
    await asyncio.gather(bring(clips), encoder.work(clips), look(encoder))


if __name__ == "__main__":
    asyncio.run(main())
