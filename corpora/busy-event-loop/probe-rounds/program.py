"""Probes the stations of a weather network in rounds, and says good-bye to each."""
import anyio


class Station:
    """A station answers over a slow radio link; a good-bye is confirmed once a day."""

    def __init__(self, name):
        self.name = name
        self.confirmed = anyio.Event()
        self.values = []

    async def probe(self):
        while True:
            self.values.append(len(self.values))
            await anyio.sleep(0.1)

    async def farewell(self):
        with anyio.CancelScope(shield=True):  # CULPRIT
            await self.confirmed.wait()


class Round:
    def __init__(self, stations, seconds):
        self.stations = stations
        self.seconds = seconds

    async def visit(self, station):
        try:
            await station.probe()
        finally:
            await station.farewell()  # CULPRIT

    async def visit_all(self):
        async with anyio.create_task_group() as group:
            for station in self.stations:
                group.start_soon(self.visit, station)

    async def run(self):
        with anyio.move_on_after(self.seconds):
            async with anyio.create_task_group() as group:
                group.start_soon(self.visit_all)
        print({station.name: len(station.values) for station in self.stations})


async def main():
    print("ready", flush=True)
    await Round([Station("ridge"), Station("bay")], seconds=0.5).run()


if __name__ == "__main__":
    anyio.run(main)
