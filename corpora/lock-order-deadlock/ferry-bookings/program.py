"""Bookings of a ferry line: cars and cabins are changed by two kinds of clerks, and many desks ask for free places."""
import threading


class Deck:
    def __init__(self, name, places):
        self.name = name
        self.places = places
        self.lock = threading.Lock()

    def free(self):
        with self.lock:
            return self.places


class Ferry:
    def __init__(self):
        self.cars = Deck("cars", 80)
        self.cabins = Deck("cabins", 120)
        self.both_at_work = threading.Barrier(2)

    def book_family(self):
        with self.cars.lock:
            self.cars.places -= 1
            self.both_at_work.wait()
            with self.cabins.lock:  # CULPRIT
                self.cabins.places -= 2

    def cancel_group(self):
        with self.cabins.lock:
            self.cabins.places += 10
            self.both_at_work.wait()
            with self.cars.lock:  # CULPRIT
                self.cars.places += 3


class Desk(threading.Thread):
    def __init__(self, number, deck):
        super().__init__(name="desk-%d" % number, daemon=True)
        self.deck = deck

    def run(self):
        while self.deck.free():
            pass


def main():
    ferry = Ferry()
    clerks = [threading.Thread(target=ferry.book_family, name="families", daemon=True)]
    clerks.append(threading.Thread(target=ferry.cancel_group, name="groups", daemon=True))
    for clerk in clerks:
        clerk.start()
    while not (ferry.cars.lock.locked() and ferry.cabins.lock.locked()):
        pass
    desks = [Desk(number, ferry.cars if number % 3 else ferry.cabins) for number in range(9)]
    for desk in desks:
        desk.start()
    print("ready", flush=True)
    for thread in clerks + desks:
        thread.join()


if __name__ == "__main__":
    main()
