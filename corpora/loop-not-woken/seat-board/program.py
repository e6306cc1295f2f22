import asyncio
import threading


def sell(seats):
    for number in (14, 15, 16):
        seats.put_nowait(number)  # CULPRIT


async def show(seats):
    taken = set()
    while len(taken) < 3:
        taken.add(await seats.get())  # CULPRIT
    print(sorted(taken))


async def main():
    seats = asyncio.Queue()
    threading.Timer(0.3, sell, (seats,)).start()
    print("ready", flush=True)
    await show(seats)


asyncio.run(main())
