"""Keeps the latest river levels in a memory-mapped ring file; a nightly rotation starts the file afresh."""
import mmap
import os
import struct
import tempfile

RECORD = struct.Struct("<IId")
SLOTS = 4096


class LevelRing:
    def __init__(self, path):
        self.path = path
        size = RECORD.size * SLOTS
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self.descriptor, size)
        self.view = mmap.mmap(self.descriptor, size)

    def put(self, slot, gauge, minute, level):
        RECORD.pack_into(self.view, slot * RECORD.size, gauge, minute, level)

    def get(self, slot):
        return RECORD.unpack_from(self.view, slot * RECORD.size)  # CULPRIT


def rotate(path, archive):
    """Copies the day's levels away and empties the file in place, so that its owner and mode stay."""
    with open(path, "rb") as old, open(archive, "wb") as new:
        new.write(old.read())
    os.truncate(path, 0)  # CULPRIT


def highest(ring, slots):
    return max(ring.get(slot)[2] for slot in slots)


def main():
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "levels.ring")
    ring = LevelRing(path)
    for slot in range(SLOTS):
        ring.put(slot, slot % 12, slot, 1.5 + slot % 7 / 10)
    peak = highest(ring, range(600))
    print("ready", flush=True)
    rotate(path, os.path.join(folder, "levels.1"))
    print("%.2f m, then %.2f m" % (peak, highest(ring, range(600))))


if __name__ == "__main__":
    main()
