"""Departure boards ask an aiohttp service for the next buses, with a bounded number of connections."""
import asyncio

import aiohttp
from aiohttp import web


class Timetable:
    def __init__(self, stops):
        self.stops = {stop: sorted((stop * 7 + n * 11) % 60 for n in range(8)) for stop in range(stops)}

    async def next(self, request):
        await asyncio.sleep(0.02)
        return web.json_response(self.stops[int(request.match_info["stop"])])


async def board(session, url, stop, shown):
    while True:
        async with session.get("%s/stop/%d" % (url, stop)) as response:
            shown[stop] = await response.json()
        await asyncio.sleep(0.2)


async def main():
    timetable = Timetable(stops=40)
    application = web.Application()
    application.router.add_get("/stop/{stop}", timetable.next)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = "http://127.0.0.1:%d" % site._server.sockets[0].getsockname()[1]
    shown = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=6)) as session:
        boards = [asyncio.ensure_future(board(session, url, stop, shown)) for stop in range(24)]
        while len(shown) < 24:
            await asyncio.sleep(0.01)
        print("ready", flush=True)
        await asyncio.gather(*boards)


if __name__ == "__main__":
    asyncio.run(main())
