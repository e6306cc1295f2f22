"""Polls three hundred weather probes twice a second and answers enquiries about them on a local port."""
import asyncio
import math
import time


class Probe:
    def __init__(self, number):
        self.number = number
        self.mean = 0.0
        self.polled = 0

    def sample(self):
        return [math.sin(self.number + n * 0.01) for n in range(500)]

    def smooth(self, values):
        for _ in range(140):
            values = [(a + b) / 2 for a, b in zip(values, values[1:] + values[:1])]
        return sum(values) / len(values)

    async def poll(self, every):
        while True:
            self.mean = self.smooth(self.sample())  # CULPRIT
            self.polled += 1
            await asyncio.sleep(every)


class Station:
    def __init__(self, probes):
        self.probes = probes

    async def answer(self, reader, writer):
        number = int(await reader.readline())
        writer.write(b"%.4f\n" % self.probes[number].mean)
        await writer.drain()
        writer.close()

    async def visitor(self, port):
        while True:
            begun = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"17\n")
            await reader.readline()
            writer.close()
            print("answered after %.3f s" % (time.monotonic() - begun), flush=True)
            await asyncio.sleep(0.2)


async def main():
    probes = [Probe(number) for number in range(300)]
    station = Station(probes)
    server = await asyncio.start_server(station.answer, "127.0.0.1", 0)
    polls = [probe.poll(0.5) for probe in probes]  # CULPRIT
    print("ready", flush=True)
    await asyncio.gather(station.visitor(server.sockets[0].getsockname()[1]), *polls)


if __name__ == "__main__":
    asyncio.run(main())
