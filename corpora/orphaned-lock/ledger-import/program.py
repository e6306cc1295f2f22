"""Imports bank statements into a ledger, one file a thread, and prints the balance."""
import threading


class Ledger:
    def __init__(self):
        self.guard = threading.Lock()
        self.entries = []

    def book(self, row):
        account, amount = row.split(";")
        self.guard.acquire()  # CULPRIT
        self.entries.append((account, int(amount)))
        self.guard.release()

    def balance(self):
        with self.guard:
            return sum(amount for _, amount in self.entries)


class StatementImport(threading.Thread):
    def __init__(self, ledger, rows):
        super().__init__(name="statement-import")
        self.ledger = ledger
        self.rows = rows

    def run(self):
        for row in self.rows:
            self.ledger.book(row)


def main():
    ledger = Ledger()
    imports = [StatementImport(ledger, ["4711;120", "4711;-35"]), StatementImport(ledger, ["0815;90", "0815;12,50"])]
    for job in imports:
        job.start()
        job.join()
    print("ready", flush=True)
    print("balance", ledger.balance())


if __name__ == "__main__":
    main()
