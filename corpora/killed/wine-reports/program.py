"""Serves the reports of a wine merchant with gunicorn: one worker, which computes each report while one waits."""
import faulthandler
import signal
import socket
import sys
import threading

from gunicorn.app.base import BaseApplication

CELLARS = 60


def vintages(cellar):
    for bottle in range(200000):
        yield 1950 + (cellar * 7 + bottle * 13) % 70, (bottle * 31 + cellar) % 997 / 10


def report():
    best = {}
    for cellar in range(CELLARS):
        for year, points in vintages(cellar):
            if points > best.get(year, 0.0):  # CULPRIT
                best[year] = points
    return "\n".join("%d %.1f" % item for item in sorted(best.items()))


def load():
    """The application; a worker that is ended shall leave a trace and a core."""
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    faulthandler.enable()

    def application(environ, start_response):
        print("ready", flush=True)
        body = report().encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    return application


class Merchant(BaseApplication):
    def load_config(self):
        self.cfg.set("bind", "127.0.0.1:0")
        self.cfg.set("workers", 1)
        self.cfg.set("timeout", 1)  # CULPRIT
        self.cfg.set("worker_tmp_dir", None)
        self.cfg.set("when_ready", self.open)
        self.cfg.set("child_exit", self.closed)

    def load(self):
        return load()

    def open(self, arbiter):
        address = arbiter.LISTENERS[0].getsockname()
        threading.Thread(target=self.order, args=(address,), name="order", daemon=True).start()

    def order(self, address):
        with socket.create_connection(address) as connection:
            connection.sendall(b"GET /report HTTP/1.0\r\n\r\n")
            connection.recv(65536)

    def closed(self, arbiter, worker):
        sys.exit(1)


if __name__ == "__main__":
    Merchant().run()
