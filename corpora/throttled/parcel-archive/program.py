"""Packs the scans of a day's parcels for the archive, many at once."""
import os

from joblib import Parallel, delayed, parallel_backend

import packing


class Archive:
    def __init__(self, depots):
        self.depots = depots

    def scans(self):
        for depot in range(self.depots):
            for parcel in range(400):
                yield depot, parcel

    def pack(self):
        lanes = 4 * (os.cpu_count() or 1)  # CULPRIT
        with parallel_backend("threading", n_jobs=lanes):
            return Parallel()(delayed(packing.pack)(*scan) for scan in self.scans())  # CULPRIT


def main():
    archive = Archive(depots=50)
    print("ready", flush=True)
    sizes = archive.pack()
    print(len(sizes), "scans,", sum(sizes), "bytes")


if __name__ == "__main__":
    main()
