"""Seats of a theatre: booked over the network, while a thread takes over the subscriptions of the season."""
import asyncio
import threading
import time


class Ledger:
    def __init__(self, rows, seats):
        self.lock = threading.Lock()
        self.free = {(row, seat) for row in range(rows) for seat in range(seats)}
        self.sold = {}

    def book(self, seat, name):
        with self.lock:  # CULPRIT
            if seat not in self.free:
                return False
            self.free.remove(seat)
            self.sold[seat] = name
            return True


class Subscriptions(threading.Thread):
    """Reads the subscribers' cards one after the other; the reader takes a third of a second for each."""

    def __init__(self, ledger, cards):
        super().__init__(name="subscriptions", daemon=True)
        self.ledger = ledger
        self.cards = cards
        self.begun = threading.Event()

    def read_card(self, number):
        time.sleep(0.3)
        return (number // 30, number % 30), "subscriber %d" % number

    def run(self):
        with self.ledger.lock:  # CULPRIT
            self.begun.set()
            for number in range(self.cards):
                seat, name = self.read_card(number)
                self.ledger.free.discard(seat)
                self.ledger.sold[seat] = name


class BoxOffice:
    def __init__(self, ledger):
        self.ledger = ledger
        self.served = 0

    async def customer(self, number):
        await asyncio.sleep(0.1 * number)
        await self.order((19, number), "customer %d" % number)

    async def order(self, seat, name):
        if self.ledger.book(seat, name):  # CULPRIT
            self.served += 1

    async def display(self):
        while True:
            print("served", self.served, flush=True)
            await asyncio.sleep(1)


async def main():
    ledger = Ledger(20, 30)
    subscriptions = Subscriptions(ledger, 500)
    subscriptions.start()
    subscriptions.begun.wait()
    office = BoxOffice(ledger)
    display = asyncio.ensure_future(office.display())
    print("ready", flush=True)
    await asyncio.gather(*[office.customer(number) for number in range(8)])
    display.cancel()


if __name__ == "__main__":
    asyncio.run(main())
