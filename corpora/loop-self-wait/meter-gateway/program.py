"""A gateway for water meters: readings come in over HTTP, their tokens are checked with the token service."""
import asyncio
import json
import queue
import threading
import urllib.request

import requests


class TokenService:
    """Knows who a token belongs to; other gateways ask it, too, so it has a path of its own here."""

    def __init__(self):
        self.owners = {"t-1": "well 1", "t-2": "well 2"}

    async def answer(self, token):
        await asyncio.sleep(0.01)
        return {"owner": self.owners.get(token)}


class TokenClient:
    def __init__(self, base):
        self.base = base
        self.session = requests.Session()

    def owner(self, token):
        answer = self.session.get(self.base + "/token/" + token)  # CULPRIT
        return answer.json()["owner"]


class CachedTokens:
    def __init__(self, client):
        self.client = client
        self.owners = {}

    def owner(self, token):
        if token not in self.owners:
            self.owners[token] = self.client.owner(token)  # CULPRIT
        return self.owners[token]


class Archive(threading.Thread):
    def __init__(self):
        super().__init__(name="archive", daemon=True)
        self.readings = queue.Queue()
        self.kept = []

    def run(self):
        while True:
            self.kept.append(self.readings.get())


class Gateway:
    def __init__(self, archive):
        self.archive = archive
        self.service = TokenService()
        self.tokens = None

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        base = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        self.tokens = CachedTokens(TokenClient(base))
        return server, base

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        _, kind, *rest = head.split()[1].split("/")
        body = json.dumps(await self.dispatch(kind, *rest)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async def dispatch(self, kind, token, litres=None):
        if kind == "token":
            return await self.service.answer(token)
        owner = self.tokens.owner(token)  # CULPRIT
        self.archive.readings.put((owner, int(litres)))
        return {"kept": owner}


class Meter(threading.Thread):
    def __init__(self, base, token):
        super().__init__(name="meter-" + token, daemon=True)
        self.url = base + "/reading/%s/840" % token

    def run(self):
        with urllib.request.urlopen(self.url) as answer:
            self.answer = json.load(answer)


async def run():
    archive = Archive()
    archive.start()
    server, base = await Gateway(archive).start()
    print("ready", flush=True)
    for token in ("t-1", "t-2"):
        Meter(base, token).start()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(run())
