"""A print spool: eight stations put labels into a short queue, one printer takes them out."""
import queue
import threading
import time


class Spool:
    def __init__(self, room):
        self.labels = queue.Queue(maxsize=room)
        self.printed = 0

    def print_all(self):
        while True:
            self.labels.get()
            time.sleep(0.02)
            self.printed += 1
            self.labels.task_done()


def station(number, spool):
    label = 0
    while True:
        label += 1
        spool.labels.put("%d-%d" % (number, label))


def main():
    spool = Spool(room=4)
    threading.Thread(target=spool.print_all, name="printer", daemon=True).start()
    stations = [threading.Thread(target=station, args=(n, spool), name="station-%d" % n, daemon=True) for n in range(8)]
    for thread in stations:
        thread.start()
    print("ready", flush=True)
    for thread in stations:
        thread.join()


if __name__ == "__main__":
    main()
