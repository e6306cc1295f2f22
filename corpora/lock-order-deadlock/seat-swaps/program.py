"""Lets passengers of two coaches swap seats; a pool of clerks does the swaps, each with both seats held."""
import threading
from concurrent.futures import ThreadPoolExecutor


class Seat:
    def __init__(self, number, passenger):
        self.number = number
        self.passenger = passenger
        self.lock = threading.Lock()


class Coach:
    def __init__(self, name, seats):
        self.seats = {number: Seat("%s/%d" % (name, number), "%s-%d" % (name, number)) for number in range(seats)}


class Clerk:
    """Does swaps; the clerks look at the day's first wishes together before they write anything."""

    def __init__(self, looked):
        self.looked = looked

    def swap(self, one, other):
        with one.lock:
            self.look(one)
            with other.lock:  # CULPRIT
                one.passenger, other.passenger = other.passenger, one.passenger

    def look(self, seat):
        if seat.passenger is None:
            raise LookupError(seat.number)
        self.looked.wait()


def announce():
    print("ready", flush=True)


def main():
    first, second = Coach("A", 20), Coach("B", 20)
    clerk = Clerk(threading.Barrier(2, action=announce))
    wishes = [(first.seats[4], second.seats[11]), (second.seats[11], first.seats[4])]
    with ThreadPoolExecutor(2, thread_name_prefix="clerk") as pool:
        swaps = [pool.submit(clerk.swap, one, other) for one, other in wishes]
    print("%d swaps" % sum(swap.exception() is None for swap in swaps))


if __name__ == "__main__":
    main()
