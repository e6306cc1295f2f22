"""Keeps a session with a tax office for thirty declarations that are sent side by side."""
import asyncio


class Office:
    """The line to the office: replies are matched to requests by number."""

    def __init__(self, loop):
        self.loop = loop
        self.number = 0

    def renew(self):
        self.number += 1
        return self.loop.create_future()  # CULPRIT


class Session:
    def __init__(self, office):
        self.office = office
        self.lock = asyncio.Lock()
        self.token = None

    async def current(self):
        async with self.lock:
            if self.token is None:
                self.token = await self.office.renew()  # CULPRIT
            return self.token


async def declare(number, session):
    token = await session.current()
    return "%s/%d" % (token, number)


async def main():
    session = Session(Office(asyncio.get_running_loop()))
    tasks = [asyncio.ensure_future(declare(number, session)) for number in range(30)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    print(len(await asyncio.gather(*tasks)))


if __name__ == "__main__":
    asyncio.run(main())
