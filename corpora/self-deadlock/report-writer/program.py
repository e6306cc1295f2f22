"""Writes a report in the background; the interpreter waits for it at the end."""
import threading


class Ledger:
    def __init__(self):
        self.guard = threading.Lock()
        self.rows = [("a", 3), ("b", 4)]

    def total(self):
        self.guard.acquire()  # CULPRIT
        try:
            return sum(amount for _, amount in self.rows)
        finally:
            self.guard.release()

    def close_month(self):
        self.guard.acquire()
        try:
            self.rows.append(("closing", self.total()))  # CULPRIT
        finally:
            self.guard.release()


def write_report(ledger):
    ledger.close_month()
    print("written")


def main():
    ledger = Ledger()
    writer = threading.Thread(target=write_report, args=(ledger,), name="report-writer")
    writer.start()
    print("ready", flush=True)


if __name__ == "__main__":
    main()
