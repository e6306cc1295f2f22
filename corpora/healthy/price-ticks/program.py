"""Traders wait for the next price, which a timer announces every 0.6 seconds."""
import threading


class Market:
    def __init__(self, every):
        self.changed = threading.Condition()
        self.every = every
        self.price = 100
        self.ticks = 0

    def open(self):
        timer = threading.Timer(self.every, self.tick)
        timer.daemon = True
        timer.start()

    def tick(self):
        with self.changed:
            self.ticks += 1
            self.price += 1 if self.ticks % 3 else -2
            self.changed.notify_all()
        self.open()

    def next_price(self, seen):
        with self.changed:
            self.changed.wait_for(lambda: self.ticks > seen)
            return self.ticks, self.price


class Trader(threading.Thread):
    def __init__(self, name, market):
        super().__init__(name=name)
        self.market = market
        self.book = []

    def run(self):
        seen = 0
        while True:
            seen, price = self.market.next_price(seen)
            self.book.append(price)


def main():
    market = Market(every=0.6)
    traders = [Trader("trader-%d" % n, market) for n in range(3)]
    for trader in traders:
        trader.start()
    market.open()
    print("ready", flush=True)
    for trader in traders:
        trader.join()


if __name__ == "__main__":
    main()
