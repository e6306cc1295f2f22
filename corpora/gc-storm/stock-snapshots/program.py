"""Replay a day's stock movements over the inventory and note the value of each shelf that changes."""
import gc
import random


def inventory(shelves, per_shelf):
    rng = random.Random(11)

    def box():
        return {"article": rng.randrange(9000), "count": rng.randrange(50), "lots": [rng.randrange(400)]}

    return [[box() for _ in range(per_shelf)] for _ in range(shelves)]


def movements(shelves, per_shelf):
    rng = random.Random(12)
    while True:
        yield rng.randrange(shelves), rng.randrange(per_shelf), rng.choice((-1, 1, 2))


def shelf_value(shelf):
    return sum(box["count"] * (1 + box["article"] % 7) for box in shelf)


def replay(stock, day, at_most):
    values = {}
    for number, (shelf, box, change) in enumerate(day):
        if number == at_most:
            break
        before = [dict(entry) for entry in stock[shelf]]
        stock[shelf][box]["count"] = max(0, stock[shelf][box]["count"] + change)
        values[shelf] = shelf_value(stock[shelf]) - shelf_value(before)
        del before
        gc.collect()  # CULPRIT
    return values


def main():
    shelves, per_shelf = 1000, 150
    stock = inventory(shelves, per_shelf)
    print("ready", flush=True)
    values = replay(stock, movements(shelves, per_shelf), at_most=2000000)
    print(sum(values.values()))


if __name__ == "__main__":
    main()
