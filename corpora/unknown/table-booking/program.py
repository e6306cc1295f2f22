"""Books tables: a booking needs the table's lock and the evening's, and gives way politely when one is taken."""
import threading


class Book:
    def __init__(self):
        self.table = threading.Lock()
        self.evening = threading.Lock()
        self.bookings = 0


def book(first, second, ledger, both_ready):
    while True:
        with first:
            both_ready.wait()
            if second.acquire(timeout=0.08):
                ledger.bookings += 1
                second.release()
                return
            both_ready.wait()


def main():
    ledger = Book()
    both_ready = threading.Barrier(2)
    waiters = [
        threading.Thread(target=book, args=(ledger.table, ledger.evening, ledger, both_ready), name="by-table", daemon=True),
        threading.Thread(target=book, args=(ledger.evening, ledger.table, ledger, both_ready), name="by-evening", daemon=True),
    ]
    for waiter in waiters:
        waiter.start()
    print("ready", flush=True)
    for waiter in waiters:
        waiter.join()
    print(ledger.bookings)


if __name__ == "__main__":
    main()
