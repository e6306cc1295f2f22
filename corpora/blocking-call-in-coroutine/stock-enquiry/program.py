"""A shop's stock page on aiohttp; what is on the shelves is known by the warehouse's own service."""
import asyncio
import sys
import urllib.request

import requests
from aiohttp import web


class Warehouse:
    def __init__(self, address):
        self.base = "http://" + address
        self.session = requests.Session()

    def level(self, article):
        answer = self.session.get("%s/stock/%s" % (self.base, article))  # CULPRIT
        answer.raise_for_status()
        return answer.json()["level"]


class Pages:
    def __init__(self, warehouse):
        self.warehouse = warehouse

    async def alive(self, request):
        return web.json_response({"alive": True})

    async def stock(self, request):
        article = request.match_info["article"]
        return web.json_response({"article": article, "level": self.warehouse.level(article)})  # CULPRIT

    def application(self):
        app = web.Application()
        app.router.add_get("/alive", self.alive)
        app.router.add_get("/stock/{article}", self.stock)
        return app


def visit(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


async def main():
    runner = web.AppRunner(Pages(Warehouse(sys.argv[1])).application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = "http://127.0.0.1:%d" % site._server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    print((await loop.run_in_executor(None, visit, url + "/alive")).decode())
    print("ready", flush=True)
    print(await loop.run_in_executor(None, visit, url + "/stock/A-17"))


if __name__ == "__main__":
    asyncio.run(main())
