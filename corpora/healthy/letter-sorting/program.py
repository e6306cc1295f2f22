"""Sorts letters with trio: one task stamps, three sort, one counts; memory channels of a fixed size are between them."""
import trio


async def stamp(send):
    async with send:
        number = 0
        while True:
            await send.send({"number": number, "zip": number * 7919 % 99999})
            number += 1


async def sort(receive, send):
    async with receive, send:
        async for letter in receive:
            await trio.sleep(0.01)
            await send.send((letter["zip"] // 10000, letter["number"]))


async def count(receive, bags):
    async with receive:
        async for bag, number in receive:
            bags[bag] = bags.get(bag, 0) + 1
            if number == 5:
                print("ready", flush=True)


async def main():
    bags = {}
    stamped, to_sort = trio.open_memory_channel(4)
    sorted_, to_count = trio.open_memory_channel(2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stamp, stamped)
        for _ in range(3):
            nursery.start_soon(sort, to_sort.clone(), sorted_.clone())
        to_sort.close()
        sorted_.close()
        nursery.start_soon(count, to_count, bags)


if __name__ == "__main__":
    trio.run(main)
