"""Works out the postal tariff of every weight and zone, and prints the table's check sum."""
import zlib

ZONES = 240
WEIGHTS = 4000


def price(zone, grams):
    cents = 85
    for step, rate in ((50, 3), (500, 7), (2000, 11), (10000, 19)):
        if grams > step:
            cents += (grams - step) * rate * (zone + 3) // 1000
    return cents


def row(zone):
    return [price(zone, grams) for grams in range(0, WEIGHTS * 5, 5)]  # CULPRIT


def main():
    print("ready", flush=True)
    total = 0
    for tour in range(50):
        for zone in range(ZONES):
            total = zlib.crc32(repr(row(zone)).encode(), total)  # CULPRIT
    print("%08x" % total)


if __name__ == "__main__":
    main()
