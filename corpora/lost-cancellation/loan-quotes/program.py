"""Asks lenders for quotes over a line that repeats what gets no answer; each lender has little time."""
import asyncio
import threading
import time


class Line:
    """Hands requests to a lender and answers back."""

    def __init__(self):
        self.sent, self.answers = [], {}

    async def ask(self, number, amount):
        self.sent.append((number, amount))
        answer = self.answers[number] = asyncio.get_running_loop().create_future()
        return await answer

    def answered(self, number, rate):
        self.answers[number].set_result(rate)


class Patient:
    """Repeats requests that fail."""

    def __init__(self, line):
        self.line, self.failures = line, []

    async def ask(self, number, amount):
        while True:
            try:
                return await self.line.ask(number, amount)  # CULPRIT
            except (asyncio.CancelledError, OSError) as exc:  # CULPRIT
                self.failures.append((number, repr(exc)))


class Desk:
    def __init__(self, lenders):
        self.lines = {name: Patient(Line()) for name in lenders}
        self.rates = {}

    async def quote(self, name, number, amount):
        try:
            self.rates[name] = await asyncio.wait_for(self.lines[name].ask(number, amount), 0.3)  # CULPRIT
        except asyncio.TimeoutError:
            self.rates[name] = None

    async def best(self, amount):
        await asyncio.gather(*(self.quote(name, 1, amount) for name in self.lines))  # CULPRIT
        return min(rate for rate in self.rates.values() if rate is not None)


async def answers(desk):
    await asyncio.sleep(0.1)
    desk.lines["Aldgate"].line.answered(1, 4.2)
    print("ready", flush=True)


async def work():
    desk = Desk(["Aldgate", "Barnes"])
    asyncio.get_running_loop().create_task(answers(desk))
    print(await desk.best(12_000))  # CULPRIT


def alive(beats):
    while True:
        beats.append(time.monotonic())
        del beats[:-10]
        time.sleep(0.5)


if __name__ == "__main__":
    threading.Thread(target=alive, args=([],), name="alive", daemon=True).start()
    asyncio.run(work())
