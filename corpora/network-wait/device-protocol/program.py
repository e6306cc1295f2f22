"""Asks a device for its readings over a line protocol of its own."""
import asyncio
import itertools
import socket
import sys


class DeviceProtocol(asyncio.Protocol):
    def __init__(self):
        self.numbers = itertools.count(1)
        self.pending = {}
        self.transport = None
        self.rest = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            number, _, value = line.partition(b" ")
            self.pending.pop(int(number)).set_result(value.decode())

    def ask(self, what):
        number = next(self.numbers)
        self.pending[number] = asyncio.get_running_loop().create_future()
        self.transport.write(b"%d %s\n" % (number, what.encode()))
        return self.pending[number]


class Device:
    def __init__(self, protocol):
        self.protocol = protocol

    async def readings(self, names):
        return {name: await self.protocol.ask(name) for name in names}  # CULPRIT


async def run(address):
    _, protocol = await asyncio.get_running_loop().create_connection(DeviceProtocol, *address)
    print("ready", flush=True)
    print(await Device(protocol).readings(["level", "flow"]))


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        asyncio.run(run((host, int(port))))
    else:
        with socket.create_server(("127.0.0.1", 0)) as device:
            asyncio.run(run(device.getsockname()))


if __name__ == "__main__":
    main()
