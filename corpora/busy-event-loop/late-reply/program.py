"""Sends a job and waits for its reply."""
import asyncio


class Job:
    def __init__(self):
        self.reply = None


async def reader(stream, job):
    line = await stream.readline()
    job.reply = line.strip()


async def main():
    stream = asyncio.StreamReader()
    job = Job()
    asyncio.ensure_future(reader(stream, job))
    print("ready", flush=True)
    while job.reply is None:  # CULPRIT
        await asyncio.sleep(0)  # CULPRIT
    print(job.reply)


asyncio.run(main())
