"""Answers are matched to requests by number."""
import asyncio


class Matcher:
    def __init__(self):
        self.pending = {}

    async def ask(self, number):
        future = asyncio.get_running_loop().create_future()
        self.pending[number] = future
        try:
            return await future  # CULPRIT
        finally:
            self.pending.pop(number, None)

    def answer(self, number, value):
        future = self.pending.get(number)
        if future is not None:
            future.set_result(value)


async def answers(matcher):
    for number in ("1", "2", "3"):  # CULPRIT
        await asyncio.sleep(0.05)
        matcher.answer(number, "done")


async def main():
    matcher = Matcher()
    feed = asyncio.ensure_future(answers(matcher))
    print("ready", flush=True)
    print(await asyncio.gather(*(matcher.ask(number) for number in (1, 2, 3))))
    await feed


if __name__ == "__main__":
    asyncio.run(main())
