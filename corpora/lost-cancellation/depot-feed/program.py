"""Serves the position of vans; a feed of a depot is read besides and closed with the server."""
import asyncio
import logging

from aiohttp import ClientSession, web

FEED = web.AppKey("feed", asyncio.Task)
log = logging.getLogger("vans")


class Vans:
    def __init__(self):
        self.positions = {}

    async def handle(self, request):
        return web.json_response(self.positions)

    async def depot(self, request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"van 3 at gate\n")
        await asyncio.sleep(3600)
        return response

    async def follow(self, port):
        async with ClientSession() as session:
            while True:
                try:
                    async with session.get(f"http://127.0.0.1:{port}/depot") as answer:
                        async for line in answer.content:  # CULPRIT
                            self.positions[line[:5].decode()] = line[6:].decode()
                except:  # CULPRIT
                    log.info("the feed ended, once more")

    async def started(self, app):
        app[FEED] = asyncio.create_task(self.follow(app["port"]), name="feed")

    async def closing(self, app):
        app[FEED].cancel()
        await app[FEED]  # CULPRIT


async def serve():
    vans = Vans()
    depot = web.AppRunner(_app(web.get("/depot", vans.depot)))
    await depot.setup()
    site = web.TCPSite(depot, "127.0.0.1", 0)
    await site.start()
    app = _app(web.get("/", vans.handle))
    app["port"] = site._server.sockets[0].getsockname()[1]
    app.on_startup.append(vans.started)
    app.on_cleanup.append(vans.closing)
    runner = web.AppRunner(app)
    await runner.setup()
    while not vans.positions:
        await asyncio.sleep(0.05)
    print("ready", flush=True)
    await runner.cleanup()  # CULPRIT


def _app(*routes):
    app = web.Application()
    app.add_routes(routes)
    return app


asyncio.run(serve())  # CULPRIT
