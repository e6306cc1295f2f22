"""Writes the month's meter report as JSON, laid out in wide columns for the old terminal viewer."""
import calendar
import sys

import ujson

COLUMN = 200


def readings(year, month):
    days = calendar.monthrange(year, month)[1]
    return {"day-%02d" % day: [(day * 37 + hour * 11) % 90 / 10 for hour in range(24)] for day in range(1, days + 1)}


def report(meters, year, month):
    return {"month": "%d-%02d" % (year, month), "meters": {meter: readings(year, month) for meter in meters}}


def write(document, stream):
    text = ujson.dumps(document, indent=COLUMN)  # CULPRIT
    stream.write(text)
    return len(text)


def main():
    document = report(["M-%04d" % number for number in range(1, 60)], 2021, 3)
    print("ready", flush=True)
    written = write(document, sys.stderr)
    print("%d characters" % written)


if __name__ == "__main__":
    main()
