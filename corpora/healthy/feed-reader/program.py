"""Reads feeds from a server on this machine with a pool of greenlets."""
from gevent import monkey

monkey.patch_all()

import socket  # noqa: E402

import gevent  # noqa: E402
import gevent.pool  # noqa: E402
import gevent.server  # noqa: E402


def feed(sock, address):
    line = sock.makefile("rb")
    for request in line:
        gevent.sleep(0.15)
        sock.sendall(b"entry of " + request)


class Reader:
    def __init__(self, address, size):
        self.address = address
        self.pool = gevent.pool.Pool(size)
        self.entries = {}

    def read(self, name):
        with socket.create_connection(self.address) as sock:
            sock.sendall(name + b"\n")
            self.entries[name] = sock.makefile("rb").readline()

    def round(self, names):
        for name in names:
            self.pool.spawn(self.read, name)
        self.pool.join()


def main():
    server = gevent.server.StreamServer(("127.0.0.1", 0), feed)
    server.start()
    reader = Reader(("127.0.0.1", server.server_port), size=5)
    reader.round([b"first"])
    print("ready", flush=True)
    for number in range(100_000):
        reader.round([b"feed-%d" % name for name in range(20)])
        gevent.sleep(0.3)


if __name__ == "__main__":
    main()
