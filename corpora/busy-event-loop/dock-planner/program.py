"""Plans the docks of a freight yard: trucks report when they arrive, the planner assigns them as docks come free."""
import asyncio
import collections


class Yard:
    def __init__(self, docks):
        self.arrived = collections.deque()
        self.free = list(range(docks))
        self.assigned = {}

    async def truck(self, number):
        await asyncio.sleep(20 + 5 * number)
        self.arrived.append("truck-%d" % number)

    async def assign(self):
        while True:
            while not self.arrived:  # CULPRIT
                await asyncio.sleep(0)  # CULPRIT
            truck = self.arrived.popleft()
            dock = self.free.pop()
            self.assigned[truck] = dock

    async def release(self):
        while True:
            await asyncio.sleep(30)
            self.free.extend(self.assigned.values())
            self.assigned.clear()


async def main():
    yard = Yard(12)
    trucks = [asyncio.ensure_future(yard.truck(number)) for number in range(120)]
    print("ready", flush=True)
    await asyncio.gather(yard.assign(), yard.release(), *trucks)


if __name__ == "__main__":
    asyncio.run(main())
