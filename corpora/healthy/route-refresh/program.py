"""Keep the routes between depots up to date: a new graph every second, and the old one goes."""
import gc
import random
import sys
import threading
import time


class Stop:
    def __init__(self, name):
        self.name = name
        self.links = []
        self.back = []


class Network:
    def __init__(self, seed, size):
        rng = random.Random(seed)
        self.stops = [Stop("stop-%d" % number) for number in range(size)]
        for stop in self.stops:
            for _ in range(3):
                other = self.stops[rng.randrange(size)]
                minutes = rng.randrange(2, 60)
                stop.links.append((other, minutes))
                other.back.append((stop, minutes))

    def reach(self, hops):
        seen = {self.stops[0]}
        edge = [self.stops[0]]
        for _ in range(hops):
            edge = [other for stop in edge for other, _ in stop.links if other not in seen]
            seen.update(edge)
        return len(seen)


class Planner:
    def __init__(self):
        self.history = [{"day": day, "runs": [[day, run] for run in range(20)]} for day in range(6000)]
        self.network = None
        self.refreshed = threading.Event()
        self.closing = threading.Event()

    def refresh(self, seed):
        self.network = Network(seed, 6000)
        gc.collect()
        self.refreshed.set()

    def run(self):
        seed = 0
        while not self.closing.wait(1.0 if seed else 0):
            seed += 1
            self.refresh(seed)

    def report(self):
        self.refreshed.wait()
        while not self.closing.wait(0.1):
            print("%.1f: %d stops" % (time.time(), self.network.reach(6)), file=sys.stderr)


def main():
    planner = Planner()
    threading.Thread(target=planner.run, name="planner", daemon=True).start()
    planner.refreshed.wait()
    print("ready", flush=True)
    planner.report()


if __name__ == "__main__":
    main()
