"""A child reads samples quickly; a thread of its parent stores them at the pace of a slow archive."""
import multiprocessing
import threading
import time


class Archive(threading.Thread):
    def __init__(self, samples):
        super().__init__(name="archive")
        self.samples = samples
        self.stored = 0

    def run(self):
        while True:
            sample = self.samples.get()
            if sample is None:
                break
            time.sleep(0.3)  # a remote disk
            self.stored += len(sample)
            print("stored", self.stored, flush=True)


def read_samples(samples, count):
    for number in range(count):
        samples.put(bytes([number % 256]) * 30000)
    samples.put(None)


class Campaign:
    def __init__(self, context):
        self.samples = context.Queue()
        self.reader = context.Process(target=read_samples, args=(self.samples, 60), name="reader")

    def run(self):
        self.reader.start()
        Archive(self.samples).start()
        print("ready", flush=True)
        self.reader.join()


if __name__ == "__main__":
    Campaign(multiprocessing.get_context("fork")).run()
