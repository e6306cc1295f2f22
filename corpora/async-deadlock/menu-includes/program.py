"""Puts the menus of a canteen together; a menu may include others."""
import asyncio

from async_lru import alru_cache

FILES = {
    "week.menu": ["include lunch.menu", "include drinks.menu"],
    "lunch.menu": ["Barley soup", "include salads.menu"],
    "salads.menu": ["Beetroot", "include sauces.menu"],
    "sauces.menu": ["Yoghurt", "include lunch.menu"],
    "drinks.menu": ["Apple juice", "Water"],
}


class Folder:
    async def read(self, name):
        await asyncio.sleep(0.02)
        return FILES[name]


class Kitchen:
    def __init__(self, folder):
        self.folder = folder

    @alru_cache(maxsize=64)
    async def load(self, name):
        dishes = []
        for line in await self.folder.read(name):
            word, _, rest = line.partition(" ")
            if word == "include":
                dishes.extend(await self.load(rest))  # CULPRIT
            else:
                dishes.append(line)
        return dishes

    async def print_all(self, names):
        for dishes in await asyncio.gather(*map(self.load, names)):
            print(dishes)


async def main():
    kitchen = Kitchen(Folder())
    print(await kitchen.load("drinks.menu"))
    print("ready", flush=True)
    await kitchen.print_all(["week.menu", "drinks.menu"])


if __name__ == "__main__":
    asyncio.run(main())
