import os
import sys
from pathlib import Path

import trio


async def echo(stream):
    async for data in stream:
        await stream.send_all(data)


async def serve():
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_tcp, echo, 0)
        Path(os.environ["READY"]).touch()


async def move(mine, theirs):
    async with mine:
        await trio.sleep(0.5)
        Path(os.environ["READY"]).touch()
        async with theirs:  # HANG swap
            pass


async def swap():
    one, two = trio.Lock(), trio.Lock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, one, two)
        nursery.start_soon(move, two, one)


async def produce(sender):
    for number in range(3):
        await sender.send(number)


async def channel():
    sender, receiver = trio.open_memory_channel(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, sender)
        async for number in receiver:  # HANG channel
            print(number)
            if number == 2:
                Path(os.environ["READY"]).touch()


trio.run({"idle": serve, "swap": swap, "channel": channel}[sys.argv[1]])
