"""Counts parts in five processes and keeps one common tally, which is written out after every part."""
import multiprocessing
import time


class Tally:
    def __init__(self, context, kinds):
        self.lock = context.Lock()
        self.counts = context.Array("i", kinds, lock=False)

    def save(self):
        time.sleep(0.05)
        return sum(self.counts)

    def add(self, kind):
        with self.lock:  # CULPRIT
            self.counts[kind] += 1
            self.save()  # CULPRIT


def count(number, tally, gate):
    gate.wait()
    part = number
    while multiprocessing.parent_process().is_alive():
        part = (part * 5 + 3) % 97
        tally.add(part % len(tally.counts))


def main():
    context = multiprocessing.get_context("fork")
    tally = Tally(context, 8)
    gate = context.Barrier(6)
    counters = [
        context.Process(target=count, args=(n, tally, gate), name="counter-%d" % n, daemon=True) for n in range(5)
    ]
    for counter in counters:
        counter.start()
    gate.wait()
    print("ready", flush=True)
    for counter in counters:
        counter.join()


if __name__ == "__main__":
    main()
