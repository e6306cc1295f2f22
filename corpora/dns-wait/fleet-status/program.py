"""Asks every charging station of the fleet for its status and keeps the answers in a file per station."""
import asyncio
import concurrent.futures
import json
import os
import sys
import tempfile

import nameserver


class Station:
    def __init__(self, number):
        self.number = number
        self.host = "station-%04d.charging.example" % number

    async def status(self, patience):
        reader, writer = await asyncio.open_connection(self.host, 8443)  # CULPRIT
        writer.write(b'{"ask": "status"}\n')
        try:
            return json.loads(await asyncio.wait_for(reader.readline(), patience))
        finally:
            writer.close()


class Store:
    def __init__(self, folder):
        self.folder = folder

    def write(self, number, status):
        with open(os.path.join(self.folder, "%04d.json" % number), "w") as out:
            json.dump(status, out)

    async def keep(self, number, status):
        await asyncio.get_running_loop().run_in_executor(None, self.write, number, status)


class Survey:
    def __init__(self, stations, store):
        self.stations = stations
        self.store = store
        self.asked = 0

    async def one(self, station):
        await self.store.keep(station.number, {"asked": True})
        self.asked += 1
        if self.asked == len(self.stations):
            print("ready", flush=True)
        status = await station.status(patience=2.0)  # CULPRIT
        await self.store.keep(station.number, status)

    async def run(self):
        results = await asyncio.gather(*map(self.one, self.stations), return_exceptions=True)
        return sum(not isinstance(result, Exception) for result in results)


async def main(server):
    host, _, port = server.rpartition(":")
    workers = concurrent.futures.ThreadPoolExecutor(4, "io", lambda: nameserver.ask(host, int(port)))
    asyncio.get_running_loop().set_default_executor(workers)
    with tempfile.TemporaryDirectory() as folder:
        survey = Survey([Station(n) for n in range(1, 13)], Store(folder))
        print("%d stations answered" % await survey.run())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9"))
