"""Reads scanned pages that arrive in batches, and prints at night which ones could not be read."""
import queue
import threading
import zlib

PAGE = 2 * 1024 * 1024


class Unreadable(Exception):
    pass


def unpack(name, packed):
    pixels = bytearray(zlib.decompress(packed))
    if pixels[-1] != 0x7E:
        raise Unreadable("%s: no end mark after %d bytes" % (name, len(pixels)))
    return pixels


def read_page(name, packed):
    pixels = unpack(name, packed)
    return sum(pixels[::4096])


def read_batch(batch, sums, rejected):
    for name, packed in batch:
        try:
            sums[name] = read_page(name, packed)
        except Unreadable as exc:
            rejected.append(exc)  # CULPRIT


def scanner(batches):
    packed = zlib.compress(bytes(PAGE), 1)
    for number in range(4):
        batches.put([("batch%d/page%02d" % (number, page), packed) for page in range(6)])


def report(rejected):
    for exc in rejected:
        print("rejected:", exc)


def main():
    batches, sums, rejected = queue.Queue(), {}, []
    threading.Thread(target=scanner, args=(batches,), name="scanner", daemon=True).start()
    for _ in range(4):
        read_batch(batches.get(), sums, rejected)
    print("ready", flush=True)
    idle = 0
    while idle < 2000:
        try:
            read_batch(batches.get(timeout=0.5), sums, rejected)
        except queue.Empty:
            idle += 1
    report(rejected)


if __name__ == "__main__":
    main()
