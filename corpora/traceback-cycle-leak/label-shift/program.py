"""Prints parcel labels with a pool of threads; the night shift looks through what failed."""
import threading
from concurrent.futures import ThreadPoolExecutor, wait

LABEL = 1536 * 1024


class Printer:
    def __init__(self):
        self.guard = threading.Lock()
        self.printed = 0

    def send(self, raster):
        if raster[0] == 0:
            raise IOError("empty label of %d bytes" % len(raster))
        with self.guard:
            self.printed += 1


def print_label(printer, parcel):
    raster = bytearray(LABEL)
    raster[0] = parcel % 2
    printer.send(raster)
    return parcel


def shift(pool, printer, parcels, done):
    futures = {pool.submit(print_label, printer, parcel): parcel for parcel in parcels}
    wait(futures)
    for future, parcel in futures.items():
        done[parcel] = future  # CULPRIT


def summary(done):
    failed = [parcel for parcel, future in done.items() if future.exception()]
    return "%d labels, %d to do by hand" % (len(done), len(failed))


def main():
    printer, done = Printer(), {}
    bell = threading.Event()
    with ThreadPoolExecutor(max_workers=3, thread_name_prefix="label") as pool:
        shift(pool, printer, range(64), done)
        print(summary(done))
        print("ready", flush=True)
        for hour in range(1, 2000):
            bell.wait(1.5)
            shift(pool, printer, range(hour * 64, hour * 64 + 2), done)
    print(summary(done))


if __name__ == "__main__":
    main()
