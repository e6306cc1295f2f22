"""Splits the tolls of each bridge among its owners, in worker processes; whole cents by the C library's ldiv."""
import ctypes
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool


class LongDivision(ctypes.Structure):
    _fields_ = [("quot", ctypes.c_long), ("rem", ctypes.c_long)]


libc = ctypes.CDLL(None)
libc.ldiv.restype = LongDivision
libc.ldiv.argtypes = [ctypes.c_long, ctypes.c_long]

BRIDGES = {
    "north": (184200, ["city", "port", "county"]),
    "south": (99150, ["city", "county"]),
    "ferry": (1200, []),
    "canal": (40110, ["port"]),
}


def shares(cents, owners):
    part = libc.ldiv(cents, len(owners))  # CULPRIT
    return {owner: part.quot + (1 if place < part.rem else 0) for place, owner in enumerate(owners)}


def settle(bridge):
    cents, owners = BRIDGES[bridge]
    return bridge, shares(cents, owners)


def main():
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("fork")) as pool:
        print("ready", flush=True)
        try:
            for bridge, parts in pool.map(settle, BRIDGES):
                print(bridge, parts, flush=True)
        except BrokenProcessPool as exc:
            print("not settled: %s" % exc)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
