"""The seat plans of a chain of theatres: plans lie in an SQLite file, requests are answered by a pool of threads."""
import os
import queue
import random
import sqlite3
import tempfile
import threading

PLANS = 12000


class Plans:
    """One connection to the file of plans; plans are a few pages each."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.db.execute("pragma mmap_size = 1073741824")  # CULPRIT
        self.db.execute("pragma cache_size = -512")

    def fill(self):
        self.db.execute("pragma journal_mode = off")
        self.db.execute("pragma synchronous = off")
        self.db.execute("create table plan (id integer primary key, seats blob)")
        self.db.execute("begin")
        rows = ((number, b"%08d" % number + bytes(8100)) for number in range(PLANS))
        self.db.executemany("insert into plan values (?, ?)", rows)
        self.db.execute("commit")

    def free(self, number):
        row = self.db.execute("select seats from plan where id = ?", (number,)).fetchone()  # CULPRIT
        return row[0].count(0)


class Desk(threading.Thread):
    def __init__(self, number, path, requests, answers):
        super().__init__(name="desk-%d" % number, daemon=True)
        self.path, self.requests, self.answers = path, requests, answers

    def run(self):
        plans = Plans(self.path)
        while True:
            customer, wanted = self.requests.get()
            self.answers.put((customer, max(wanted, key=plans.free)))  # CULPRIT


class BoxOffice:
    def __init__(self, path, desks):
        self.requests, self.answers = queue.Queue(8), queue.Queue()
        self.chance = random.Random(11)
        for number in range(desks):
            Desk(number, path, self.requests, self.answers).start()

    def ask(self, customer):
        self.requests.put((customer, [self.chance.randrange(PLANS) for _ in range(40)]))

    def serve(self, customers):
        for customer in range(customers):
            self.ask(customer)
            if customer >= 8:
                yield self.answers.get()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plans.db")
        Plans(path).fill()
        office = BoxOffice(path, desks=3)
        print("ready", flush=True)
        for customer, plan in office.serve(10 ** 7):
            if customer % 1000 == 0:
                print(customer, "took", plan, flush=True)


if __name__ == "__main__":
    main()
