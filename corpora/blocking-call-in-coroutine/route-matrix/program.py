"""Plans the rounds of a fleet of vans; drivers' tablets stay connected and report where they are."""
import asyncio
import random


class Round:
    """A closed tour through the stops of one van."""

    def __init__(self, stops):
        self.stops = stops

    def length(self):
        pairs = zip(self.stops, self.stops[1:] + self.stops[:1])
        return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairs)


class Planner:
    def __init__(self, rounds):
        self.rounds = rounds

    def reversed_between(self, tour, first, last):
        stops = tour.stops
        return Round(stops[:first] + stops[first:last][::-1] + stops[last:])

    def improve(self, tour):
        best = tour
        for first in range(len(tour.stops) - 1):
            for last in range(first + 2, len(tour.stops)):
                other = self.reversed_between(best, first, last)
                if other.length() < best.length():
                    best = other
        return best

    def plan(self):
        return [self.improve(tour) for tour in self.rounds]  # CULPRIT


class Office:
    def __init__(self, planner):
        self.planner = planner
        self.positions = {}
        self.wanted = asyncio.Event()

    async def tablet(self, name):
        while True:
            await asyncio.sleep(0.2)
            self.positions[name] = random.random()
            self.wanted.set()

    async def planning(self):
        await self.wanted.wait()
        print("ready", flush=True)
        rounds = self.planner.plan()  # CULPRIT
        print("planned", sum(tour.length() for tour in rounds))

    async def work(self):
        tablets = [asyncio.ensure_future(self.tablet("van-%d" % n)) for n in range(6)]
        await self.planning()
        for tablet in tablets:
            tablet.cancel()


async def main():
    random.seed(7)
    rounds = [Round([(random.random(), random.random()) for _ in range(400)]) for _ in range(40)]
    await Office(Planner(rounds)).work()


if __name__ == "__main__":
    asyncio.run(main())
