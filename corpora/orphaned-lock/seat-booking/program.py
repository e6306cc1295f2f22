"""Books the seats of a small theatre: many look, few book."""
import threading

from fasteners import ReaderWriterLock


class Plan:
    def __init__(self, rows, seats):
        self.lock = ReaderWriterLock()
        self.free = {"%s%d" % (row, seat) for row in rows for seat in range(1, seats + 1)}
        self.booked = {}

    def available(self):
        with self.lock.read_lock():
            return sorted(self.free)

    def book(self, seats, guest):
        self.lock.acquire_write_lock()  # CULPRIT
        for seat in seats:
            self.free.remove(seat)  # CULPRIT
            self.booked[seat] = guest
        self.lock.release_write_lock()  # CULPRIT


class Screen(threading.Thread):
    """Shows the free seats at the entrance."""

    def __init__(self, plan, number):
        super().__init__(name="screen-%d" % number, daemon=True)
        self.plan = plan
        self.shown = []

    def run(self):
        for _ in range(100):
            self.shown = self.plan.available()


def main():
    threading.excepthook = lambda args: print("not booked:", args.exc_value)
    plan = Plan("AB", 10)
    plan.book(["A1", "A2"], "Holm")
    booking = threading.Thread(target=plan.book, args=(["B4", "A2"], "Vik"), name="booking", daemon=True)
    booking.start()
    booking.join()
    print("ready", flush=True)
    screens = [Screen(plan, number) for number in range(2)]
    for screen in screens:
        screen.start()
    plan.book(["B7"], "Moe")
    for screen in screens:
        screen.join()


if __name__ == "__main__":
    main()
