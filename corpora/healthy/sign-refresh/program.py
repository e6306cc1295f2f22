"""Shows departures; the show of each platform is cancelled to make it read its timetable anew, and goes on."""
import asyncio


class Platform:
    def __init__(self, number):
        self.number, self.version, self.shown = number, 0, []
        self.changed = asyncio.Event()

    async def show(self):
        while True:
            try:
                while True:
                    await self.changed.wait()
                    self.changed.clear()
                    self.shown.append(self.version)
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()
                self.version += 1


async def timetable(platforms, shows):
    await asyncio.sleep(0.1)
    for platform, show in zip(platforms, shows):
        platform.changed.set()
        show.cancel()
    print("ready", flush=True)
    while True:
        await asyncio.sleep(1.2)
        for platform in platforms:
            platform.changed.set()


async def main():
    platforms = [Platform(number) for number in (1, 2, 3)]
    shows = [asyncio.create_task(platform.show()) for platform in platforms]
    await asyncio.gather(*shows, timetable(platforms, shows))


asyncio.run(main())
