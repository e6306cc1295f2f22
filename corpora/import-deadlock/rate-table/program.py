"""Converts amounts with exchange rates."""
import argparse


class Converter:
    def __init__(self):
        import rates

        self.rates = rates.TABLE

    def convert(self, amount, currency):
        return amount * self.rates[currency]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("amount", nargs="?", type=float, default=10)
    options = parser.parse_args()
    print("ready", flush=True)
    print(Converter().convert(options.amount, "CHF"))


if __name__ == "__main__":
    main()
