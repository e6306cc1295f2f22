"""Twelve packing stations print their labels on the one printer of the hall."""
import threading
import time


class Printer:
    def __init__(self):
        self.lock = threading.Lock()
        self.printed = 0

    def feed(self, lines):
        time.sleep(0.01 * lines)

    def print_label(self, parcel, lines):
        with self.lock:  # CULPRIT
            self.feed(lines)  # CULPRIT
            self.printed += 1


def station(number, printer):
    parcel = 0
    while True:
        parcel += 1
        printer.print_label("%d-%d" % (number, parcel), 4)


def main():
    printer = Printer()
    stations = [
        threading.Thread(target=station, args=(n, printer), name="station-%d" % n, daemon=True) for n in range(12)
    ]
    print("ready", flush=True)
    for thread in stations:
        thread.start()
    for thread in stations:
        thread.join()


if __name__ == "__main__":
    main()
