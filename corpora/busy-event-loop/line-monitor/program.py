"""Watches the event line of a device and collects its messages."""
import asyncio
import socket


class LineMonitor:
    def __init__(self, loop, line):
        self.loop = loop
        self.line = line
        self.buffer = bytearray()
        self.messages = asyncio.Queue()

    def open(self):
        self.line.setblocking(False)
        self.loop.add_reader(self.line.fileno(), self.on_readable)

    def on_readable(self):  # CULPRIT
        data = self.line.recv(4096)  # CULPRIT
        self.buffer += data
        while b"\n" in self.buffer:
            message, _, rest = bytes(self.buffer).partition(b"\n")
            self.buffer[:] = rest
            self.messages.put_nowait(message)


class Station:
    def __init__(self, monitor):
        self.monitor = monitor
        self.seen = 0

    async def collect(self, expected):
        while self.seen < expected:
            await self.monitor.messages.get()
            self.seen += 1


async def main():
    ours, device = socket.socketpair()
    monitor = LineMonitor(asyncio.get_running_loop(), ours)
    monitor.open()
    station = Station(monitor)
    device.sendall(b"online\nlevel 3\n")
    await station.collect(2)
    device.close()
    print("ready", flush=True)
    await station.collect(10)


if __name__ == "__main__":
    asyncio.run(main())
