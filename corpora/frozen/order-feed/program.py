"""Reads a shop's order feed, sums it up by article and prints a line per thousand orders."""
import collections
import itertools


def orders():
    for number in itertools.count(1):
        yield {"number": number, "article": number * 7 % 113, "pieces": number % 5 + 1}


def totals(feed):
    pieces = collections.Counter()
    for order in feed:
        pieces[order["article"]] += order["pieces"]  # CULPRIT
        yield order["number"], pieces


def main():
    print("ready", flush=True)
    for number, pieces in totals(orders()):  # CULPRIT
        if number % 1000000 == 0:
            print(number, "orders,", sum(pieces.values()), "pieces", flush=True)


if __name__ == "__main__":
    main()
