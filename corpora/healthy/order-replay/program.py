"""Replay a day of orders against the book: many small records, made and dropped again at once."""
import gc
import random
import sys


class Order:
    def __init__(self, number, side, price, size):
        self.number = number
        self.side = side
        self.price = price
        self.size = size
        self.fills = []


class Book:
    def __init__(self):
        self.sides = {"buy": {}, "sell": {}}
        self.traded = 0

    def match(self, order):
        other = self.sides["sell" if order.side == "buy" else "buy"]
        for price in sorted(other, reverse=order.side == "sell"):
            if (price > order.price) if order.side == "buy" else (price < order.price):
                break
            waiting = other[price]
            while waiting and order.size:
                first = waiting[0]
                size = min(order.size, first.size)
                fill = {"price": price, "size": size, "parties": [order.number, first.number]}
                order.fills.append(fill)
                first.fills.append(fill)
                order.size -= size
                first.size -= size
                self.traded += size
                if not first.size:
                    waiting.pop(0)
            if not waiting:
                del other[price]
        if order.size:
            self.sides[order.side].setdefault(order.price, []).append(order)

    def levels(self, most):
        return {
            side: [
                {"price": price, "orders": [[order.number, order.size, list(order.fills)] for order in waiting]}
                for price, waiting in sorted(prices.items())[:most]
            ]
            for side, prices in self.sides.items()
        }

    def expire(self, oldest):
        for prices in self.sides.values():
            for price, waiting in list(prices.items()):
                prices[price] = [order for order in waiting if order.number >= oldest]
                if not prices[price]:
                    del prices[price]


def orders(seed):
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield Order(number, rng.choice(("buy", "sell")), rng.randrange(900, 1100), rng.randrange(1, 200))


def main():
    gc.disable()
    book = Book()
    print("ready", flush=True)
    for order in orders(5):
        book.match(order)
        if order.number % 20 == 0:
            depth = book.levels(60)
            if order.number % 20000 == 0:
                book.expire(order.number - 5000)
                gc.collect()
                print("%d orders, %d traded, %d levels" % (order.number, book.traded, len(depth["buy"])), file=sys.stderr)
        if order.number == 50000000:
            break


if __name__ == "__main__":
    main()
