"""Searches a collection of recipes for what can be cooked from the things at hand."""
import asyncio

import aiosqlite

RECIPES = [("omelette", "egg"), ("pancake", "egg"), ("pancake", "flour"), ("risotto", "rice"), ("bread", "flour")]


class Recipes:
    def __init__(self, path):
        self.path = path
        self.database = None

    async def open(self):
        self.database = await aiosqlite.connect(self.path)  # CULPRIT
        await self.database.execute("CREATE TABLE needs (recipe, thing)")
        await self.database.executemany("INSERT INTO needs VALUES (?, ?)", RECIPES)
        await self.database.commit()

    async def close(self):
        await self.database.close()

    async def with_thing(self, thing):
        async with self.database.execute("SELECT recipe FROM needs WHERE thing = ?", (thing,)) as rows:
            return {recipe async for (recipe,) in rows}

    async def without(self, thing):
        every = await self.database.execute_fetchall("SELECT DISTINCT recipe FROM needs")
        return {recipe for (recipe,) in every} - await self.with_thing(thing)


async def search(things):
    recipes = Recipes(":memory:")
    await recipes.open()  # CULPRIT
    found = await asyncio.gather(*[recipes.with_thing(thing) for thing in things])
    left_out = await recipes.without("rice")
    return set.union(*found) & left_out


def main():
    print(", ".join(sorted(asyncio.run(search(["egg", "flour"])))))
    print("ready", flush=True)


if __name__ == "__main__":
    main()
