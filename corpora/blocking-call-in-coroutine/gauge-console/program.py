"""A console for a pressure gauge: reads it every so often and shows the figure to whoever is connected."""
import asyncio
import socket
import sys


class Gauge:
    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.line = socket.create_connection((host, int(port)))
        self.model = self.line.recv(64).decode().strip()

    def read(self):
        self.line.sendall(b"READ?\n")
        return float(self.line.recv(64))  # CULPRIT


class Screen(asyncio.Protocol):
    def __init__(self, console):
        self.console = console

    def connection_made(self, transport):
        self.transport = transport
        self.console.screens.append(transport)

    def connection_lost(self, exc):
        self.console.screens.remove(self.transport)


class Console:
    def __init__(self, loop, gauge, every):
        self.loop = loop
        self.gauge = gauge
        self.every = every
        self.screens = []

    def refresh(self):
        figure = self.gauge.read()  # CULPRIT
        for screen in self.screens:
            screen.write(b"%.2f bar\n" % figure)
        self.loop.call_later(self.every, self.refresh)


def main():
    gauge = Gauge(sys.argv[1])
    loop = asyncio.new_event_loop()
    console = Console(loop, gauge, every=0.2)
    loop.run_until_complete(loop.create_server(lambda: Screen(console), "127.0.0.1", 0))
    loop.call_soon(console.refresh)
    print("ready", flush=True)
    loop.run_forever()


if __name__ == "__main__":
    main()
