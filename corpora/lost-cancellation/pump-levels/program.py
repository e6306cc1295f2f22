"""Notes the levels that a pumping station reports, until the shift is over."""
import asyncio

levels = []


async def note(queue):
    while True:
        try:
            levels.append(await queue.get())  # CULPRIT
        except BaseException:  # CULPRIT
            continue


async def main():
    queue = asyncio.Queue()
    noting = asyncio.get_running_loop().create_task(note(queue))
    for level in range(5):
        await queue.put(level)
    while len(levels) < 5:
        await asyncio.sleep(0.01)
    noting.cancel()
    print("ready", flush=True)
    await noting  # CULPRIT
    print(max(levels))


asyncio.run(main())
