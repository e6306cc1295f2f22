"""A build supervisor on asyncio: steps that are not urgent are held back while an urgent one is expected."""
import asyncio
import signal
import sys

STEP = """
import sys
for line in sys.stdin:
    total = sum(n * n for n in range(20000))
    print(total, flush=True)
"""


class Step:
    def __init__(self, name):
        self.name = name
        self.process = None
        self.rounds = 0

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", STEP, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        await self.once()

    async def once(self):
        self.process.stdin.write(b"go\n")
        await self.process.stdin.drain()
        await self.process.stdout.readline()
        self.rounds += 1

    async def work(self):
        while True:
            await self.once()


class Supervisor:
    def __init__(self, names):
        self.steps = [Step(name) for name in names]
        self.urgent = asyncio.Event()

    async def start(self):
        await asyncio.gather(*(step.start() for step in self.steps))

    async def make_room(self, step):
        while not self.urgent.is_set():
            step.process.send_signal(signal.SIGSTOP)  # CULPRIT
            try:
                await asyncio.wait_for(self.urgent.wait(), 2.85)
            except asyncio.TimeoutError:
                pass
            step.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.15)

    async def run(self):
        jobs = [step.work() for step in self.steps] + [self.make_room(step) for step in self.steps]
        await asyncio.gather(*jobs)


async def main():
    supervisor = Supervisor(["docs", "assets"])
    await supervisor.start()
    print("ready", flush=True)
    await supervisor.run()


if __name__ == "__main__":
    asyncio.run(main())
