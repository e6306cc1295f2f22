"""Quotes fares over HTTP with uvicorn's gunicorn worker; the fare table comes from a partner who is asked again when late."""
import asyncio
import socket
import sys
import threading
import time

from gunicorn.app.base import BaseApplication


class Partner:
    """The partner's table; not there yet when the service starts."""

    def __init__(self):
        self.attempts = 0

    def table(self):
        self.attempts += 1
        if self.attempts < 200:
            raise ConnectionError("try later")
        return {"zone-1": 240, "zone-2": 310}


class Quotes:
    PAUSE = 30

    def __init__(self, partner):
        self.partner = partner
        self.fares = None

    async def fare(self, zone):
        while self.fares is None:
            try:
                self.fares = self.partner.table()
            except ConnectionError:
                time.sleep(self.PAUSE)  # CULPRIT
        await asyncio.sleep(0)
        return self.fares[zone]


def application():
    quotes = Quotes(Partner())

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        print("ready", flush=True)
        body = b"%d" % await quotes.fare("zone-1")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return app


class Service(BaseApplication):
    def load_config(self):
        self.cfg.set("bind", "127.0.0.1:0")
        self.cfg.set("workers", 1)
        self.cfg.set("timeout", 2)
        self.cfg.set("worker_class", "uvicorn.workers.UvicornWorker")
        self.cfg.set("when_ready", self.open)
        self.cfg.set("child_exit", self.closed)

    def load(self):
        return application()

    def open(self, arbiter):
        address = arbiter.LISTENERS[0].getsockname()
        threading.Thread(target=self.ask, args=(address,), name="ask", daemon=True).start()

    def ask(self, address):
        with socket.create_connection(address) as connection:
            connection.sendall(b"GET /zone-1 HTTP/1.1\r\nHost: fares\r\n\r\n")
            connection.recv(4096)

    def closed(self, arbiter, worker):
        sys.exit(1)


if __name__ == "__main__":
    Service().run()
