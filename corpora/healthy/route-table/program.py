"""Keeps a large table of routes in memory and updates it steadily, as announcements come."""
import random
import time


class Table:
    def __init__(self, size):
        self.routes = bytearray(size)
        for start in range(0, size, 1 << 20):
            self.routes[start : start + 16] = b"0123456789abcdef"

    def announce(self, place, hops):
        self.routes[place] = hops

    def hops(self, place):
        return self.routes[place]


def main():
    table = Table(220 << 20)
    chance = random.Random(3)
    print("ready", flush=True)
    while True:
        for _ in range(300):
            place = chance.randrange(len(table.routes))
            table.announce(place, (table.hops(place) + 1) % 64)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
