"""A nightly batch: reads, joins, aggregates and writes, part after part."""
import csv
import io
import json
import random
import sys


class Part:
    def __init__(self, number):
        self.number = number
        self.rng = random.Random(number)

    def extract(self):
        return [(self.rng.randrange(500), self.rng.random()) for _ in range(20_000)]

    def join(self, rows):
        names = {key: "customer-%d" % key for key in range(500)}
        return [(names[key], value) for key, value in rows]

    def aggregate(self, rows):
        totals = {}
        for name, value in rows:
            totals[name] = totals.get(name, 0.0) + value
        return totals

    def write(self, totals):
        out = io.StringIO()
        csv.writer(out).writerows(sorted(totals.items()))
        return json.dumps({"part": self.number, "bytes": len(out.getvalue())})


def main():
    print("ready", flush=True)
    for number in range(100_000):
        part = Part(number)
        line = part.write(part.aggregate(part.join(part.extract())))
        if number % 20 == 0:
            print(line, file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
