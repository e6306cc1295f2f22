"""Fetches map tiles; each map is asked for at two mirrors, and the slower answer is dropped."""
import asyncio

import aiohttp
from aiohttp import web


async def tile(request):
    await asyncio.sleep(0.1)
    return web.Response(body=b"tile" * 5000)


async def local_mirror():
    app = web.Application()
    app.router.add_get("/{name}", tile)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, site._server.sockets[0].getsockname()[1]


class Mirrors:
    def __init__(self, session, base):
        self.session = session
        self.base = base

    async def exists(self, name, rivals=()):
        async with self.session.get(self.base + name) as response:
            found = response.status == 200
        for rival in rivals:
            rival.cancel()  # CULPRIT
        return found

    async def first(self, name):
        rivals = []
        one = asyncio.ensure_future(self.exists(name, rivals))
        await asyncio.sleep(0)
        backup = asyncio.ensure_future(self.exists(name + "-backup"))
        rivals.append(backup)
        return await one


async def main():
    runner, port = await local_mirror()
    connector = aiohttp.TCPConnector(limit=1)
    limits = aiohttp.ClientTimeout(total=None)  # CULPRIT
    async with aiohttp.ClientSession(connector=connector, timeout=limits) as session:
        mirrors = Mirrors(session, "http://127.0.0.1:%d/" % port)
        north = asyncio.ensure_future(mirrors.first("north"))
        await asyncio.sleep(0.02)
        other = asyncio.ensure_future(mirrors.exists("south"))
        print("ready", flush=True)
        print(await asyncio.gather(north, other))
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
