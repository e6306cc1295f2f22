"""Imports a day's trades: one task parses the lines of the file, another books them into totals."""
import asyncio
import random
import zlib


def lines(count):
    """Stands in for the file of the day."""
    chance = random.Random(5)
    for number in range(count):
        yield "%d;S%03d;%d;%d" % (number, chance.randrange(400), chance.randrange(1, 500), chance.randrange(90, 110))


def parse(line):
    number, symbol, pieces, price = line.split(";")
    for _ in range(400):
        check = zlib.crc32(line.encode() * 40)
    return int(number), symbol, int(pieces) * int(price), check & 255


async def read(trades, count):
    for line in lines(count):
        await trades.put(parse(line))  # CULPRIT
    await trades.put(None)


async def book(trades, totals):
    while True:
        trade = await trades.get()
        if trade is None:
            return
        _, symbol, amount, _ = trade
        totals[symbol] = totals.get(symbol, 0) + amount


async def progress(totals):
    while True:
        print("symbols booked:", len(totals), flush=True)
        await asyncio.sleep(0.5)


async def main():
    trades = asyncio.Queue()  # CULPRIT
    totals = {}
    telling = asyncio.ensure_future(progress(totals))
    booking = asyncio.ensure_future(book(trades, totals))
    await asyncio.sleep(0)
    print("ready", flush=True)
    await read(trades, 1000000)
    await booking
    telling.cancel()


if __name__ == "__main__":
    asyncio.run(main())
