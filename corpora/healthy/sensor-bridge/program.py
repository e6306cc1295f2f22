"""Reads a sensor network that speaks asyncio from a synchronous report."""
import asyncio
import threading


class Bridge(threading.Thread):
    """Owns the loop."""

    def __init__(self):
        super().__init__(name="bridge", daemon=True)
        self.loop = asyncio.new_event_loop()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()


class Network:
    def __init__(self, every):
        self.every = every
        self.count = 0

    async def next_reading(self):
        await asyncio.sleep(self.every)
        self.count += 1
        return 20 + self.count % 5


class Report:
    def __init__(self, bridge, network):
        self.bridge = bridge
        self.network = network
        self.readings = []

    def run(self):
        while True:
            self.readings.append(self.bridge.call(self.network.next_reading()))


def main():
    bridge = Bridge()
    bridge.start()
    report = Report(bridge, Network(every=0.7))
    bridge.call(report.network.next_reading())
    print("ready", flush=True)
    report.run()


if __name__ == "__main__":
    main()
