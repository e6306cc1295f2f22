"""Takes insurance claims over HTTP and checks each against the rule book; /alive is for the load balancer."""
import asyncio
import difflib
import subprocess
import sys
import time

from aiohttp import ClientSession, web

CLIENTS = """
import asyncio, sys

async def client(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b"damage to fence no. %d by falling tree" % number
    head = b"POST /claims HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
    while True:
        writer.write(head + body)
        length = 0
        while True:
            line = await reader.readline()
            if not line:
                return
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if line == b"\\r\\n":
                break
        await reader.readexactly(length)

async def main():
    await asyncio.gather(*[client(int(sys.argv[1]), number) for number in range(180)])

asyncio.run(main())
"""
THINGS = ("fence", "roof", "car", "window", "cellar")
CAUSES = ("storm", "hail", "frost", "flood", "a falling tree")
RULES = ["damage to %s no. 1 by %s" % (thing, cause) for thing in THINGS for cause in CAUSES]


class Intake:
    def __init__(self):
        self.taken = 0

    def rule_for(self, text):
        return max(RULES, key=lambda rule: difflib.SequenceMatcher(None, rule, text).ratio())

    async def claim(self, request):
        text = (await request.read()).decode()
        rule = self.rule_for(text)  # CULPRIT
        self.taken += 1
        return web.json_response({"rule": rule})

    async def alive(self, request):
        return web.json_response({"taken": self.taken})


async def balancer(port):
    async with ClientSession() as session:
        while True:
            begun = time.monotonic()
            async with session.get("http://127.0.0.1:%d/alive" % port) as answer:
                taken = (await answer.json())["taken"]
            print("%d taken, alive after %.3f s" % (taken, time.monotonic() - begun), flush=True)
            await asyncio.sleep(0.5)


async def main():
    intake = Intake()
    app = web.Application()
    app.router.add_post("/claims", intake.claim)
    app.router.add_get("/alive", intake.alive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=256)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    clients = subprocess.Popen([sys.executable, "-c", CLIENTS, str(port)])
    print("ready", flush=True)
    try:
        await balancer(port)
    finally:
        clients.kill()


if __name__ == "__main__":
    asyncio.run(main())
