"""A bus for price changes: components subscribe to topics and are told of every change."""
import asyncio
import collections
import json
import time


class Bus:
    def __init__(self, loop):
        self.loop = loop
        self.subscribers = collections.defaultdict(list)

    def subscribe(self, topic, listener):
        self.subscribers[topic].append(listener)

    def publish(self, topic, event):
        for listener in self.subscribers[topic]:
            self.loop.call_soon(listener, event)  # CULPRIT


class Portfolio:
    """Values its positions anew with every price."""

    def __init__(self, number):
        self.positions = {"S%03d" % n: (number * n) % 50 for n in range(400)}
        self.value = 0

    def on_price(self, event):
        prices = json.loads(json.dumps(event["prices"]))
        total = 0
        for symbol, count in sorted(self.positions.items()):
            total += count * prices.get(symbol, 0)
        for step in range(60000):
            total += step % 7
        self.value = total


class Exchange:
    def __init__(self, bus, every):
        self.bus = bus
        self.every = every

    async def run(self):
        turn = 0
        while True:
            turn += 1
            prices = {"S%03d" % n: 100 + (turn * n) % 9 for n in range(400)}
            self.bus.publish("prices", {"turn": turn, "prices": prices})
            await asyncio.sleep(self.every)


class Watchdog:
    def __init__(self, every):
        self.every = every

    async def run(self):
        while True:
            due = time.monotonic() + self.every
            await asyncio.sleep(self.every)
            print("watchdog %.3f s late" % (time.monotonic() - due), flush=True)


async def main():
    bus = Bus(asyncio.get_running_loop())
    for number in range(600):
        bus.subscribe("prices", Portfolio(number).on_price)
    exchange, watchdog = Exchange(bus, every=0.5), Watchdog(every=0.3)
    print("ready", flush=True)
    await asyncio.gather(exchange.run(), watchdog.run())


if __name__ == "__main__":
    asyncio.run(main())
