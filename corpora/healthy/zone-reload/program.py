"""Keeps the zones of a name table in memory; they are read anew on SIGHUP, and it ends on SIGTERM."""
import signal
import threading

SIGNALS = {signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGCONT}


class Zones:
    def __init__(self):
        self.names = {}
        self.generation = 0

    def read(self):
        self.generation += 1
        self.names = {"host-%d" % n: "192.0.2.%d" % n for n in range(200)}


class Control:
    def __init__(self, zones):
        self.zones = zones
        self.over = threading.Event()

    def loop(self):
        while not self.over.is_set():
            number = signal.sigwait(SIGNALS)
            if number == signal.SIGHUP:
                self.zones.read()
            elif number == signal.SIGUSR1:
                print(self.zones.generation, len(self.zones.names), flush=True)
            elif number == signal.SIGTERM:
                self.over.set()


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    zones = Zones()
    zones.read()
    print("ready", flush=True)
    Control(zones).loop()


if __name__ == "__main__":
    main()
