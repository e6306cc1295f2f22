"""Looks streets up in a table of fixed-length records; the table is a file that is mapped into memory."""
import mmap
import os
import random
import struct
import tempfile

RECORD = struct.Struct("<QII48s")
RECORDS = 1800000


def build(path):
    block = b"".join(RECORD.pack(n, n % 7000, n % 99999, b"street %d" % n) for n in range(8192))
    with open(path, "wb") as out:
        for _ in range(RECORDS // 8192):
            out.write(block)


class Streets:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.table = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)  # CULPRIT
        self.count = len(self.table) // RECORD.size

    def street(self, number):
        return RECORD.unpack_from(self.table, number * RECORD.size)  # CULPRIT


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "streets.dat")
        build(path)
        streets = Streets(path)
        print("ready", flush=True)
        chance = random.Random(7)
        towns = {}
        for _ in range(10 ** 9):
            _, town, _, name = streets.street(chance.randrange(streets.count))  # CULPRIT
            towns[town] = name


if __name__ == "__main__":
    main()
