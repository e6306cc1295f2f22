"""How a scan is packed: compressed as well as zlib can."""
import hashlib
import zlib


def scan(depot, parcel, size=200000):
    seed = hashlib.sha256(b"%d-%d" % (depot, parcel)).digest()
    return (seed + bytes(range(64))) * (size // 96)


def pack(depot, parcel):
    data = scan(depot, parcel)
    rough = bytes(a ^ b for a, b in zip(data[:4096], reversed(data)))
    return len(zlib.compress(rough + data, 9))  # CULPRIT
