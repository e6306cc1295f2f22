"""Counts ballots: scanned sheets are queued as they come, and a clerk enters each into the register and the journal."""
import asyncio
import hashlib


class Register:
    def __init__(self):
        self.votes = {}

    async def enter(self, choice):
        await asyncio.sleep(0)
        self.votes[choice] = self.votes.get(choice, 0) + 1


class Journal:
    def __init__(self):
        self.last = b""

    async def append(self, number):
        await asyncio.sleep(0)
        self.last = hashlib.sha256(self.last + b"%d" % number).digest()


class Station:
    def __init__(self, register, journal):
        self.sheets = asyncio.Queue()  # CULPRIT
        self.register = register
        self.journal = journal

    def scan(self, number):
        mark = b"%d" % number
        for _ in range(200):
            mark = hashlib.sha256(mark).digest()
        return number, mark[0] % 5

    async def scanner(self, count):
        for number in range(count):
            await self.sheets.put(self.scan(number))  # CULPRIT
            await asyncio.sleep(0)  # CULPRIT

    async def clerk(self):
        while True:
            number, choice = await self.sheets.get()
            await self.register.enter(choice)
            await self.journal.append(number)
            self.sheets.task_done()


async def main():
    station = Station(Register(), Journal())
    clerk = asyncio.ensure_future(station.clerk())
    print("ready", flush=True)
    await station.scanner(3000000)
    await station.sheets.join()
    clerk.cancel()


if __name__ == "__main__":
    asyncio.run(main())
