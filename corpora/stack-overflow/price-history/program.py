"""Applies every split and dividend of a share to its past prices, one adjustment after the other."""
import random


class Adjustment:
    def __init__(self, kind, factor):
        self.kind = kind
        self.factor = factor

    def __call__(self, price):
        return price * self.factor if self.kind == "split" else price - self.factor


def history(days):
    price = 100.0
    for _ in range(days):
        price *= 1 + random.uniform(-0.01, 0.011)
        yield price


def adjustments(count):
    for number in range(count):
        yield Adjustment("split", 0.5) if number % 900 == 0 else Adjustment("dividend", 0.00001)


def adjusted(prices, events):
    for event in events:
        prices = map(event, prices)  # CULPRIT
    return list(prices)  # CULPRIT


def main():
    random.seed(7)
    prices = list(history(250))
    print("ready", flush=True)
    result = adjusted(prices, adjustments(250000))
    print("%d prices, the last %.4f" % (len(result), result[-1]))


if __name__ == "__main__":
    main()
