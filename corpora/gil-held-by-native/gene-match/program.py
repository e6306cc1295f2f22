"""Compares gene sequences, and tells the laboratory's monitor every half second that it is alive."""
import os
import threading
import time

from rapidfuzz.distance import Levenshtein

LETTERS = bytes("acgt"[byte % 4].encode()[0] for byte in range(256))


class Heartbeat(threading.Thread):
    def __init__(self, monitor):
        super().__init__(name="heartbeat", daemon=True)
        self.monitor = monitor
        self.beating = threading.Event()

    def run(self):
        while True:
            self.monitor.append(time.time())
            self.beating.set()
            time.sleep(0.5)


class Sample:
    def __init__(self, name, length):
        self.name = name
        self.letters = os.urandom(length).translate(LETTERS).decode()


class Comparison:
    def __init__(self, reference):
        self.reference = reference

    def distance(self, sample):
        return Levenshtein.distance(self.reference.letters, sample.letters)  # CULPRIT

    def nearest(self, samples):
        return min(samples, key=self.distance)  # CULPRIT


def main():
    heartbeat = Heartbeat([])
    heartbeat.start()
    heartbeat.beating.wait()
    comparison = Comparison(Sample("reference", 4000000))
    samples = [Sample("sample-%d" % number, 4000000) for number in range(3)]
    print("ready", flush=True)
    print(comparison.nearest(samples).name)


if __name__ == "__main__":
    main()
