"""Moves an archive's documents to a new store: the list is queued at the start, three movers work it off."""
import queue
import threading
import time


class Store:
    def __init__(self):
        self.guard = threading.Lock()
        self.moved = 0

    def move(self, document):
        time.sleep(0.008)
        with self.guard:
            self.moved += 1


class Mover(threading.Thread):
    def __init__(self, number, documents, store):
        super().__init__(name="mover-%d" % number, daemon=True)
        self.documents = documents
        self.store = store

    def run(self):
        while True:
            try:
                document = self.documents.get_nowait()
            except queue.Empty:
                break
            self.store.move(document)


def main():
    documents = queue.Queue()
    for number in range(150000):
        documents.put(number)
    store = Store()
    movers = [Mover(number, documents, store) for number in range(3)]
    for mover in movers:
        mover.start()
    print("ready", flush=True)
    while any(mover.is_alive() for mover in movers):
        time.sleep(0.5)
        print("still to move:", documents.qsize(), flush=True)


if __name__ == "__main__":
    main()
