"""The board of a depot: one thread takes arrivals in, two plan the ramps, one process prints the plan."""
import queue
import subprocess
import sys
import threading
import time

PRINTER = "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line.upper())\n    sys.stdout.flush()\n"


class Ramps:
    def __init__(self, count):
        self.guard = threading.Lock()
        self.plan = {number: [] for number in range(count)}

    def assign(self, truck):
        with self.guard:
            number = min(self.plan, key=lambda ramp: len(self.plan[ramp]))
            self.plan[number].append(truck)
            self.plan[number] = self.plan[number][-5:]
            time.sleep(0.002)  # CULPRIT
            return number


class Planner(threading.Thread):
    def __init__(self, name, arrivals, ramps, out):
        super().__init__(name=name, daemon=True)
        self.arrivals, self.ramps, self.out = arrivals, ramps, out

    def run(self):
        while True:
            truck = self.arrivals.get()  # CULPRIT
            self.out.put("truck %d to ramp %d\n" % (truck, self.ramps.assign(truck)))


class Printer:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", PRINTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def show(self, line):
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        return self.process.stdout.readline()  # CULPRIT


def arrive(arrivals):
    for truck in range(10 ** 9):
        arrivals.put(truck)


def main():
    arrivals, out = queue.Queue(4), queue.Queue(4)
    ramps = Ramps(6)
    for name in ("plan-a", "plan-b"):
        Planner(name, arrivals, ramps, out).start()
    threading.Thread(target=arrive, args=(arrivals,), name="arrivals", daemon=True).start()
    printer = Printer()
    printer.show(out.get())
    print("ready", flush=True)
    while True:
        printer.show(out.get())  # CULPRIT


if __name__ == "__main__":
    main()
