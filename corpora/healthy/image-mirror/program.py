"""Mirrors a disk image block by block; every block is on the disk before the next one is read."""
import os
import tempfile

BLOCK = 32 << 10


class Mirror:
    def __init__(self, source, target):
        self.source, self.target = source, target
        self.blocks = 0

    def copy(self):
        with open(self.source, "rb") as source, open(self.target, "wb") as target:
            for block in iter(lambda: source.read(BLOCK), b""):
                target.write(block)
                target.flush()
                os.fsync(target.fileno())
                self.blocks += 1
                yield self.blocks


def main():
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "image")
        with open(image, "wb") as out:
            out.write(os.urandom(BLOCK) * 256)
        mirror = Mirror(image, os.path.join(folder, "copy"))
        print("ready", flush=True)
        while True:
            for blocks in mirror.copy():
                if blocks % 1000 == 0:
                    print(blocks, "blocks", flush=True)


if __name__ == "__main__":
    main()
