"""Roll up what an assembly costs from the parts that go into it."""
import sys
import threading


class Part:
    def __init__(self, name, price, needs=()):
        self.name = name
        self.price = price
        self.needs = list(needs)


def price_curve(price, lots):
    """The price of one piece, averaged over the sizes of the lots we buy."""
    total = 0.0
    for lot in range(1, lots + 1):
        total += price * (1.0 - min(0.3, lot / 10000.0))
    return total / lots


def cost(name, parts):
    part = parts[name]
    total = price_curve(part.price, 4000)
    for needed, count in part.needs:
        total += count * cost(needed, parts)  # CULPRIT
    return total


def catalogue():
    parts = [
        Part("bolt", 0.2),
        Part("seal", 1.1),
        Part("housing", 80.0, [("bolt", 12)]),
        Part("gearbox", 40.0, [("housing", 1), ("seal-kit", 1)]),
        Part("seal-kit", 5.0, [("seal", 4), ("exchange-unit", 1)]),
        Part("exchange-unit", 12.0, [("gearbox", 1)]),  # CULPRIT
        Part("conveyor", 900.0, [("bolt", 60), ("gearbox", 2)]),
    ]
    return {part.name: part for part in parts}


def main():
    sys.setrecursionlimit(10000000)  # CULPRIT
    threading.stack_size(512 * 1024 * 1024)
    costs = {}
    parts = catalogue()
    worker = threading.Thread(
        target=lambda: costs.update(conveyor=cost("conveyor", parts)), name="costing", daemon=True
    )
    print("ready", flush=True)
    worker.start()
    worker.join()
    print("%.2f" % costs["conveyor"])


if __name__ == "__main__":
    main()
