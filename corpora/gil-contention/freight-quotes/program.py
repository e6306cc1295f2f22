"""Quotes for freight over HTTP, while the price lists are worked out anew in the background."""
import itertools
import subprocess
import sys
import threading

from waitress.server import create_server

CUSTOMER = """
import http.client, sys
line = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
while True:
    line.request("GET", "/quote?kg=12")
    line.getresponse().read()
"""


class PriceList:
    def __init__(self, zones):
        self.zones = zones
        self.prices = {}

    def cheapest(self, start, end):
        best = None
        for middle in range(self.zones):  # CULPRIT
            price = (start * 31 + middle * 17) % 97 + (middle * 13 + end * 29) % 89
            if best is None or price < best:
                best = price
        return best

    def work_out(self):
        for turn in itertools.count():
            for start, end in itertools.product(range(self.zones), repeat=2):  # CULPRIT
                self.prices[start, end] = self.cheapest(start, end) + turn % 2


class Quotes:
    def __init__(self, lists):
        self.lists = lists

    def __call__(self, environ, start_response):
        price = sum(prices.prices.get((3, 4), 0) for prices in self.lists)
        body = b"%d\n" % price
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]


def main():
    lists = [PriceList(zones=60) for _ in range(3)]
    server = create_server(Quotes(lists), host="127.0.0.1", port=0, threads=2)
    for number, prices in enumerate(lists):
        threading.Thread(target=prices.work_out, name="prices-%d" % number, daemon=True).start()
    customer = subprocess.Popen([sys.executable, "-c", CUSTOMER, str(server.effective_port)], stderr=subprocess.DEVNULL)
    print("ready", flush=True)
    try:
        server.run()
    finally:
        customer.kill()


if __name__ == "__main__":
    main()
