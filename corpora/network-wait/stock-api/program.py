"""Reads stock levels from a supplier's service and writes the shop's table."""
import http.client
import queue
import socket
import sys
import threading


class Transport:
    def __init__(self, address):
        self.host, self.port = address

    def get(self, path):
        connection = http.client.HTTPConnection(self.host, self.port)
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()  # CULPRIT
        try:
            return response.status, response.read()
        finally:
            connection.close()


class RetryingTransport:
    def __init__(self, inner, attempts=3):
        self.inner = inner
        self.attempts = attempts

    def get(self, path):
        for attempt in range(self.attempts):
            try:
                return self.inner.get(path)  # CULPRIT
            except ConnectionError:
                if attempt == self.attempts - 1:
                    raise


class Supplier:
    def __init__(self, transport):
        self.transport = transport

    def level(self, article):
        status, body = self.transport.get("/stock/%s" % article)
        return int(body) if status == 200 else None


class Sync:
    def __init__(self, supplier):
        self.supplier = supplier
        self.articles = queue.Queue()
        self.levels = {}

    def worker(self):
        while True:
            article = self.articles.get()
            self.levels[article] = self.supplier.level(article)
            self.articles.task_done()

    def run(self, articles, workers=2):
        for number in range(workers):
            threading.Thread(target=self.worker, name="sync-%d" % number, daemon=True).start()
        for article in articles:
            self.articles.put(article)
        print("ready", flush=True)
        self.articles.join()


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = stand_in.getsockname()
    Sync(Supplier(RetryingTransport(Transport(address)))).run(["bolt", "nut", "screw"])


if __name__ == "__main__":
    main()
