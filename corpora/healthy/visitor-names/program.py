"""A page counter; a thread of its own turns the visitors' addresses into names for the log."""
import collections
import queue
import socket
import sys
import threading
import time

import nameserver


class Names(threading.Thread):
    def __init__(self, server, found):
        super().__init__(name="names", daemon=True)
        self.server = server
        self.wanted = queue.Queue()
        self.found = found
        self.first = threading.Event()

    def run(self):
        nameserver.ask(*self.server)
        while True:
            address = self.wanted.get()
            try:
                self.found[address] = socket.getaddrinfo("host-%s.example" % address.replace(".", "-"), 80)[0][4][0]
            except OSError:
                self.found[address] = address
            self.first.set()


class Counter:
    def __init__(self, names):
        self.names = names
        self.hits = collections.Counter()

    def visit(self, page, address):
        self.hits[page] += 1
        if self.names.wanted.qsize() < 20:
            self.names.wanted.put(address)

    def page(self):
        return "".join("<li>%s: %d</li>" % pair for pair in sorted(self.hits.items()))


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9").rpartition(":")
    names = Names((host, int(port)), {})
    names.start()
    counter = Counter(names)
    counter.visit("/", "192.0.2.1")
    names.first.wait()
    print("ready", flush=True)
    visits = 0
    while True:
        visits += 1
        counter.visit("/page/%d" % (visits % 50), "192.0.2.%d" % (visits % 250))
        counter.page()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
